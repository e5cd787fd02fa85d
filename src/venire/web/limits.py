"""Limits for each caller: bytes in a body, requests per second, waiting connections.

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

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venire.web.errors import RequestError, error_response

__all__ = ["BodyLimit", "Rates", "Waiting"]


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


class Waiting:
    """Concurrent long polls and event streams: in all, and by one key.

    >>> waiting = Waiting(most=3, each=2)
    >>> with waiting.one("key_a"), waiting.one("key_a"):
    ...     waiting.now
    2
    """

    def __init__(self, most: int, each: int) -> None:
        """At most `most` in all and `each` by one key."""
        self.most, self.each, self.now = most, each, 0
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
            self._refuse(f"{self.each} requests of this key are waiting, the limit for one key")
        if self.now >= self.most:
            self._refuse(f"{self.now} requests are waiting, the limit")

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

    A body of unknown length is counted as it arrives. The response is sent at once; but many
    clients send the whole body before they read, and one whose connection is closed meanwhile sees
    a reset instead of the response. So the rest is read and discarded for a while first.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        """Allow bodies of up to `most` bytes."""
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced: bytes | None = None
        for name, value in scope["headers"]:
            if name == b"content-length":
                announced = value
        if announced is None:
            body = _Counted(receive, send, self._most)
            await self._app(scope, body.receive, body.send)
        elif announced.isdigit() and int(announced) <= self._most:
            await self._app(scope, receive, send)
        else:
            body = _Counted(receive, send, self._most)
            body.over = True
            await error_response(_too_long(self._most))(scope, body.receive, body.send)


class _Counted:
    """Counts a body; delays the end of the response while an oversized body is discarded."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._most = receive, send, most
        self._seen, self._ended, self.over = 0, False, False

    async def receive(self) -> Message:
        """The next chunk; raises a 413 if the body is too long."""
        message = await self._next()
        if self._seen > self._most:
            self.over = True
            raise _too_long(self._most)
        return message

    async def send(self, message: Message) -> None:
        """Send the response; if the body is too long, discard the rest of it before the end."""
        if self.over and message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        elif self.over and not message.get("more_body", False):
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
        f"the body is longer than {most:,} bytes",
        hint="send fewer items or labels in one request; nothing in this one was accepted",
    )
