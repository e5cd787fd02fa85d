"""How much of a stream's log is on disk, for those who follow it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

__all__ = ["News"]


class News:
    """The last event, exit and revision on disk; whoever waits for more is woken."""

    def __init__(self) -> None:
        self.event, self.exit, self.revision = -1, 0, 0
        self.ended = False
        self._more: asyncio.Event | None = None

    def reached(self, event: int, exit: int, revision: int) -> None:
        """The log is on disk up to here."""
        self.event, self.exit = max(self.event, event), max(self.exit, exit)
        self.revision = max(self.revision, revision)
        self.tell()

    def tell(self) -> None:
        """Wake everyone who waits."""
        if self._more is not None:
            self._more.set()
            self._more = None

    def end(self) -> None:
        """There will be no more: the stream is deleted."""
        self.ended = True
        self.tell()

    async def after(self, event: int, seconds: float) -> bool:
        """Wait for an event after this one, at most so long; whether there is one."""
        return await self.wait(lambda news: news.event > event, seconds)

    async def wait(self, enough: Callable[[News], bool], seconds: float) -> bool:
        """Wait until there is enough, at most so long; whether there is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not enough(self) and not self.ended:
                    self._more = self._more or asyncio.Event()
                    await self._more.wait()
        return enough(self)
