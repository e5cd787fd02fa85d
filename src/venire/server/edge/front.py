"""What listens: the application, or a few words as long as another server owns the store."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from venire.server.edge.answers import json_answer
from venire.server.edge.errors import RequestError, error_response
from venire.server.edge.guard import Gate

__all__ = ["Front"]


class Front:
    """An ASGI application that stands by until it is given the one that serves."""

    def __init__(self) -> None:
        """Standing by."""
        self._app: ASGIApp | None = None
        self.gate: Gate | None = None

    def open(self, app: ASGIApp, gate: Gate) -> None:
        """Serve this application from now on."""
        self._app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer that another server has the store."""
        if self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = _health() if Request(scope).url.path == "/health" else _elsewhere()
            await answer(scope, receive, send)


def _health() -> ASGIApp:
    return json_answer({"status": "ok", "role": "standby"})


def _elsewhere() -> ASGIApp:
    return error_response(
        RequestError(
            503,
            "standby",
            "this server stands by: another one owns the store",
            hint="send it to the leader; load balancers ask /ready",
            retry_after=1.0,
        )
    )
