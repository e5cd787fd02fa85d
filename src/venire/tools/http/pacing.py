"""Limits kept on our side: requests and tokens a minute, requests at once, and patience.

Requests are spaced evenly, about 60 / rpm seconds apart, and tokens likewise, by when they are
really sent: so no window of a minute holds more than allowed, and a shorter one hardly more than
its share, however a server counts. What a request will use in tokens is guessed beforehand and
corrected by what its answer reports.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from venire.tools.http.retries import Retry

__all__ = ["Limits", "Pacer", "Patience", "TooLong"]

#: Seconds that one question waits for the server's limits, in all; who asks for more is stopped.
PATIENCE = 600.0

#: Timers are not exact: what was missed within this number of seconds may be caught up.
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
        """Take a number of units now."""
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
        """Wait until the limits allow one request of about that number of tokens."""
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


class TooLong(Exception):
    """The question is given up; `final` says that no other one is worth asking either."""

    def __init__(self, why: str, final: bool = False) -> None:
        self.final = final
        super().__init__(why)


class Patience:
    """The waits of one question: a 429 makes everyone wait, other faults count as tries."""

    def __init__(self, limits: Limits, retries: int) -> None:
        """`retries` is how often other faults are asked again."""
        self._limits, self._retries = limits, retries
        self._tries, self._waited = 0, 0.0

    async def after(self, got: Retry) -> None:
        """Wait as long as a fault asks for; raises `TooLong` if that is not worth it."""
        if got.limited:
            wait = _backoff(self._waited) if got.after is None else got.after
            self._waited += wait
            if wait > PATIENCE:
                raise TooLong(f"{got.why}: the server asks to wait {wait:,.0f} seconds", final=True)
            if self._waited > PATIENCE:
                raise TooLong(f"over its limit for {self._waited:,.0f} seconds: {got.why}")
            self._limits.hold(wait)
            return
        self._tries += 1
        if self._tries > self._retries or (got.after or 0.0) > PATIENCE:
            raise TooLong(f"no answer after {self._tries} tries: {got.why}")
        await asyncio.sleep(_backoff(self._tries / 4) if got.after is None else got.after)


def _backoff(so_far: float) -> float:
    """About as long again as was waited so far, from a quarter of a second to half a minute."""
    return min(30.0, max(0.25, so_far)) * (0.5 + random.random())
