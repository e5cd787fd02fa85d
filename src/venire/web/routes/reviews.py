"""Reviews: the verdicts that wait for a person, and what the person says; and all gold."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from venire.service.console_messages import Reviewed, ReviewsPage
from venire.service.settings import LONGEST_ID
from venire.service.verbs.reviewing import Kind
from venire.web.answers import body, json_answer, lines_answer, says
from venire.web.bodies import NDJSON, ReviewBody, read
from venire.web.guard import Gate, by_hand, caller
from venire.web.parameters import Limit, Stream, stream_parameter

__all__ = ["ReviewRoutes"]

EXAMPLE = {"item": "post-1", "label": "ok", "note": "a quotation"}


class ReviewRoutes:
    """For admins and reviewers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service = gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        one = "/v1/streams/{stream}"
        app.add_api_route(
            f"{one}/reviews",
            self.reviews,
            methods=["GET"],
            tags=["reviews"],
            response_model=ReviewsPage,
            responses=says(404, 422, text="Verdicts that wait for a reviewer."),
        )
        app.add_api_route(
            f"{one}/reviews",
            self.review,
            methods=["POST"],
            tags=["reviews"],
            response_model=Reviewed,
            responses=says(404, 409, 413, 415, 422, text="Confirmed, or overridden."),
            openapi_extra=stream_parameter(body("ReviewBody", example=EXAMPLE)),
        )
        app.add_api_route(
            f"{one}/gold",
            self.gold,
            methods=["GET"],
            tags=["reviews"],
            response_class=Response,
            responses=says(404, 422, text="Gold, one per line, by item.", kind=NDJSON),
        )

    async def reviews(
        self,
        stream: Stream,
        kind: Annotated[Kind | None, Query(description="Only verdicts of this kind.")] = None,
        cursor: Annotated[
            str | None, Query(description="The `next` of an earlier answer.", max_length=100)
        ] = None,
        limit: Annotated[int, Query(description="Maximum number of results.", ge=1, le=500)] = 20,
    ) -> Response:
        """Audits that are due, then the least confident verdicts without gold."""
        return json_answer(await self._service.reviews(stream, kind, cursor, limit))

    @by_hand
    async def review(self, request: Request) -> Response:
        """Confirm or override a verdict: the label becomes gold, and the verdict. Idempotent."""
        sent, stream = await read(request, ReviewBody), request.path_params["stream"]
        who = caller(request).actor
        return json_answer(
            await self._service.review(stream, sent.item, sent.label, sent.note, who)
        )

    async def gold(
        self,
        stream: Stream,
        after: Annotated[
            str | None, Query(description="The item to continue behind.", max_length=LONGEST_ID)
        ] = None,
        limit: Limit = 1000,
    ) -> Response:
        """All gold, by item: who said it, when, and whether by an audit, a review or otherwise."""
        found = await self._service.gold(stream, after, limit)
        return await lines_answer(found, {})
