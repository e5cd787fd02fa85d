"""Looking at a stream: its items, its trends, its alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Response
from pydantic import BeforeValidator, Field

from venire.model import ExitReason, ItemStatus
from venire.server.console_messages import AlarmsView, ItemsPage, TrendsView
from venire.server.edge.answers import json_answer, says
from venire.server.edge.blind import blind_for
from venire.server.edge.guard import Gate, caller
from venire.server.edge.moments import Since, Until
from venire.server.edge.parameters import Limit, Stream
from venire.server.settings import Name
from venire.server.store import ItemSearch

__all__ = ["FindRoutes", "Searched", "search_of"]


def _given(value: Any) -> Any:
    """None for an empty text: a form sends every field."""
    return None if value == "" else value


_EMPTY = BeforeValidator(_given)
_TEXT = "Only items with this text in the id or the payload; the case of letters a-z is ignored."
_AFTER = "The history after this number; without it, the latest."
_CURSOR = "The `next` of an earlier answer, for the same search."
Share = Annotated[Annotated[float, Field(ge=0, le=1)] | None, _EMPTY]
Words = Annotated[Annotated[str, Field(max_length=200)] | None, _EMPTY]
Chosen = Annotated[Name | None, _EMPTY]


def search_of(
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


class FindRoutes:
    """For readers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service = gate.service

    def add(self, app: FastAPI) -> None:
        """Add the route."""
        app.add_api_route(
            "/v1/streams/{stream}/items",
            self.find_items,
            methods=["GET"],
            tags=["items"],
            response_model=ItemsPage,
            responses=says(404, 422, text="Items, the latest arrival first."),
        )
        views: tuple[tuple[str, Callable[..., Any], type], ...] = (
            ("alarms", self.alarms, AlarmsView),
            ("trends", self.trends, TrendsView),
        )
        for path, endpoint, model in views:
            app.add_api_route(
                f"/v1/streams/{{stream}}/{path}",
                endpoint,
                methods=["GET"],
                tags=["reading"],
                response_model=model,
                responses=says(404, 422, text="The current state."),
            )

    async def alarms(
        self,
        request: Request,
        stream: Stream,
        after: Annotated[int | None, Query(description=_AFTER, ge=0, le=2**53)] = None,
        limit: Limit = 100,
    ) -> Response:
        """The alarms that are on, and what was raised and cleared after a number."""
        blind = await blind_for(self._service, caller(request), stream)
        return json_answer(blind.alarms(await self._service.alarms(stream, after, limit)))

    async def trends(self, request: Request, stream: Stream) -> Response:
        """The latest exits: verdicts against votes, estimated accuracy, and how they went."""
        blind = await blind_for(self._service, caller(request), stream)
        return json_answer(blind.trends(await self._service.trends(stream)))

    async def find_items(
        self,
        request: Request,
        stream: Stream,
        search: Searched,
        cursor: Annotated[str | None, Query(description=_CURSOR, max_length=2000)] = None,
        limit: Annotated[int, Query(description="Maximum number of items.", ge=1, le=1000)] = 50,
    ) -> Response:
        """List and search items; a search for something rare takes several requests."""
        blind = await blind_for(self._service, caller(request), stream)
        found = await self._service.find_items(stream, blind.search(search), cursor, limit)
        return json_answer(blind.page(found))
