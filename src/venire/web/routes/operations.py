"""What those who run the server look at: health, readiness, metrics, version, documentation."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST

from venire import __version__
from venire.web.answers import ErrorAnswer, json_answer, says
from venire.web.errors import RequestError
from venire.web.guard import Gate

__all__ = ["OperationRoutes"]


class OperationRoutes:
    """What monitors use."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate = gate

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        none: dict[int | str, dict[str, Any]] = {}
        down: dict[int | str, dict[str, Any]] = {
            503: {"description": "The store takes nothing for now.", "model": ErrorAnswer}
        }
        for path, endpoint, responses in (
            ("/health", self.health, none),
            ("/ready", self.ready, down),
            ("/version", self.version, says()),
        ):
            app.add_api_route(
                path, endpoint, methods=["GET"], tags=["operations"], responses=responses
            )
        app.add_api_route(
            "/metrics",
            self.metrics,
            methods=["GET"],
            tags=["operations"],
            response_class=Response,
            responses=says(kind="text/plain", text="In the text format of Prometheus."),
        )

    async def health(self) -> Response:
        """The process is alive."""
        return json_answer({"status": "ok"})

    async def ready(self) -> Response:
        """The server takes work: the store can be written to, and it is not stopping."""
        if self._gate.stopping.is_set() or not self._gate.service.up:
            raise RequestError(
                503, "not_ready", "the store takes nothing for now", hint="look at the log"
            )
        aside = len(self._gate.service.set_aside)
        return json_answer({"status": "ready", **({"set_aside": aside} if aside else {})})

    async def version(self) -> Response:
        """The version of the server."""
        return json_answer({"version": __version__, "api": "v1"})

    async def metrics(self) -> Response:
        """The counters of the server and the figures of every stream."""
        service = self._gate.service
        figures = [await service.insights(stream.name) for stream in await service.streams()]
        aside = len(service.set_aside)
        page = self._gate.metrics.page(figures, self._gate.waiting.now, service.up, aside)
        return Response(page, media_type=CONTENT_TYPE_LATEST)
