"""Gold, and the accuracy audits of a stream."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from venire.model import Role
from venire.server.edge.answers import body, json_answer, outcomes_answer, says
from venire.server.edge.blind import Blind
from venire.server.edge.bodies import CSV, GoldBody, read_list
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Level, Stream, flag, flag_parameter, stream_parameter
from venire.server.messages import AuditsView, GoldIn

__all__ = ["GoldRoutes"]

EXAMPLE = [{"item": "post-1", "label": "ok"}]
CORRECT = "Gold that says otherwise than before takes its place; it is refused without."


class GoldRoutes:
    """For admins, reviewers and trusted labelers; the bounds for readers too."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_api_route(
            "/v1/streams/{stream}/audits",
            self.audits,
            methods=["GET"],
            tags=["reading"],
            response_model=AuditsView,
            responses=says(404, 422, text="The bounds on the rate of errors."),
        )
        app.add_api_route(
            "/v1/streams/{stream}/gold",
            self.add_gold,
            methods=["POST"],
            tags=["work"],
            responses=says(403, 404, 409, 413, 415, 422, text="The outcome of the gold."),
            openapi_extra=flag_parameter(
                "correct",
                CORRECT,
                stream_parameter(body("GoldBody", lists=True, example=EXAMPLE)),
            ),
        )

    async def audits(self, request: Request, stream: Stream, level: Level = 0.95) -> Response:
        """What accuracy audits prove: bounds on the rate of errors that hold at all times."""
        listed = await self._may_judge(request, stream)
        if not listed and caller(request).role == Role.LABELER:
            raise _not_trusted(caller(request).labeler)
        view = await self._service.audits(stream, level, listed)
        blind = Blind(frozenset(), hides=listed and caller(request).role != Role.ADMIN)
        return json_answer(blind.audits(view))

    @by_hand
    async def add_gold(self, request: Request) -> Response:
        """Add gold of any items, idempotent; verdicts become the gold.

        Other gold for the same item is refused, or with `correct=true` takes its place: who
        corrected what is kept, and what had been learned from it is learned again.
        """
        stream, most = request.path_params["stream"], self._gate.settings.max_batch
        if not await self._may_judge(request, stream):
            raise _not_trusted(caller(request).labeler)
        rows = await read_list(
            request, GoldBody, most, lambda _, row: GoldIn(row["item"], row["label"]), CSV
        )
        correct = flag(request, "correct")
        outcomes = await self._service.add_gold(stream, rows, caller(request).actor, correct)
        counts = "accepted", "exists", "corrected", "refused"
        return await outcomes_answer(outcomes, *counts, notes=True)

    async def _may_judge(self, request: Request, stream: str) -> bool:
        """Whether the caller is an admin, a reviewer, or a labeler whom the stream trusts."""
        who = caller(request)
        if who.role == Role.LABELER and who.labeler is not None:
            return await self._service.is_trusted(stream, who.labeler)
        return who.role in (Role.ADMIN, Role.REVIEWER)


def _not_trusted(labeler: str | None) -> RequestError:
    return RequestError(
        403,
        "not_trusted",
        f"the labeler {labeler!r} is not trusted in this stream",
        hint="an admin may set trusted: true in its panel, or use an admin key",
    )
