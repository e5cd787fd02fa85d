"""Limits for each caller: bytes in a body, requests per second, waiting connections, seconds.

How long a body may be depends on the route and the role: `BODIES` says so, and the table in
docs/serve.md. What a longer one costs to parse is never paid: it is refused before it is read.

Rates are limited by the generic cell rate algorithm, with one number per key: the time at which its
bucket would be empty again. A request that costs c moves it c / rate seconds on, and is refused
while it lies more than burst / rate seconds ahead of now.

Uvicorn waits forever for a client that has connected and sends nothing, or sends its headers or its
body a byte at a time (Slowloris); enough of those and no connections are left for others. It also
keeps whatever comes as a head, which needs no key: a few connections fill the memory. So a head,
and what there is around the parts of a body, has a limit (`timed`).

Whatever was sent to a process while it was suspended is there when it wakes: requests of callers
who have long gone to another server, up to some thousands. They are not begun, or those who call
now would have to wait for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from venire.model import Role
from venire.server.edge.errors import RequestError, error_response

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * KIBIBYTE

#: Bytes of a body that holds one object, and of one that a route does not read.
SMALL: Final = 64 * KIBIBYTE

#: Bytes of the bodies of other routes, by role; 0 for the server's `max_body`. None: all roles.
BODIES: Final = MappingProxyType[str, dict[Role | None, int]](
    {
        "POST /sign-in": {None: 4 * KIBIBYTE},
        "POST /sign-out": {None: 4 * KIBIBYTE},
        "POST /join/{stream}": {None: 4 * KIBIBYTE},
        "POST /v1/streams/{stream}/items": {None: 0},
        "POST /v1/streams/{stream}/upload": {None: 0},
        "POST /v1/streams/{stream}/labels": {None: 0, Role.LABELER: MEBIBYTE},
        "POST /v1/streams/{stream}/gold": {None: MEBIBYTE, Role.ADMIN: 0},
        "POST /v1/streams": {None: 2 * MEBIBYTE},
        "PATCH /v1/streams/{stream}": {None: 2 * MEBIBYTE},
        "POST /v1/streams/{stream}/what-if": {None: 256 * KIBIBYTE},
    }
)


#: How much of a body that is too long is still read, and for how long, before closing.
LINGER_BYTES, LINGER_SECONDS = 64 * 1024 * 1024, 5.0


class Rates:
    """Requests per second for each caller.

    >>> now = [0.0]
    >>> rates = Rates(per_second=2, burst=2, clock=lambda: now[0])
    >>> [rates.delay("ann") for _ in range(3)], rates.delay("bob")
    ([0.0, 0.0, 0.5], 0.0)
    >>> now[0] = 0.5
    >>> rates.delay("ann")
    0.0
    """

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """A `per_second` of 0 means no limit."""
        self._per_second, self._clock = per_second, clock
        self._slack = (burst - 1) / per_second if per_second else 0.0
        self._empty: dict[str, float] = {}

    def delay(self, who: str) -> float:
        """0 if the request may pass, else the seconds to wait."""
        if not self._per_second:
            return 0.0
        now = self._clock()
        empty = self._empty.get(who, now)
        ahead = empty - now - self._slack
        if ahead > 1e-9:
            return ahead
        self._empty[who] = max(empty, now) + 1 / self._per_second
        return 0.0

    def check(self, who: str) -> None:
        """Raise a 429 if the request comes too early."""
        delay = self.delay(who)
        if delay:
            raise RequestError(
                429,
                "too_many_requests",
                f"this key may send {self._per_second:g} requests per second",
                hint="wait for as long as Retry-After says, or send items and labels in batches",
                retry_after=delay,
            )


def most_bytes(route: str, role: Role | None, most: int) -> int:
    """How long the body of a request may be, where the server's limit is `most`.

    >>> most_bytes("POST /v1/streams/{stream}/labels", Role.PRODUCER, 8 * MEBIBYTE) // MEBIBYTE
    8
    >>> most_bytes("POST /v1/streams/{stream}/labels", Role.LABELER, 8 * MEBIBYTE) // MEBIBYTE
    1
    """
    by_role = BODIES.get(route, {None: SMALL})
    return min(by_role.get(role, by_role[None]) or most, most)


class Waiting:
    """Concurrent requests of a kind (that wait, or are being sent): in all, and by one key.

    >>> waiting = Waiting(most=3, each=2)
    >>> with waiting.one("key_a"), waiting.one("key_a"):
    ...     waiting.now
    2
    """

    def __init__(self, most: int, each: int, kind: str = "waiting") -> None:
        self.most, self.each, self.now, self._kind = most, each, 0, kind
        self._by_key: dict[str, int] = {}

    @contextmanager
    def one(self, key: str) -> Iterator[None]:
        """Hold a place for the duration of the block; raise a 429 if there is none."""
        self.check(key)
        self._change(key, 1)
        try:
            yield
        finally:
            self._change(key, -1)

    def _change(self, key: str, by: int) -> None:
        self.now += by
        self._by_key[key] = self._by_key.get(key, 0) + by
        if not self._by_key[key]:
            del self._by_key[key]

    def check(self, key: str) -> None:
        """Raise a 429 if there is no place, or none for this key."""
        if self._by_key.get(key, 0) >= self.each:
            self._refuse(
                f"{self.each} requests of this key are {self._kind}, the limit for one key"
            )
        if self.now >= self.most:
            self._refuse(f"{self.now} requests are {self._kind}, the limit")

    def _refuse(self, what: str) -> None:
        raise RequestError(
            429,
            "too_many_waiting",
            what,
            hint="retry after Retry-After, or use wait=0",
            retry_after=1.0,
        )


class BodyLimit:
    """Middleware that refuses a body that is too long, by its Content-Length if it has one.

    A body of unknown length is counted as it arrives. Routes may allow less (`Body.limit`). The
    response is sent at once; but many clients send the whole body before they read, and one whose
    connection is closed meanwhile sees a reset instead of the response. So the rest is read and
    discarded for a while first.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = scope["venire.body"] = Body(scope, receive, send)
        try:
            body.limit(self._most)
        except RequestError as fault:
            await error_response(fault)(scope, body.receive, body.send)
        else:
            await self._app(scope, body.receive, body.send)


class Body:
    """The body of a request, counted; one that is too long is discarded before the answer ends."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send, self._most = receive, send, 0
        self._seen, self._ended, self._over = 0, False, False
        announced = next((v for name, v in scope["headers"] if name == b"content-length"), b"0")
        self._announced = int(announced) if announced.isdigit() and len(announced) < 20 else None

    def limit(self, most: int) -> None:
        """Allow a body of this size; raises a 413 if a larger one is announced."""
        self._most = most
        if self._announced is None or self._announced > most:
            self._over = True
            raise _too_long(most)

    async def receive(self) -> Message:
        """The next chunk; raises a 413 if the body is too long."""
        message = await self._next()
        if self._seen > self._most:
            self._over = True
            raise _too_long(self._most)
        return message

    async def send(self, message: Message) -> None:
        """Send the response; if the body is too long, discard the rest of it before the end."""
        if self._over and message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        elif self._over and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def _next(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)  # also after a disconnect
        return message

    async def _drain(self) -> None:
        most = self._seen + LINGER_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended and self._seen < most:
                    await self._next()


def _too_long(most: int) -> RequestError:
    return RequestError(
        413,
        "body_too_large",
        f"the body is longer than {most:,} bytes, the limit for this route and role",
        hint="send fewer items or labels in one request; nothing in this one was accepted",
    )


_END: Final = b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout" + _END
_TOO_LONG: Final = b"HTTP/1.1 431 Request Header Fields Too Large" + _END

#: Bytes of a request that are not its body, and more for each byte of it that comes in chunks.
LONGEST_HEAD: Final = 64 * 1024
FRAMING: Final = 16

#: The most bytes that come at once.
READ: Final = 256 * 1024

#: What the kernel says of a connection that the other side has closed, where it can say so.
_CLOSED: Final[int] = getattr(select, "POLLRDHUP", 0)


def timed(head: float, body: float) -> type[HttpToolsProtocol]:
    """A protocol with timeouts for the head and the body of each request.

    >>> issubclass(timed(5.0, 30.0), HttpToolsProtocol)
    True
    """

    class Timed(HttpToolsProtocol):
        """A connection, with a timer that runs while a head is awaited or a request received."""

        _timer: asyncio.TimerHandle | None = None
        _in_body = False
        _beside = 0  # bytes of the request that are not its body, less what is allowed beside that

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.app = _if_there(self, self.app)
            self._begun: deque[RequestResponseCycle] = deque()

        def connection_made(self, transport: Any) -> None:
            """Start the timer for the first request."""
            super().connection_made(transport)
            self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop the timer, and tell every request: Uvicorn tells the latest alone."""
            self._stop()
            super().connection_lost(exc)
            for cycle in self._begun:
                cycle.disconnected = cycle.disconnected or not cycle.response_complete
                cycle.message_event.set()

        def data_received(self, data: bytes) -> None:
            """Take what has come; refuse a request of which too much is not its body."""
            if self.transport.is_closing():
                return
            self._beside += len(data)
            super().data_received(data)
            if self._beside > LONGEST_HEAD:
                self._refuse(_TOO_LONG)

        def on_message_begin(self) -> None:
            """Start the timer; requests after the first had the keep-alive timeout until now."""
            self._begin()
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """The head is complete: time the body."""
            self._stop()
            if len(self.url) + sum(len(x) + len(y) + 4 for x, y in self.headers) > LONGEST_HEAD:
                self._refuse(_TOO_LONG)
                raise ValueError("the head is too long")  # nothing more is parsed
            self._timer, self._in_body = self.loop.call_later(body, self._refuse, _TOO_SLOW), True
            super().on_headers_complete()
            while self._begun and self._begun[0].response_complete:
                self._begun.popleft()
            self._begun.append(self.cycle)

        def on_header(self, name: bytes, value: bytes) -> None:
            """Take a header; nobody needs one behind the body."""
            if self._in_body:
                self._refuse(_TOO_LONG)
                raise ValueError("trailers are not accepted")
            super().on_header(name, value)

        def on_body(self, part: bytes) -> None:
            self._beside = max(self._beside - (1 + FRAMING) * len(part), -READ)
            super().on_body(part)

        def on_message_complete(self) -> None:
            self._stop()
            self._beside = -READ  # what came with the end of this one may be of the next
            super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            """Say that this is no HTTP, unless something was said already."""
            if not self.transport.is_closing():
                super().send_400_response(msg)

        def _begin(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head, self._refuse, _TOO_SLOW)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._in_body = False

        def _refuse(self, told: bytes) -> None:
            """Close the connection, and say why unless an answer is under way."""
            if self.transport.is_closing():
                return
            if self._in_body:
                untold = not self.cycle.response_started
            else:
                untold = self.cycle is None or self.cycle.response_complete
            if untold:
                self.transport.write(told)
            self.transport.close()

    return Timed


def _if_there(connection: HttpToolsProtocol, app: ASGIApp) -> ASGIApp:
    """The application, for callers who have not gone before their turn came."""

    async def begin(scope: Scope, receive: Receive, send: Send) -> None:
        if not is_closed(connection.transport):
            return await app(scope, receive, send)
        connection.transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass  # it is known in a moment

    return begin


def is_closed(transport: asyncio.BaseTransport) -> bool:
    """Whether the other side has closed a connection, also if that was not read yet."""
    if not _CLOSED or transport.is_closing():
        return transport.is_closing()
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), _CLOSED)
    return bool(poll.poll(0))
