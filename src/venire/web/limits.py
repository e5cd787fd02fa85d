"""How much one caller may ask for: bytes in a body, requests a second, connections that wait.

The rate is kept by the generic cell rate algorithm, one number for each key: the time at which
its bucket would be empty again. A request that costs c moves it c / rate seconds on, and is
refused while it lies more than burst / rate seconds ahead of now.
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


#: Of a body that is too long, so much is still taken in, for so long, before the end.
LINGER_BYTES, LINGER_SECONDS = 64 * 1024 * 1024, 5.0


class Rates:
    """Requests a second for each caller.

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
        """A `per_second` of 0 stands for no limit."""
        self._per_second, self._clock = per_second, clock
        self._slack = (burst - 1) / per_second if per_second else 0.0
        self._empty: dict[str, float] = {}

    def delay(self, who: str) -> float:
        """0 if the request may pass, else the seconds after which it may."""
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
        """Refuse a request that comes too early, with the time to wait."""
        delay = self.delay(who)
        if delay:
            raise RequestError(
                429,
                "too_many_requests",
                f"this key may send {self._per_second:g} requests a second",
                hint="wait for as long as Retry-After says, or send items and labels in batches",
                retry_after=delay,
            )


class Waiting:
    """Requests that wait for news, or follow it, at a time: in all, and by one key.

    >>> waiting = Waiting(most=3, each=2)
    >>> with waiting.one("key_a"), waiting.one("key_a"):
    ...     waiting.now
    2
    """

    def __init__(self, most: int, each: int) -> None:
        """Room for `most`, of which one key may take `each`."""
        self.most, self.each, self.now = most, each, 0
        self._by_key: dict[str, int] = {}

    @contextmanager
    def one(self, key: str) -> Iterator[None]:
        """Take a place for as long as the block lasts; refuse where there is none."""
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
        """Refuse where there is no place, or none for this key."""
        if self._by_key.get(key, 0) >= self.each:
            self._refuse(f"{self.each} requests of this key are waiting already: no key may have")
        if self.now >= self.most:
            self._refuse(f"{self.now} requests are waiting already: there may not be")

    def _refuse(self, what: str) -> None:
        raise RequestError(
            429,
            "too_many_waiting",
            f"{what} more",
            hint="try again after Retry-After, or ask with wait=0",
            retry_after=1.0,
        )


class BodyLimit:
    """Middleware that refuses a body that is too long, by its header where it has one.

    A body of unknown length is counted as it comes in. The answer is sent at once; but many
    clients send all of a body before they read, and one whose connection is closed meanwhile
    sees a reset, not the answer. So the rest is taken in and thrown away for a while first.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        """Bodies of up to `most` bytes."""
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
    """A body that is counted, and the answer to it, which lingers where the body is too long."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._most = receive, send, most
        self._seen, self._ended, self.over = 0, False, False

    async def receive(self) -> Message:
        """The next piece; refused where it is one too many."""
        message = await self._next()
        if self._seen > self._most:
            self.over = True
            raise _too_long(self._most)
        return message

    async def send(self, message: Message) -> None:
        """Send the answer; behind one to a body that is too long, take the rest of the body."""
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
        self._ended = not message.get("more_body", False)  # also where the client has gone
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
        hint="send fewer items or labels at a time; nothing of this request was taken",
    )
