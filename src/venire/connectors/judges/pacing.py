"""Limits kept on our side: requests and tokens a minute, and requests at once.

Requests are spaced evenly, 60 / rpm seconds apart, and tokens likewise: so no window of a minute,
and no shorter one either, holds more than its share, however a server counts. What a request will
use in tokens is guessed beforehand and corrected by what its answer reports.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

__all__ = ["Limits", "Pacer"]

#: Wakes after a pause are spread over at most this many seconds.
SPREAD = 1.0


class Pacer:
    """Says how long to wait so that no more than `per_minute` units pass in a minute.

    >>> pacer = Pacer(60)
    >>> [pacer.reserve(1, now=0.0), pacer.reserve(1, now=0.0), pacer.reserve(1, now=10.0)]
    [0.0, 1.0, 0.0]
    """

    def __init__(self, per_minute: float) -> None:
        """`per_minute` units, evenly spaced."""
        self._seconds = 60.0 / per_minute
        self._free_at = float("-inf")

    def reserve(self, units: float, now: float) -> float:
        """Take the next place; the seconds until it."""
        starts = max(now, self._free_at)
        self._free_at = starts + units * self._seconds
        return starts - now

    def correct(self, units: float) -> None:
        """So many more were used than reserved; fewer, if negative."""
        self._free_at += units * self._seconds


class Limits:
    """The limits of one judge, shared by all requests to it."""

    def __init__(
        self,
        max_parallel: int,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """None means no limit."""
        self._room = asyncio.Semaphore(max_parallel)
        self._requests = Pacer(rpm) if rpm else None
        self._tokens = Pacer(tpm) if tpm else None
        self._clock, self._held_until = clock, 0.0

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Room for one request of about so many tokens, once the limits allow it."""
        async with self._room:
            await self._unheld()
            now = self._clock()
            waits = [0.0]
            if self._requests:
                waits.append(self._requests.reserve(1, now))
            if self._tokens:
                waits.append(self._tokens.reserve(tokens, now))
            await asyncio.sleep(max(waits))
            await self._unheld()
            yield

    def used(self, guessed: int, tokens: int) -> None:
        """Correct the guess by what the answer reports."""
        if self._tokens:
            self._tokens.correct(tokens - guessed)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the server is over its limit."""
        self._held_until = max(self._held_until, self._clock() + seconds)

    async def _unheld(self) -> None:
        while (wait := self._held_until - self._clock()) > 0:
            await asyncio.sleep(wait + random.random() * min(SPREAD, wait))
