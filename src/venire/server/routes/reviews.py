"""Reviews: the verdicts that wait for a person, and what the person says; and all gold."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from venire.server.console_messages import Reviewed, ReviewsPage, SentBackView
from venire.server.edge.answers import body, json_answer, lines_answer, says
from venire.server.edge.bodies import NDJSON, ReviewBody, SendBackBody, read
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Limit, Stream, stream_parameter
from venire.server.operations.reviewing import Kind, Order
from venire.server.settings import LONGEST_ID

__all__ = ["ReviewRoutes"]

ORDER = "The least confident first, or those whose truth tells most about who is right."
EXAMPLE = {"item": "post-1", "label": "ok", "note": "a quotation"}
BACK = {"item": "post-1", "min_confidence": 0.95}


class ReviewRoutes:
    """For admins and reviewers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service = gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        one = "/v1/streams/{stream}"
        for path, method, endpoint, more in (
            ("reviews", "GET", self.reviews, _reads(ReviewsPage, "Verdicts that wait.")),
            ("reviews", "POST", self.review, _takes(Reviewed, "Confirmed or overridden.", EXAMPLE)),
            ("send-back", "POST", self.send_back, _takes(SentBackView, "It comes again.", BACK)),
            ("gold", "GET", self.gold, {
                "response_class": Response,
                "responses": says(404, 422, text="Gold, one per line, by item.", kind=NDJSON),
            }),
        ):  # fmt: skip
            app.add_api_route(f"{one}/{path}", endpoint, methods=[method], tags=["reviews"], **more)

    async def reviews(
        self,
        stream: Stream,
        kind: Annotated[Kind | None, Query(description="Only verdicts of this kind.")] = None,
        cursor: Annotated[
            str | None, Query(description="The `next` of an earlier answer.", max_length=100)
        ] = None,
        limit: Annotated[int, Query(description="Maximum number of results.", ge=1, le=500)] = 20,
        order: Annotated[Order, Query(description=ORDER)] = "doubt",
    ) -> Response:
        """Audits that are due, then verdicts without gold: the least confident, or most telling."""
        return json_answer(await self._service.reviews(stream, kind, cursor, limit, order))

    @by_hand
    async def review(self, request: Request) -> Response:
        """Confirm or override a verdict: the label becomes gold, and the verdict. Idempotent.

        With `correct`, what was judged otherwise before is corrected.
        """
        sent, stream = await read(request, ReviewBody), request.path_params["stream"]
        who = caller(request).actor
        return json_answer(
            await self._service.review(stream, sent.item, sent.label, sent.note, who, sent.correct)
        )

    @by_hand
    async def send_back(self, request: Request) -> Response:
        """Send an item that has left back for more labels; it comes again. Idempotent."""
        sent, stream = await read(request, SendBackBody), request.path_params["stream"]
        who = caller(request).actor
        work = self._service.send_back(stream, sent.item, who, sent.min_confidence, sent.note)
        return json_answer(await work)

    async def gold(
        self,
        stream: Stream,
        after: Annotated[
            str | None, Query(description="The item to continue behind.", max_length=LONGEST_ID)
        ] = None,
        limit: Limit = 1000,
    ) -> Response:
        """All gold, by item: who said it, when, how it came, and what was corrected."""
        found = await self._service.gold(stream, after, limit)
        return await lines_answer(found, {})


def _reads(model: type, text: str) -> dict[str, Any]:
    """How a route that reads is described."""
    return {"response_model": model, "responses": says(404, 422, text=text)}


def _takes(model: type, text: str, example: dict[str, Any]) -> dict[str, Any]:
    """How a route that takes a body is described."""
    sent = "SendBackBody" if model is SentBackView else "ReviewBody"
    return {
        "response_model": model,
        "responses": says(404, 409, 413, 415, 422, text=text),
        "openapi_extra": stream_parameter(body(sent, example=example)),
    }
