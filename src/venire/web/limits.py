"""How much one caller may ask for: bytes in a body, requests a second, connections that wait.

The rate is kept by the generic cell rate algorithm, one number for each key: the time at which
its bucket would be empty again. A request that costs c moves it c / rate seconds on, and is
refused while it lies more than burst / rate seconds ahead of now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venire.web.errors import RequestError, error_response

__all__ = ["BodyLimit", "Rates", "Waiting"]


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
    """Requests that wait for news, or follow it, at a time.

    >>> waiting = Waiting(most=1)
    >>> with waiting.one():
    ...     waiting.now
    1
    """

    def __init__(self, most: int) -> None:
        """Room for `most`."""
        self.most, self.now = most, 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take a place for as long as the block lasts; refuse where there is none."""
        self.check()
        self.now += 1
        try:
            yield
        finally:
            self.now -= 1

    def check(self) -> None:
        """Refuse where there is no place."""
        if self.now >= self.most:
            raise RequestError(
                429,
                "too_many_waiting",
                f"{self.now} requests are waiting already, which is the most there may be",
                hint="try again after Retry-After, or ask with wait=0",
                retry_after=1.0,
            )


class BodyLimit:
    """Middleware that refuses a body that is too long, by its header where it has one.

    A body of unknown length is counted as it comes in.
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
            await self._app(scope, self._counted(receive), send)
        elif announced.isdigit() and int(announced) <= self._most:
            await self._app(scope, receive, send)
        else:
            response = error_response(self._too_long())
            response.headers["connection"] = "close"
            await response(scope, receive, send)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise self._too_long()
            return message

        return counted

    def _too_long(self) -> RequestError:
        return RequestError(
            413,
            "body_too_large",
            f"the body is longer than {self._most:,} bytes",
            hint="send fewer items or labels at a time; nothing of this request was taken",
        )
