"""What came out of a stream: exits, revisions, the log, tables, figures."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from fastapi import Depends, Header, Query, Request, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from venire.server.admin_messages import AlarmsView, LessonsView, RatesView, TrendsView, WhatIfView
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import CSV, NDJSON, PlanBody, plan_of
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Caller
from venire.server.edge.handlers import (
    Level,
    Limit,
    Part,
    Stream,
    Wait,
    event,
    follow,
    lines_answer,
    serves,
)
from venire.server.messages import Insights
from venire.server.store.maintenance.export import write_table

SSE: Final = "text/event-stream"
Cursor = Annotated[int, Query(description="The cursor: results after this number.", ge=0, le=2**53)]
AFTER_EVENT = "Events after this number; they count from 1, so 0 means all of them."
AFTER_ALARM = "The history after this number; without it, the latest."
PAGES = "{}, one per line; Venire-Cursor is the cursor for the next request."
EXAMPLE = {"policy": "fixed-overlap:3", "without": ["ann"], "money": 50}

#: Types by ending.
FORMATS: Final = {"csv": CSV, "jsonl": NDJSON, "parquet": "application/vnd.apache.parquet"}

What = Annotated[
    Literal["labels", "verdicts", "revisions", "gold", "notes", "repeats"],
    Query(description="The table."),
]
Format = Annotated[Literal["csv", "jsonl", "parquet"], Query(description="The kind of file.")]
SHARES = "With verdicts: also the probability of each class."


def formats() -> list[str]:
    """The kinds of files that can be written here.

    >>> formats()[:2]
    ['csv', 'jsonl']
    """
    return [name for name in FORMATS if name != "parquet" or find_spec("pyarrow") is not None]


class Page(NamedTuple):
    """Which rows of a numbered list are asked for."""

    after: int
    wait: float
    limit: int


async def page_of(after: Cursor = 0, wait: Wait = 0.0, limit: Limit = 1000) -> Page:
    """The rows that the query asks for; a coroutine, since FastAPI runs others in threads."""
    return Page(after, wait, limit)


PageParameters: TypeAlias = Annotated[Page, Depends(page_of)]


class ReadingRoutes(Part):
    """For readers; reviewers may not see what is due to be audited."""

    @serves("exits", "reading", 410, text=PAGES.format("Exits"), kind=NDJSON)
    async def exits(
        self, request: Request, who: Caller, stream: Stream, page: PageParameters
    ) -> Response:
        """The exits after a cursor, oldest first; waits if there are none."""
        return await self._lines(request, who, stream, page, self._service.exits, Blind.exits)

    @serves("revisions", "reading", 410, text=PAGES.format("Revisions"), kind=NDJSON)
    async def revisions(
        self, request: Request, who: Caller, stream: Stream, page: PageParameters
    ) -> Response:
        """Verdicts that changed after their item had left; waits if there are none."""
        read = self._service.revisions
        return await self._lines(request, who, stream, page, read, Blind.revisions)

    async def _lines(
        self,
        request: Request,
        who: Caller,
        stream: str,
        page: Page,
        read: Callable[..., Coroutine[Any, Any, Any]],
        seen: Callable[[Blind, Any], Any],
    ) -> Response:
        """Numbered rows, with the next cursor."""
        seconds = self._gate.wait_of(page.wait)
        work = read(stream, page.after, seconds, page.limit)
        found = await (self._gate.long_poll(request, work) if seconds > 0 else work)
        cursor = found[-1].n if found else page.after
        shown = seen(await blind_for(self._service, who, stream), found)
        return await lines_answer(shown, {"Venire-Cursor": str(cursor)})

    @serves("events", "reading", 400, 410, text="The log as it grows.", kind=SSE)
    async def events(
        self,
        request: Request,
        stream: Stream,
        after: Annotated[int | None, Query(description=AFTER_EVENT, ge=0, le=2**53)] = None,
        last_event_id: Annotated[str | None, Header(description="As browsers send it.")] = None,
    ) -> Response:
        """The log as server-sent events, from now on, or after an event."""
        if last_event_id is not None and last_event_id.strip():
            after = _number(last_event_id.strip())
        await self._service.stream(stream)
        await self._service.check_event(stream, after)
        log = self._service.events(stream, after)

        async def written() -> AsyncIterator[bytes]:
            async for entry in log:
                yield event(entry.kind, entry, entry.n)

        return follow(self._gate, request, written())

    @serves("export", "reading", 409, text="The table, as a file.", kind=CSV,
            responses={200: {"content": {kind: {} for kind in FORMATS.values()}}})  # fmt: skip
    async def export(
        self,
        request: Request,
        stream: Stream,
        what: What = "verdicts",
        format: Format = "csv",
        probabilities: Annotated[bool, Query(description=SHARES)] = False,
    ) -> Response:
        """Labels, verdicts, revisions, gold, notes or repeats as CSV, JSON Lines or Parquet."""
        if format not in formats():
            raise RequestError(
                409,
                "invalid_state",
                "pyarrow is not installed on this server",
                hint="choose csv or jsonl",
            )
        await self._service.stream(stream)
        runtime = self._service.runtime
        await runtime.flush()
        folder = tempfile.TemporaryDirectory(prefix="venire-export-")
        path, shares = Path(folder.name, f"{what}.{format}"), probabilities and what == "verdicts"
        work = runtime.keep(write_table, runtime.storage, stream, what, path, shares)
        try:
            await self._gate.long_poll(request, work)
        except BaseException:
            folder.cleanup()
            raise
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        done: Any = BackgroundTask(folder.cleanup)
        name = f"{stream}-{'probabilities' if shares else what}.{format}"
        return FileResponse(path, 200, headers, FORMATS[format], done, filename=name)

    @serves("insights", "reading", text="The current state.")
    async def insights(self, blind: Blind, stream: Stream) -> Insights:
        """The statistics of the stream."""
        return blind.insights(await self._service.insights(stream))

    @serves("trends", "reading", text="The current state.")
    async def trends(self, blind: Blind, stream: Stream) -> TrendsView:
        """The latest exits: verdicts against votes, estimated accuracy, and how they went."""
        return blind.trends(await self._service.trends(stream))

    @serves("alarms", "reading", text="The current state.")
    async def alarms(
        self,
        blind: Blind,
        stream: Stream,
        after: Annotated[int | None, Query(description=AFTER_ALARM, ge=0, le=2**53)] = None,
        limit: Limit = 100,
    ) -> AlarmsView:
        """The alarms that are on, and what was raised and cleared after a number."""
        return blind.alarms(await self._service.alarms(stream, after, limit))

    @serves("rates", "reading", 409, text="The rates, with their intervals.")
    async def rates(self, blind: Blind, stream: Stream, level: Level = 0.95) -> RatesView:
        """How often each class comes, and how right and complete its verdicts are, by audits."""
        blind.check_log()
        return await self._service.rates(stream, level)

    @serves("lessons", "reading", text="The latest versions of the student, in order.")
    async def lessons(self, blind: Blind, stream: Stream) -> LessonsView:
        """How the student of a stream learned, version by version."""
        return blind.lessons(await self._service.lessons(stream))

    @serves("what_if", "reading", 409, text="What it would have bought.", example=EXAMPLE)
    async def what_if(
        self, request: Request, blind: Blind, stream: Stream, wanted: PlanBody
    ) -> WhatIfView:
        """What another policy, panel or budget would have bought, by replaying the log."""
        blind.check_log()
        work = self._service.what_if(stream, plan_of(wanted), wanted.simulate_missing)
        return await self._gate.long_poll(request, work)


def _number(last: str) -> int:
    """The number of an event from a Last-Event-ID header; a 400 if it is invalid.

    >>> _number("17")
    17
    """
    if not (last.isascii() and last.isdecimal() and len(last) <= 16):
        raise RequestError(
            400,
            "bad_request",
            f"got the Last-Event-ID {last[:20]!r}, expected the number of an event",
            hint="send the id of the last event received, or omit the header",
        )
    return int(last)
