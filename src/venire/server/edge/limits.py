"""Limits for each caller: bytes in a body, requests per second, waiting connections.

How long a body may be depends on the route and the role: `BODIES` says so, and the table in
docs/serve.md. What a longer one costs to parse is never paid: it is refused before it is read.

Rates are limited by the generic cell rate algorithm, with one number per key: the time at which its
bucket would be empty again. A request that costs c moves it c / rate seconds on, and is refused
while it lies more than burst / rate seconds ahead of now.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
