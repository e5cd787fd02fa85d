"""How long one question is worth waiting for, after faults that may pass."""

from __future__ import annotations

import asyncio
import random

from venire.connectors.judges.pacing import Limits
from venire.connectors.judges.responses import Retry

__all__ = ["PATIENCE", "Patience", "TooLong"]

#: Seconds that one question waits for the server's limits, in all; who asks for more is stopped.
PATIENCE = 600.0


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
