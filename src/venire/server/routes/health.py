"""For operators: health, readiness, metrics, version."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST

from venire import __version__
from venire.errors import StoreDown
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate
from venire.server.edge.parameters import serves


class HealthRoutes:
    """For monitoring."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate = gate

    @serves("health", "operations")
    async def health(self) -> Any:
        """The process is alive; a standby is one that cannot write to the store.

        A member shares the store with other servers, and says how many streams it owns. All say
        how many streams are not loaded yet, and how many cannot be, if there are any.
        """
        service = self._gate.service
        if service.started and not service.up:
            return {"status": "ok", "role": "standby"}
        if self._gate.peers is None:
            return {"status": "ok", "role": "leader", **self._not_served()}
        owned = len(service.runtime.storage.claims())
        return {"status": "ok", "role": "member", "streams": owned, **self._not_served()}

    def _not_served(self) -> dict[str, int]:
        """How many streams are not loaded, by why."""
        service = self._gate.service
        counts = {"loading": service.loading, "set_aside": len(service.set_aside)}
        return {why: number for why, number in counts.items() if number}

    @serves("ready", "operations", 503)
    async def ready(self) -> Any:
        """Whether the server is ready: the store accepts writes, and it is not stopping.

        Streams may still be loading; a request has its stream loaded first.
        """
        if self._gate.stopping.is_set() or not self._gate.service.up:
            raise RequestError(
                503, "not_ready", "the store does not accept writes", hint="see the log"
            )
        return {"status": "ready", **self._not_served()}

    @serves("version", "operations")
    async def version(self) -> Any:
        """The version of the server."""
        return {"version": __version__, "api": "v1"}

    @serves("metrics", "operations", kind="text/plain",
            text="Metrics in the Prometheus text format.")  # fmt: skip
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
