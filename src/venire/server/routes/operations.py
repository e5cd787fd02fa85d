"""For operators: health, readiness, metrics, version."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST

from venire import __version__
from venire.errors import StoreDown
from venire.server.edge.answers import ErrorAnswer, json_answer, says
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate

__all__ = ["OperationRoutes"]


class OperationRoutes:
    """For monitoring."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate = gate

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        none: dict[int | str, dict[str, Any]] = {}
        down: dict[int | str, dict[str, Any]] = {
            503: {"description": "The store does not accept writes.", "model": ErrorAnswer}
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
            responses=says(kind="text/plain", text="Metrics in the Prometheus text format."),
        )

    async def health(self) -> Response:
        """The process is alive; a standby is one that cannot write to the store.

        A member shares the store with other servers, and says how many streams it owns. All say
        how many streams are not loaded yet, and how many cannot be, if there are any.
        """
        service = self._gate.service
        if service.started and not service.up:
            return json_answer({"status": "ok", "role": "standby"})
        if self._gate.peers is None:
            return json_answer({"status": "ok", "role": "leader", **self._not_served()})
        owned = len(service.runtime.storage.claims())
        return json_answer(
            {"status": "ok", "role": "member", "streams": owned, **self._not_served()}
        )

    def _not_served(self) -> dict[str, int]:
        """How many streams are not loaded, by why."""
        service = self._gate.service
        counts = {"loading": service.loading, "set_aside": len(service.set_aside)}
        return {why: number for why, number in counts.items() if number}

    async def ready(self) -> Response:
        """Whether the server is ready: the store accepts writes, and it is not stopping.

        Streams may still be loading; a request has its stream loaded first.
        """
        if self._gate.stopping.is_set() or not self._gate.service.up:
            raise RequestError(
                503, "not_ready", "the store does not accept writes", hint="see the log"
            )
        return json_answer({"status": "ready", **self._not_served()})

    async def version(self) -> Response:
        """The version of the server."""
        return json_answer({"version": __version__, "api": "v1"})

    async def metrics(self) -> Response:
        """The metrics of the server and of every stream.

        While the store is down, or slow, those of streams are left out.
        """
        service, insights = self._gate.service, []
        with contextlib.suppress(StoreDown, TimeoutError):
            async with asyncio.timeout(service.patience):
                insights = await service.overview()
        condition, aside = await service.condition(), len(service.set_aside)
        now = self._gate.waiting.now
        page = self._gate.metrics.page(insights, now, service.up, condition, aside, service.loading)
        return Response(page, media_type=CONTENT_TYPE_LATEST)
