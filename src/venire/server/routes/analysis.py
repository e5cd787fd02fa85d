"""What was learned of labelers, how the student learned, and what another plan would buy."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.blind import blind_for
from venire.server.edge.bodies import read
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Level, Stream, stream_parameter
from venire.server.edge.plans import PlanBody, plan_of
from venire.server.panel_messages import ConfusionView, LessonsView, RatesView, WhatIfView

__all__ = ["AnalysisRoutes"]

EXAMPLE = {"policy": "fixed-overlap:3", "without": ["ann"], "money": 50}

Labeler = Annotated[str, Query(description="The id of the labeler.", min_length=1, max_length=200)]


class AnalysisRoutes:
    """For readers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        one = "/v1/streams/{stream}"
        for path, endpoint, model, text in (
            ("confusion", self.confusion, ConfusionView, "The learned confusion matrix."),
            ("rates", self.rates, RatesView, "The rates, with their intervals."),
            ("lessons", self.lessons, LessonsView, "The latest versions of the student, in order."),
        ):
            told = says(404, *([] if path == "lessons" else [409]), 422, text=text)
            how: dict[str, Any] = {"methods": ["GET"], "tags": ["reading"], "response_model": model}
            app.add_api_route(f"{one}/{path}", endpoint, responses=told, **how)
        app.add_api_route(
            f"{one}/what-if",
            self.what_if,
            methods=["POST"],
            tags=["reading"],
            response_model=WhatIfView,
            responses=says(404, 409, 413, 415, 422, text="What it would have bought."),
            openapi_extra=stream_parameter(body("PlanBody", example=EXAMPLE)),
        )

    async def confusion(self, request: Request, stream: Stream, labeler: Labeler) -> Response:
        """How often a labeler says each class of items of each true class, as learned."""
        (await blind_for(self._service, caller(request), stream)).check_log()
        return json_answer(await self._service.confusion(stream, labeler))

    async def rates(self, request: Request, stream: Stream, level: Level = 0.95) -> Response:
        """How often each class comes, and how right and complete its verdicts are, by audits."""
        (await blind_for(self._service, caller(request), stream)).check_log()
        return json_answer(await self._service.rates(stream, level))

    async def lessons(self, request: Request, stream: Stream) -> Response:
        """How the student of a stream learned, version by version."""
        blind = await blind_for(self._service, caller(request), stream)
        return json_answer(blind.lessons(await self._service.lessons(stream)))

    @by_hand
    async def what_if(self, request: Request) -> Response:
        """What another policy, panel or budget would have bought, by replaying the log."""
        wanted, stream = await read(request, PlanBody), request.path_params["stream"]
        (await blind_for(self._service, caller(request), stream)).check_log()
        work = self._service.what_if(stream, plan_of(wanted), wanted.simulate_missing)
        return json_answer(await self._gate.long_poll(request, work))
