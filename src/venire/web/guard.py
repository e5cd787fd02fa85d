"""What every route goes through: the key, its role, the rate, the count, the errors.

`Guarded` is a FastAPI route that asks for the key before it looks at anything else, so that a
stranger learns nothing from a wrong body. An endpoint marked `by_hand` reads its request and
writes its answer itself, without FastAPI's models in between: the routes that carry thousands
of requests a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from venire.errors import VenireError
from venire.service import Service
from venire.web.access import ROLES, Caller, admit
from venire.web.errors import RequestError, error_of, error_response, internal_error, invalid
from venire.web.limits import Rates, Waiting
from venire.web.metrics import Metrics
from venire.web.settings import ServerSettings

__all__ = ["Gate", "Guarded", "by_hand", "caller"]

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Gate:
    """What the routes of one server share."""

    def __init__(self, service: Service, settings: ServerSettings) -> None:
        """Nobody waits yet."""
        self.service, self.settings = service, settings
        self.rates = Rates(settings.rate, settings.burst)
        self.waiting = Waiting(settings.max_waiting)
        self.metrics = Metrics()
        self.stopping = asyncio.Event()
        self.error_page: Callable[[Request, RequestError], Response] | None = None

    def admit(self, request: Request, route: str) -> None:
        """Let the request pass, with `request.state.caller`, or raise what is wrong."""
        if not self.service.started and route != "GET /health":
            raise RequestError(
                503, "starting", "the server is starting", hint="try again", retry_after=1.0
            )
        roles = ROLES[route]
        if roles is None:
            return
        who = admit(request, self.service.keys, roles, route)
        self.rates.check(who.key)
        request.state.caller = who

    def told(self, request: Request, fault: RequestError) -> Response:
        """An error as an answer; for somebody with a browser as a page, or the way to sign in."""
        if "text/html" not in request.headers.get("accept", ""):
            return error_response(fault)
        url = request.url
        if fault.status == 401:
            to = f"?{urlencode({'to': f'{url.path}?{url.query}'})}" if url.query else ""
            return RedirectResponse(f"/{to}", 303)
        if self.error_page is None or url.path.startswith("/v1/"):
            return error_response(fault)
        return self.error_page(request, fault)

    def wait_of(self, seconds: float) -> float:
        """How long a request may wait that asks for so long."""
        return min(seconds, self.settings.max_wait)

    async def patiently(
        self,
        request: Request,
        work: Coroutine[Any, Any, T],
        undo: Callable[[T], Awaitable[None]] | None = None,
    ) -> T:
        """Do what may take long, but not for a client that has gone, nor when told to stop.

        `undo` is called with what was done for a client that went in the same moment.
        """
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_gone(request))
        stop = asyncio.ensure_future(self.stopping.wait())
        try:
            with self.waiting.one():
                await asyncio.wait({task, gone, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if task.cancelled():
            raise stopping_error()
        result = task.result()
        if undo is not None and gone.done() and not gone.cancelled():
            await undo(result)
        return result


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def stopping_error() -> RequestError:
    """What those who wait are told when the server stops."""
    return RequestError(
        503, "stopping", "the server is stopping", hint="try again when it is back", retry_after=2.0
    )


def caller(request: Request) -> Caller:
    """Who was let in."""
    who = request.state.caller
    assert isinstance(who, Caller)
    return who


def by_hand(endpoint: F) -> F:
    """Mark an endpoint that takes the request and gives the response, with nothing in between."""
    endpoint.by_hand = True  # type: ignore[attr-defined]
    return endpoint


class Guarded(APIRoute):
    """A route behind the gate; subclasses set `gate`."""

    gate: ClassVar[Gate]

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, endpoint, **more)
        if getattr(endpoint, "by_hand", False):
            self.app = _straight(self.get_route_handler())

    def get_route_handler(self) -> Handler:
        """The handler with the gate around it."""
        method = next(iter(self.methods or ()))
        route = f"{method} {self.path_format}"
        if route not in ROLES:
            raise KeyError(f"{route} is not in the table of roles")
        inner = (
            self.endpoint
            if getattr(self.endpoint, "by_hand", False)
            else super().get_route_handler()
        )
        gate, record = self.gate, self.gate.metrics.recorder(method, self.path_format)

        async def handler(request: Request) -> Response:
            start = time.perf_counter()
            try:
                gate.admit(request, route)
                response: Response = await inner(request)
            except Exception as error:
                response = gate.told(request, _fault(error))
            record(response.status_code, time.perf_counter() - start)
            return response

        return handler


def _straight(handler: Handler) -> ASGIApp:
    """The handler without what FastAPI puts around it for dependencies, which these have none."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await handler(Request(scope, receive, send))
        await response(scope, receive, send)

    return app


def _fault(error: Exception) -> RequestError:
    if isinstance(error, HTTPException) and isinstance(error.__cause__, VenireError):
        error = error.__cause__
    if isinstance(error, VenireError):
        return error_of(error)
    if isinstance(error, RequestValidationError):
        return invalid(error)
    if isinstance(error, HTTPException):
        raise error
    return internal_error(error)
