"""Those who wait for work: the longest first, and nobody who has gone.

A waiter is a future with a name. Whoever hands out work asks for the names in the order of
waiting and fulfils the first waiter of a name. A waiter whose request was cancelled has left the
room before anything can be given to it; if it is cancelled in the short time between being given
work and waking up, `Waiter.given` says that there is something to take back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Room", "Waiter"]

T = TypeVar("T")


class Waiter(Generic[T]):
    """One request that waits for work for one labeler, by the key of that id."""

    __slots__ = ("future", "key", "labeler")

    def __init__(self, labeler: str, key: str | None = None) -> None:
        self.labeler, self.key = labeler, key
        self.future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

    def give(self, what: T | None) -> None:
        """Wake the waiter."""
        if not self.future.done():
            self.future.set_result(what)

    @property
    def given(self) -> T | None:
        """What it was given, if it was."""
        done = self.future.done() and not self.future.cancelled()
        return self.future.result() if done else None


class Room(Generic[T]):
    """The waiters of a stream."""

    def __init__(self) -> None:
        self._waiters: dict[Waiter[T], None] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Waiter[T]]:
        """The waiters, the one that has waited longest first."""
        return iter(tuple(self._waiters))

    def names(self) -> dict[str, Waiter[T]]:
        """The longest waiter of each labeler, in the order of waiting."""
        first: dict[str, Waiter[T]] = {}
        for waiter in self._waiters:
            first.setdefault(waiter.labeler, waiter)
        return first

    async def wait(self, waiter: Waiter[T], seconds: float) -> T | None:
        """Wait in the room; what was given, None if nothing was in time.

        On cancellation the waiter has left; look at `waiter.given` then.
        """
        self._waiters[waiter] = None
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(waiter.future)
        except TimeoutError:
            pass
        finally:
            self._waiters.pop(waiter, None)
        return waiter.given

    def serve(self, waiter: Waiter[T], what: T | None) -> None:
        """Give something to a waiter, who leaves the room with it."""
        self._waiters.pop(waiter, None)
        waiter.give(what)

    def dismiss(self) -> None:
        """Send everyone away with nothing."""
        for waiter in self:
            self.serve(waiter, None)
