"""The console: pages with which people oversee a stream.

Whatever a page shows or does is also an API call, under the same roles.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request, Response
from pydantic import BeforeValidator, Field

from venire.model import ExitReason, ItemStatus
from venire.service.verbs.reviewing import Kind
from venire.web.access import ROLES, Caller
from venire.web.guard import Gate, caller
from venire.web.layouts import pictures_of
from venire.web.pages import PageRoutes
from venire.web.parameters import Item, Stream
from venire.web.rendering import payload_of, times
from venire.web.routes.finding import Searched
from venire.web.story import chart_of, story_of

__all__ = ["ConsoleRoutes"]

#: Rows on a page.
ROWS = 50

#: The pages of a stream, by path.
PAGES = (
    ("", "Overview"),
    ("/items", "Items"),
    ("/reviews", "Reviews"),
    ("/what-if", "What if"),
    ("/settings", "Settings"),
)

Named = Annotated[
    Annotated[str, Field(max_length=200)] | None,
    BeforeValidator(lambda value: value or None),
    Query(),
]
Cursor = Annotated[str | None, Query(max_length=2000)]


class ConsoleRoutes(PageRoutes):
    """Items, reviews and the audit log; `StreamPageRoutes` has the stream itself."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        super().__init__(gate)
        self._templates.filters.update(times=times, payload=payload_of)

    def add(self, app: FastAPI) -> None:
        """Add the pages."""
        one = "/streams/{stream}"
        for path, endpoint in (
            ("/audit", self.audit),
            (f"{one}/items", self.items),
            (f"{one}/reviews", self.reviews),
            (f"{one}/items/{{item:path}}", self.item),
        ):
            app.add_api_route(path, endpoint, methods=["GET"], include_in_schema=False)

    async def items(
        self, request: Request, stream: Stream, search: Searched, cursor: Cursor = None
    ) -> Response:
        """The items of a stream, with a form to search them."""
        view = await self._gate.service.stream(stream)
        found = await self._gate.service.find_items(stream, search, cursor, ROWS)
        asked = {name: value for name, value in request.query_params.items() if value}
        asked.pop("cursor", None)
        more = None if found.next is None else urlencode({**asked, "cursor": found.next})
        return self._console(
            "items.html",
            request,
            view,
            found=found.items,
            more=more,
            first=cursor is None,
            asked=asked,
            statuses=list(ItemStatus),
            reasons=[reason for reason in ExitReason if reason != ExitReason.HORIZON],
        )

    async def item(self, request: Request, stream: Stream, item: Item) -> Response:
        """An item: what it is, what became of it, and its story.

        The story is replayed from the log, which may take a while: the page asks for it on its
        own, with `?story=part`, or all at once, with `?story=whole`.
        """
        service, how = self._gate.service, request.query_params.get("story")
        view = await service.stream(stream)
        shown = await service.item(stream, item)
        told: dict[str, Any] = {"lines": None, "chart": None, "complete": True}
        if how in ("part", "whole"):
            explained = await self._gate.long_poll(request, service.explain(stream, item, True))
            told = {
                "lines": story_of(shown, explained),
                "chart": chart_of(explained.beliefs),
                "complete": explained.complete,
            }
        page = "story.html" if how == "part" else "item.html"
        judges = may(caller(request), "/streams/{stream}/reviews")
        left = shown.status == ItemStatus.LEFT and shown.gold is None
        due = judges and left and await service.is_due(stream, item)
        one = {"item": shown.id, "verdict": shown.verdict} if judges and left and not due else None
        pictures = pictures_of(shown.payload, await service.layout(stream))
        return self._console(
            page, request, view, item=shown, pictures=pictures, one=one, due=due, **told
        )

    async def reviews(
        self,
        request: Request,
        stream: Stream,
        kind: Annotated[Kind | None, Query()] = None,
        cursor: Cursor = None,
    ) -> Response:
        """The verdicts that wait for a reviewer, with a form for each."""
        service = self._gate.service
        view, layout = await service.stream(stream), await service.layout(stream)
        found = await service.reviews(stream, kind, cursor)
        payloads = await service.payloads(stream, [one.item for one in found.items])
        pictures = {item: pictures_of(payload, layout) for item, payload in payloads.items()}
        asked = {"kind": kind} if kind else {}
        more = None if found.next is None else urlencode({**asked, "cursor": found.next})
        return self._console(
            "reviews.html", request, view, found=found, kind=kind, more=more, pictures=pictures
        )

    async def audit(
        self,
        request: Request,
        stream: Named = None,
        action: Named = None,
        before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    ) -> Response:
        """Who did what, the latest first."""
        service = self._gate.service
        rows = await service.recent_audit(before, ROWS, stream, action)
        asked = {k: v for k, v in (("stream", stream), ("action", action)) if v}
        more = urlencode({**asked, "before": rows[-1].n}) if len(rows) == ROWS else None
        who, streams = caller(request), [one.name for one in await service.streams()]
        return self._page(
            "audit.html", who, rows=rows, asked=asked, more=more, streams=streams, first=not before
        )

    def _console(self, template: str, request: Request, stream: Any, **more: Any) -> Response:
        """A page about a stream."""
        who = caller(request)
        pages = [page for page in PAGES if may(who, f"/streams/{{stream}}{page[0]}")]
        return self._page(template, who, stream=stream, pages=pages, **more)


def may(who: Caller, path: str) -> bool:
    """Whether somebody may see a page.

    >>> from venire.model import Role
    >>> may(Caller("k", "Ann", Role.VIEWER, None), "/streams/{stream}/reviews")
    False
    """
    return who.role in (ROLES[f"GET {path}"] or ())
