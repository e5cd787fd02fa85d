"""Items, and what came of them: adding, uploading, finding; exits, the log, tables and figures."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from fastapi import Depends, Header, Query, Request, Response
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from venire.errors import Conflict, FileError, InputError
from venire.files.items import Sent, read_sent, send_all
from venire.model import ExitReason, ItemStatus
from venire.server.actors import Actor
from venire.server.admin_messages import AlarmsView, LessonsView, RatesView, TrendsView, WhatIfView
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import (
    CSV,
    NDJSON,
    ItemBody,
    PlanBody,
    faults_of,
    item_of,
    media_type,
    plan_of,
    read_list,
)
from venire.server.edge.errors import MOST_FAULTS, RequestError
from venire.server.edge.guard import Caller, by_hand, caller
from venire.server.edge.handlers import (
    Item,
    Level,
    Limit,
    Part,
    Since,
    Stream,
    Until,
    Wait,
    event,
    follow,
    lines_answer,
    long_answer,
    payload_answer,
    serves,
)
from venire.server.messages import Erased, Explanation, Insights, ItemIn, ItemsPage, ItemView
from venire.server.settings import Name
from venire.server.store import ItemSearch
from venire.server.store.maintenance.export import write_table
from venire.tools.addresses import Piped
from venire.tools.csv_rows import dialect_of

Beliefs = Annotated[bool, Query(description="Whether to recompute how the belief moved.")]

#: The endings of the types that are read.
ENDINGS: Final = {CSV: "csv", NDJSON: "jsonl"}

LINE = "The line of the file in which the first row of this piece stands."
COLUMN = "The column of the ids; by default `id`, or the one that looks like it."
HASHED = "Make the ids of the content: the same content is the same item."
_FILE: Final = {
    CSV: {"schema": {"type": "string"}, "example": "id,text\npost-1,Buy now!\n"},
    NDJSON: {"schema": {"type": "string"}},
}
EXAMPLE: Final = [{"id": "post-1", "payload": "Buy now!"}]

_ITEM: Final = TypeAdapter(ItemBody)


def _given(value: Any) -> Any:
    """None for an empty text: a form sends every field."""
    return None if value == "" else value


_EMPTY = BeforeValidator(_given)
_TEXT = "Only items with this text in the id or the payload; the case of letters a-z is ignored."
_CURSOR = "The `next` of an earlier answer, for the same search."
Share = Annotated[Annotated[float, Field(ge=0, le=1)] | None, _EMPTY]
Words = Annotated[Annotated[str, Field(max_length=200)] | None, _EMPTY]
Chosen = Annotated[Name | None, _EMPTY]


async def search_of(
    status: Annotated[
        Annotated[ItemStatus | None, _EMPTY], Query(description="Only items of this status.")
    ] = None,
    verdict: Annotated[Chosen, Query(description="Only items that left with this verdict.")] = None,
    reason: Annotated[
        Annotated[ExitReason | None, _EMPTY], Query(description="Only items that left for this.")
    ] = None,
    min_confidence: Annotated[
        Share, Query(description="The least confidence of the verdict.")
    ] = None,
    max_confidence: Annotated[
        Share, Query(description="The most confidence of the verdict.")
    ] = None,
    labeler: Annotated[Chosen, Query(description="Only items that this labeler labelled.")] = None,
    text: Annotated[Words, Query(description=_TEXT)] = None,
    since: Since = None,
    until: Until = None,
) -> ItemSearch:
    """The search that query parameters describe."""
    return ItemSearch(
        status, verdict, reason, min_confidence, max_confidence, labeler, text, since, until
    )


#: A search, for routes and pages alike.
Searched = Annotated[ItemSearch, Depends(search_of)]


class ItemRoutes(Part):
    """For producers and readers; `explain` before the item, whose id may hold a slash."""

    @serves("add_items", "items", 409, text="The outcome for each item.",
            body=ItemBody, lists=True, example=EXAMPLE)  # fmt: skip
    @by_hand
    async def add_items(self, request: Request) -> Response:
        """Add items; idempotent for the same id and content, a conflict for other content."""
        most, stream = self._gate.settings.max_batch, request.path_params["stream"]
        items = await read_list(request, ItemBody, most, lambda _, row: item_of(row))
        added = await self._service.add_items(stream, items, caller(request).actor)
        created = sum(item.status == "created" for item in added)
        counts = {"created": created, "exists": len(added) - created}
        return await long_answer(counts, "items", added)

    @serves("explain", "items", 410, text="The current state.", reply=Explanation)
    async def explain(
        self, request: Request, who: Caller, stream: Stream, item: Item, beliefs: Beliefs = False
    ) -> Any:
        """Why an item was assigned to whom, and why it left; recomputed from the log."""
        if not request.scope["raw_path"].endswith(b"/explain"):  # the slash is part of the id
            return await self.show(who, stream, f"{item}/explain")
        (await blind_for(self._service, who, stream)).check(item)
        work = self._service.explain(stream, item, beliefs)
        return await self._gate.long_poll(request, work)

    @serves("item", "items", 410, text="The current state.", reply=ItemView)
    async def show(self, who: Caller, stream: Stream, item: Item) -> Response:
        """An item with its labels, posterior, verdict and revisions."""
        view = await self._service.item(stream, item)
        shown = (await blind_for(self._service, who, stream)).item(view)
        return await payload_answer(shown, [shown.payload, [[]] * len(shown.labels)])

    @serves("withdraw", "items", 409, 410, text="Done.", reply=ItemView)
    async def withdraw(self, who: Caller, stream: Stream, item: Item) -> Response:
        """Withdraw an item without a verdict."""
        view = await self._service.withdraw(stream, item, who.actor)
        return await payload_answer(view, [view.payload])

    @serves("erase_payload", "items", 409, 410,
            text="The payload is erased; the item and its labels stay.")  # fmt: skip
    async def erase(self, who: Caller, stream: Stream, item: Item) -> Erased:
        """Erase the payload of an item permanently; an open item is withdrawn."""
        return await self._service.erase_payload(stream, item, who.actor)

    @serves("find_items", "items", text="Items, the latest arrival first.")
    async def find_items(
        self,
        blind: Blind,
        stream: Stream,
        search: Searched,
        cursor: Annotated[str | None, Query(description=_CURSOR, max_length=2000)] = None,
        limit: Annotated[int, Query(description="Maximum number of items.", ge=1, le=1000)] = 50,
    ) -> ItemsPage:
        """List and search items; a search for something rare takes several requests."""
        return blind.page(
            await self._service.find_items(stream, blind.search(search), cursor, limit)
        )

    @serves("upload", "items", 409,
            text="How many are new, and which rows not.",
            openapi_extra={"requestBody": {"required": True, "content": _FILE}})  # fmt: skip
    async def upload(
        self,
        request: Request,
        sender: Caller,
        stream: Stream,
        line: Annotated[int | None, Query(description=LINE, ge=1, le=2**53)] = None,
        id: Annotated[str | None, Query(description=COLUMN, max_length=200)] = None,
        hash_ids: Annotated[bool, Query(description=HASHED)] = False,
    ) -> Any:
        """Add the rows of a CSV or JSON Lines file as items, but for those that are refused.

        A browser sends a file in pieces, each with the header of the file; a piece again changes
        nothing.
        """
        kind = ENDINGS[media_type(request, tuple(ENDINGS))]
        file = Piped("upload", "the file", f"upload.{kind}", "", await request.body())
        await self._service.stream(stream)
        who, loop = sender.actor, asyncio.get_running_loop()

        def post(items: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
            """From the thread of the file, by the event loop."""
            sent = [_checked(item) for item in items]
            adding = self._add(stream, sent, who)
            return asyncio.run_coroutine_threadsafe(adding, loop).result()

        def read() -> dict[str, Any]:
            rows = self._rows(file, kind, line, id, hash_ids)
            return send_all(rows, post)

        return await asyncio.to_thread(read)

    def _rows(
        self, file: Piped, kind: str, line: int | None, id: str | None, hash_ids: bool
    ) -> Iterator[Sent]:
        """The rows, as many as are allowed, with their lines in the whole file."""
        if id is not None and hash_ids:
            raise InputError("got a column of ids and ids of the content, expected one of them")
        first = 1 if kind == "jsonl" else 2 + dialect_of(file).skipped
        shift = (line or first) - first
        try:
            rows = list(read_sent(file, id or None, hash_ids))
        except FileError as fault:
            if fault.line is None or fault.line < first:
                raise
            raise FileError(file, fault.line + shift, fault.why) from None
        most = self._gate.settings.max_batch
        if len(rows) > most:
            raise RequestError(
                413,
                "batch_too_large",
                f"got {len(rows):,} rows in one request, expected at most {most:,}",
                hint="send the file in pieces; nothing in this one was accepted",
            )
        return (row._replace(line=row.line + shift) for row in rows)

    async def _add(self, stream: str, items: Sequence[ItemIn], who: Actor) -> dict[str, int]:
        """Add items; a conflict is about one of them."""
        try:
            added = await self._service.add_items(stream, items, who)
        except Conflict as fault:
            raise InputError(str(fault).partition(": nothing in the request")[0]) from None
        created = sum(item.status == "created" for item in added)
        return {"created": created, "exists": len(added) - created}


def _checked(item: dict[str, Any]) -> ItemIn:
    """The item of a row, if it is one.

    >>> _checked({"id": "a", "payload": "x", "weight": -1.0})
    Traceback (most recent call last):
    venire.errors.InputError: weight: Input should be greater than 0
    """
    try:
        return item_of(_ITEM.validate_python(item, strict=True))
    except ValidationError as error:
        faults = faults_of(error, ())[:MOST_FAULTS]
        said = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults]
        raise InputError("; ".join(said)) from None


SSE: Final = "text/event-stream"
Cursor = Annotated[int, Query(description="The cursor: results after this number.", ge=0, le=2**53)]
AFTER_EVENT = "Events after this number; they count from 1, so 0 means all of them."
AFTER_ALARM = "The history after this number; without it, the latest."
PAGES = "{}, one per line; Venire-Cursor is the cursor for the next request."
PLAN = {"policy": "fixed-overlap:3", "without": ["ann"], "money": 50}

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

    @serves("what_if", "reading", 409, text="What it would have bought.", example=PLAN)
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
