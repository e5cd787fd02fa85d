"""How far a stream's log is on disk, for its followers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


class LogPosition:
    """The last event, exit and revision on disk; wakes those who wait for more."""

    def __init__(self) -> None:
        self.event, self.exit, self.revision = -1, 0, 0
        self.ended = False
        self._more: asyncio.Event | None = None

    def advance(self, event: int, exit: int, revision: int) -> None:
        """Advance to these numbers, which are on disk now."""
        self.event, self.exit = max(self.event, event), max(self.exit, exit)
        self.revision = max(self.revision, revision)
        self.notify()

    def notify(self) -> None:
        """Wake all waiters."""
        if self._more is not None:
            self._more.set()
            self._more = None

    def end(self) -> None:
        """Mark the end: the stream is deleted."""
        self.ended = True
        self.notify()

    async def wait_for_event(self, event: int, seconds: float) -> bool:
        """Wait up to `seconds` for an event after this one; whether there is one."""
        return await self.wait(lambda position: position.event > event, seconds)

    async def wait(self, condition: Callable[[LogPosition], bool], seconds: float) -> bool:
        """Wait up to `seconds` until the condition holds; whether it does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition(self) and not self.ended:
                    self._more = self._more or asyncio.Event()
                    await self._more.wait()
        return condition(self)
