"""Limits kept on our side: requests and tokens a minute, and requests at once.

Requests are spaced evenly, about 60 / rpm seconds apart, and tokens likewise, by when they are
really sent: so no window of a minute holds more than allowed, and a shorter one hardly more than
its share, however a server counts. What a request will use in tokens is guessed beforehand and
corrected by what its answer reports.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["Limits", "Pacer"]

#: What was missed in so many seconds may be caught up: timers are not exact.
SLACK = 0.05


class Pacer:
    """Says how long to wait so that no more than `per_minute` units pass in a minute.

    >>> pacer = Pacer(60)
    >>> pacer.take(1, now=0.0)
    >>> round(pacer.wait(now=0.2), 3), pacer.wait(now=10.0)
    (0.751, 0.0)
    """

    def __init__(self, per_minute: float) -> None:
        """`per_minute` units, evenly spaced."""
        self._seconds = (60.0 + SLACK) / per_minute
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """The seconds until something may be taken."""
        return max(0.0, self._free_at - now)

    def take(self, units: float, now: float) -> None:
        """Take so many units now."""
        self._free_at = max(self._free_at, now - SLACK) + units * self._seconds

    def correct(self, units: float) -> None:
        """So many more were used than taken; fewer, if negative."""
        self._free_at += units * self._seconds


class Limits:
    """The limits of one judge, shared by all requests to it."""

    def __init__(
        self, max_parallel: int, rpm: float | None = None, tpm: float | None = None
    ) -> None:
        """None means no limit."""
        self._room, self._gate = asyncio.Semaphore(max_parallel), asyncio.Lock()
        self._requests = Pacer(rpm) if rpm else None
        self._tokens = Pacer(tpm) if tpm else None
        self._held_until = 0.0

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Room for one request of about so many tokens, once the limits allow it."""
        async with self._room:
            async with self._gate:  # one after another, first come, first served
                while (wait := self._wait(time.monotonic())) > 0:
                    await asyncio.sleep(wait)
                now = time.monotonic()
                if self._requests:
                    self._requests.take(1, now)
                if self._tokens:
                    self._tokens.take(tokens, now)
            yield

    def used(self, guessed: int, tokens: int) -> None:
        """Correct the guess by what the answer reports."""
        if self._tokens:
            self._tokens.correct(tokens - guessed)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the server is over its limit."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    def _wait(self, now: float) -> float:
        pacers = [pacer.wait(now) for pacer in (self._requests, self._tokens) if pacer]
        return max(self._held_until - now, *pacers, 0.0)
