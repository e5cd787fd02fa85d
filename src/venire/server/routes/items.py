"""Items, exits, revisions, events, labelers and statistics of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response

from venire.server.edge.answers import (
    body,
    event,
    json_answer,
    lines_answer,
    long_answer,
    payload_answer,
    says,
)
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import NDJSON, ItemBody, item_of, read_list
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Item, Limit, Stream, Wait, stream_parameter
from venire.server.edge.server_sent_events import follow
from venire.server.explanation_messages import Explanation
from venire.server.messages import Insights, ItemView
from venire.server.panel_messages import LabelerView, PanelView

__all__ = ["ItemRoutes"]

SSE = "text/event-stream"
Beliefs = Annotated[bool, Query(description="Whether to recompute how the belief moved.")]
Cursor = Annotated[int, Query(description="The cursor: results after this number.", ge=0, le=2**53)]

WANT = "The accuracy wanted of the cheapest panel. By default that of all, less 0.005."
AFTER_EVENT = "Events after this number; they count from 1, so 0 means all of them."


class ItemRoutes:
    """For producers and readers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes; `explain` before the item, whose id may hold a slash."""
        one = "/v1/streams/{stream}"
        app.add_api_route(
            f"{one}/items",
            self.add_items,
            methods=["POST"],
            tags=["items"],
            responses=says(404, 409, 413, 415, 422, text="The outcome for each item."),
            openapi_extra=stream_parameter(
                body("ItemBody", lists=True, example=[{"id": "post-1", "payload": "Buy now!"}])
            ),
        )
        item = f"{one}/items/{{item:path}}"
        for path, endpoint, method, model in (
            (f"{item}/explain", self.explain, "GET", Explanation),
            (item, self.show, "GET", ItemView),
            (item, self.withdraw, "DELETE", ItemView),
            (f"{one}/labelers", self.labelers, "GET", list[LabelerView]),
            (f"{one}/insights", self.insights, "GET", Insights),
            (f"{one}/panel", self.panel, "GET", PanelView),
        ):
            app.add_api_route(
                path,
                endpoint,
                methods=[method],
                tags=["items" if "item" in path else "reading"],
                response_model=model,
                responses=_answers(path, method),
            )
        pages = "{}, one per line; Venire-Cursor is the cursor for the next request."
        following: tuple[tuple[str, Callable[..., Any], str, str], ...] = (
            ("exits", self.exits, NDJSON, pages.format("Exits")),
            ("revisions", self.revisions, NDJSON, pages.format("Revisions")),
            ("events", self.events, SSE, "The log as it grows."),
        )
        for path, follower, kind, text in following:
            app.add_api_route(
                f"{one}/{path}",
                follower,
                methods=["GET"],
                tags=["reading"],
                response_class=Response,
                responses=says(
                    *([400] if kind == SSE else []), 404, 410, 422, text=text, kind=kind
                ),
            )

    @by_hand
    async def add_items(self, request: Request) -> Response:
        """Add items; idempotent for the same id and content, a conflict for other content."""
        most, stream = self._gate.settings.max_batch, request.path_params["stream"]
        items = await read_list(request, ItemBody, most, lambda _, row: item_of(row))
        added = await self._service.add_items(stream, items, caller(request).actor)
        created = sum(item.status == "created" for item in added)
        counts = {"created": created, "exists": len(added) - created}
        return await long_answer(counts, "items", added)

    async def show(self, request: Request, stream: Stream, item: Item) -> Response:
        """An item with its labels, posterior, verdict and revisions."""
        view = await self._service.item(stream, item)
        shown = (await self._blind(request, stream)).item(view)
        return await payload_answer(shown, [shown.payload, [[]] * len(shown.labels)])

    async def _blind(self, request: Request, stream: str) -> Blind:
        return await blind_for(self._service, caller(request), stream)

    async def withdraw(self, request: Request, stream: Stream, item: Item) -> Response:
        """Withdraw an item without a verdict."""
        view = await self._service.withdraw(stream, item, caller(request).actor)
        return await payload_answer(view, [view.payload])

    async def explain(
        self, request: Request, stream: Stream, item: Item, beliefs: Beliefs = False
    ) -> Response:
        """Why an item was assigned to whom, and why it left; recomputed from the log."""
        if not request.scope["raw_path"].endswith(b"/explain"):  # the slash is part of the id
            return await self.show(request, stream, f"{item}/explain")
        (await self._blind(request, stream)).check(item)
        work = self._service.explain(stream, item, beliefs)
        return json_answer(await self._gate.long_poll(request, work))

    async def labelers(self, request: Request, stream: Stream) -> Response:
        """The labelers with what was learned about them."""
        blind = await self._blind(request, stream)
        return json_answer(blind.labelers(await self._service.labelers(stream)))

    async def insights(self, request: Request, stream: Stream) -> Response:
        """The statistics of the stream."""
        blind = await self._blind(request, stream)
        return json_answer(blind.insights(await self._service.insights(stream)))

    async def panel(
        self,
        request: Request,
        stream: Stream,
        want: Annotated[float | None, Query(description=WANT, gt=0, le=1)] = None,
    ) -> Response:
        """What each labeler brings and costs, and who can go; by replaying the latest labels."""
        (await self._blind(request, stream)).check_log()
        work = self._service.panel(stream, want)
        return json_answer(await self._gate.long_poll(request, work))

    async def exits(
        self,
        request: Request,
        stream: Stream,
        after: Cursor = 0,
        wait: Wait = 0.0,
        limit: Limit = 1000,
    ) -> Response:
        """The exits after a cursor, oldest first; waits if there are none."""
        seconds = self._gate.wait_of(wait)
        work = self._service.exits(stream, after, seconds, limit)
        return await self._lines(request, stream, work, Blind.exits, after, seconds)

    async def revisions(
        self,
        request: Request,
        stream: Stream,
        after: Cursor = 0,
        wait: Wait = 0.0,
        limit: Limit = 1000,
    ) -> Response:
        """Verdicts that changed after their item had left; waits if there are none."""
        seconds = self._gate.wait_of(wait)
        work = self._service.revisions(stream, after, seconds, limit)
        return await self._lines(request, stream, work, Blind.revisions, after, seconds)

    async def _lines(
        self,
        request: Request,
        stream: str,
        work: Coroutine[Any, Any, Any],
        seen: Callable[[Blind, Any], Any],
        after: int,
        seconds: float,
    ) -> Response:
        """Numbered rows, with the next cursor."""
        found = await (self._gate.long_poll(request, work) if seconds > 0 else work)
        cursor = found[-1].n if found else after
        shown = seen(await self._blind(request, stream), found)
        return await lines_answer(shown, {"Venire-Cursor": str(cursor)})

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


def _answers(path: str, method: str) -> dict[int | str, dict[str, Any]]:
    """The answers of a route; 409 where the state may not allow it."""
    gone = [410] if "{item" in path else []
    known = says(404, *gone, 422, text="The current state.")
    conflicts = method == "DELETE" or path.endswith("/panel")
    return {**known, **says(404, 409, *gone, 422)} if conflicts else known


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
