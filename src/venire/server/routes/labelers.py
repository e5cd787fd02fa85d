"""Who labels a stream: adding, retiring and restoring labelers; how they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response

from venire.server.edge.answers import body, json_answer, says
from venire.server.edge.blind import blind_for
from venire.server.edge.bodies import LabelerBody, read
from venire.server.edge.guard import Gate, by_hand, caller
from venire.server.edge.parameters import Stream, stream_parameter
from venire.server.messages import StreamView
from venire.server.panel_messages import AgreementView
from venire.server.settings import Member

__all__ = ["LabelerRoutes"]


class LabelerRoutes:
    """For admins; the agreement for readers."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service = gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        one, named = "/v1/streams/{stream}", {"labeler": "ann"}
        changes: tuple[tuple[str, Callable[..., Any], str, dict[str, Any], str], ...] = (
            ("", self.join, "Member", {"id": "ann", "price": 0.05}, "It is on the panel."),
            ("/retire", self.retire, "LabelerBody", named, "It is given no more work."),
            ("/restore", self.restore, "LabelerBody", named, "It is given work again."),
        )
        for path, endpoint, sent, example, text in changes:
            app.add_api_route(
                f"{one}/labelers{path}",
                endpoint,
                methods=["POST"],
                tags=["streams"],
                response_model=StreamView,
                responses=says(404, 409, 413, 415, 422, text=text),
                openapi_extra=stream_parameter(body(sent, example=example)),
            )
        app.add_api_route(
            f"{one}/agreement",
            self.agreement,
            methods=["GET"],
            tags=["reading"],
            response_model=AgreementView,
            responses=says(404, 422, text="By the latest labels."),
        )

    @by_hand
    async def join(self, request: Request) -> Response:
        """Put a labeler on the panel, or change what the panel says of it."""
        member, stream = await read(request, Member), request.path_params["stream"]
        who = caller(request).actor
        return json_answer(await self._service.add_labeler(stream, member, who))

    @by_hand
    async def retire(self, request: Request) -> Response:
        """Give a labeler no more work; its labels stay, and what it holds it may still answer."""
        sent, stream = await read(request, LabelerBody), request.path_params["stream"]
        who = caller(request).actor
        return json_answer(await self._service.retire_labeler(stream, sent.labeler, who))

    @by_hand
    async def restore(self, request: Request) -> Response:
        """Give a retired labeler work again."""
        sent, stream = await read(request, LabelerBody), request.path_params["stream"]
        who = caller(request).actor
        return json_answer(await self._service.restore_labeler(stream, sent.labeler, who))

    async def agreement(self, request: Request, stream: Stream) -> Response:
        """How the labelers agree with gold, and with each other."""
        blind = await blind_for(self._service, caller(request), stream)
        return json_answer(blind.agreement(await self._service.agreement(stream)))
