"""What every route goes through: authentication, roles, rate limits, metrics, errors.

`Guarded` is a FastAPI route that checks the key before anything else, so that an unauthenticated
client learns nothing from an invalid body. Who may use it is in `venire.operations`, and for pages
in `PAGES`: a route that is in neither cannot be added, so none can be forgotten. A labeler's key is
bound to one labeler and acts only as that labeler. An endpoint marked `by_hand` parses its request
and writes its response itself, without FastAPI's models in between: for the routes that serve
thousands of requests per second.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from venire.errors import StoreDown, VenireError
from venire.model import Role
from venire.operations import (
    ADMIN,
    EVERYBODY,
    OPERATIONS,
    PRODUCERS,
    READERS,
    REVIEWERS,
    WORKERS,
)
from venire.server.actors import Actor
from venire.server.edge.errors import (
    RequestError,
    error_of,
    error_response,
    internal_error,
    invalid,
)
from venire.server.edge.limits import Body, Rates, Waiting, most_bytes
from venire.server.edge.monitoring import Metrics
from venire.server.edge.oidc import provider_of

if TYPE_CHECKING:
    from venire.server.admin_messages import KeyView
    from venire.server.edge.peers import Peers
    from venire.server.edge.settings import ServerSettings
    from venire.server.service import Service

COOKIE: Final = "venire_session"

#: Who may see each page, or send what its forms send; None for what needs no key.
PAGES: Final = MappingProxyType[str, frozenset[Role] | None](
    {
        "GET /": None,
        "POST /sign-in": None,
        "GET /sign-in": None,
        "POST /sign-out": None,
        "GET /sign-in/oidc": None,
        "GET /sign-in/oidc/callback": None,
        "GET /join/{stream}": None,
        "POST /join/{stream}": None,
        "GET /docs": EVERYBODY,
        "GET /live": READERS,
        "GET /work": WORKERS,
        "GET /audit": ADMIN,
        "GET /new-stream": ADMIN,
        "GET /archived": READERS,
        "GET /streams/{stream}": READERS,
        "GET /streams/{stream}/settings": READERS,
        "GET /streams/{stream}/what-if": READERS,
        "GET /streams/{stream}/items": READERS,
        "GET /streams/{stream}/upload": PRODUCERS,
        "GET /streams/{stream}/webhooks": ADMIN,
        "GET /streams/{stream}/export": OPERATIONS["export"].roles,
        "GET /streams/{stream}/reviews": REVIEWERS,
        "GET /streams/{stream}/labelers": READERS,
        "GET /streams/{stream}/items/{item}": READERS,
    }
)

#: Roles by route, of operations and pages.
ROLES: Final = MappingProxyType[str, frozenset[Role] | None](
    {one.route: one.roles for one in OPERATIONS.values()} | PAGES
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    key: str
    name: str
    role: Role
    labeler: str | None

    @property
    def actor(self) -> Actor:
        """The caller in the audit trail."""
        return Actor(self.name, self.key)

    def bound_to(self) -> str | None:
        """The only labeler whose leases the caller may use; None for any."""
        return self.labeler if self.role == Role.LABELER else None

    def as_labeler(self, asked: str | None) -> str:
        """The labeler that the caller acts as."""
        if self.role == Role.LABELER:
            if self.labeler is None or asked not in (None, self.labeler):
                raise RequestError(
                    403,
                    "not_your_labeler",
                    f"this key is bound to the labeler {self.labeler!r}, not {asked!r}",
                    hint="leave the labeler out, or use the key of that labeler",
                )
            return self.labeler
        if not asked:
            raise RequestError(
                422,
                "invalid",
                "labeler is missing, expected the id of a labeler",
                hint="only the key of a labeler may leave it out",
            )
        return asked


def token_of(request: Request) -> tuple[str | None, bool]:
    """The token of a request, and whether it is a session token, from the cookie.

    `Authorization: Bearer` or `Token`, or `X-Api-Key`, take precedence over the cookie.
    """
    headers = request.headers
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if token and scheme.lower() in ("bearer", "token"):
        return token.strip(), False
    token = headers.get("x-api-key", "")
    if token:
        return token, False
    return request.cookies.get(COOKIE), True


def key_of(request: Request, service: Service) -> KeyView | None:
    """The key of a request or of its session, if it is valid."""
    token, from_page = token_of(request)
    if not token:
        return None
    return service.sessions.key_of(token) if from_page else service.keys.authenticate(token)


def admit(request: Request, service: Service, roles: frozenset[Role], what: str) -> Caller:
    """The authorized sender of a request; raises a 401 or 403 otherwise."""
    token, from_page = token_of(request)
    key = key_of(request, service)
    if key is None:
        if token and not from_page:
            request.scope["venire.refused"] = service.keys.known(token)
        raise no_key(token is not None)
    if from_page and foreign(request):
        raise RequestError(
            403, "foreign_page", "this came from another site", hint="use the pages of venire"
        )
    if key.role not in roles:
        raise RequestError(
            403,
            "not_allowed",
            f"a key with the role {key.role} may not use {what}",
            hint=f"it needs the role {' or '.join(sorted(roles))}",
        )
    return caller_of(key)


def no_key(sent: bool) -> RequestError:
    """The error for a request without a key, or with an invalid one."""
    return RequestError(
        401,
        "unknown_key" if sent else "no_key",
        "this key is unknown, revoked or expired" if sent else "a key is required",
        hint="send Authorization: Bearer vk_...; `venire keys create` creates a key",
    )


def caller_of(key: KeyView) -> Caller:
    return Caller(key.id, key.name, key.role, key.labeler)


def foreign(request: Request) -> bool:
    """Whether a page of another site made the request, by the headers that browsers send."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")


Handler = Callable[[Request], Coroutine[Any, Any, Response]]
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


#: Seconds between two readings of the keys for requests with an unknown one.
CATCH_UP_SECONDS: Final = 0.25


class Gate:
    """State shared by the routes of one server."""

    def __init__(self, service: Service, settings: ServerSettings) -> None:
        self.service, self.settings = service, settings
        self.rates = Rates(settings.rate, settings.burst)
        self.waiting = Waiting(settings.max_waiting, settings.max_waiting_per_key)
        self.sending = Waiting(settings.max_waiting, settings.max_waiting_per_key, "being sent")
        self.metrics = Metrics()
        self.stopping = asyncio.Event()
        self.error_page: Callable[[Request, RequestError], Response] | None = None
        self.peers: Peers | None = None  # the other servers, if the store is shared
        self.provider = provider_of(settings, service.runtime.clock)
        self._catching_up, self._caught_up = asyncio.Lock(), -math.inf

    def admit(self, request: Request, route: str) -> None:
        """Authorize a request and set `request.state.caller`, or raise an error."""
        if not self.service.started and route != "GET /health":
            raise RequestError(
                503, "starting", "the server is starting", hint="retry later", retry_after=1.0
            )
        roles = ROLES[route]
        if roles is None:
            return
        who = admit(request, self.service, roles, route)
        self.rates.check(who.key)
        request.state.caller = who

    async def enter(self, request: Request, route: str) -> None:
        """Admit a request; a key or session that is unknown may be new, of another server."""
        try:
            self.admit(request, route)
        except RequestError as fault:
            if fault.code != "unknown_key" or self.peers is None:
                raise
            await self.catch_up()
            self.admit(request, route)

    async def catch_up(self) -> None:
        """Read keys and sessions again, at most a few times a second for all who ask."""
        asked = time.monotonic()
        async with self._catching_up:
            if self.peers is None or self._caught_up >= asked:
                return
            await asyncio.sleep(self._caught_up + CATCH_UP_SECONDS - time.monotonic())
            self._caught_up = time.monotonic()
            with contextlib.suppress(StoreDown):
                await self.service.keys.refresh()
                await self.service.sessions.refresh()

    async def serve(self, request: Request, route: str, inner: Handler) -> Response:
        """Admit a request and serve it, here or by the owner of its stream."""
        await self.enter(request, route)
        if request.method not in ("GET", "HEAD"):
            await self._read(request, route)
        if self.peers is None:
            return await inner(request)
        return await self.peers.run(request, inner)

    async def _read(self, request: Request, route: str) -> None:
        """Read the body, as long as this route and role may send; its time is the connection's."""
        who: Caller | None = getattr(request.state, "caller", None)
        body: Body = request.scope["venire.body"]
        body.limit(most_bytes(route, who.role if who else None, self.settings.max_body))
        try:
            with self.sending.one(who.key if who else ""):
                await request.body()
        except ClientDisconnect:
            raise RequestError(400, "bad_request", "the body ended too early") from None

    def still_valid(self, request: Request) -> bool:
        """Whether the key of an admitted request is still valid."""
        return key_of(request, self.service) is not None

    def respond(self, request: Request, fault: RequestError) -> Response:
        """An error as a response; for a browser as a page, or a redirect to sign in."""
        if "text/html" not in request.headers.get("accept", ""):
            return error_response(fault)
        url = request.url
        if fault.status == 401:
            kept = url.query or url.path.startswith("/streams/")
            to = f"?{urlencode({'to': f'{url.path}?{url.query}'})}" if kept else ""
            return RedirectResponse(f"/{to}", 303)
        if self.error_page is None or url.path.startswith("/v1/"):
            return error_response(fault)
        return self.error_page(request, fault)

    def wait_of(self, seconds: float) -> float:
        """How long a request that asks for `seconds` may wait."""
        return min(seconds, self.settings.max_wait)

    async def long_poll(
        self,
        request: Request,
        work: Coroutine[Any, Any, T],
        undo: Callable[[T], Awaitable[None]] | None = None,
    ) -> T:
        """Run a slow operation; cancelled when the client disconnects or the server stops.

        `undo` is called with the result if the client disconnected at that moment, or its key was
        revoked meanwhile.
        """
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(disconnected(request))
        stop = asyncio.ensure_future(self.stopping.wait())
        try:
            with self.waiting.one(caller(request).key):
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
        valid = self.still_valid(request)
        if undo is not None and (not valid or (gone.done() and not gone.cancelled())):
            await undo(result)
        if not valid:
            raise no_key(sent=True)
        return result


async def disconnected(request: Request) -> None:
    """Return when the client is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def stopping_error() -> RequestError:
    """The error for waiting requests when the server stops."""
    return RequestError(
        503, "stopping", "the server is stopping", hint="retry when it is back", retry_after=2.0
    )


def caller(request: Request) -> Caller:
    """The sender of an admitted request."""
    who = request.state.caller
    assert isinstance(who, Caller)
    return who


def by_hand(endpoint: F) -> F:
    """Mark an endpoint that takes the raw request and returns the response itself."""
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
            raise KeyError(f"{route} is not in ROLES")
        inner = (
            self.endpoint
            if getattr(self.endpoint, "by_hand", False)
            else super().get_route_handler()
        )
        gate, record = self.gate, self.gate.metrics.recorder(method, self.path_format)
        path = self.path_format

        async def handler(request: Request) -> Response:
            start = time.perf_counter()
            request.scope["venire.route"] = path
            try:
                response = await gate.serve(request, route, inner)
            except Exception as error:
                response = gate.respond(request, _fault(error))
            if gate.peers is not None:
                gate.peers.sign(request, response)
            record(response.status_code, time.perf_counter() - start)
            return response

        return handler


def _straight(handler: Handler) -> ASGIApp:
    """The handler without FastAPI's dependency injection, which these routes do not use."""

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
