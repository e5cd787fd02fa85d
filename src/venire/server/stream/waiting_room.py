"""Requests that wait for work, in first-come order.

A waiter is a future with a labeler's name. The dispatcher takes the names in the order of waiting
and resolves the first waiter of a name. A waiter whose request was cancelled has left the room
before it can be served; if it is cancelled between being served and waking up, `Waiter.given` holds
what has to be released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Waiter(Generic[T]):
    """A request that waits for work for one labeler; `key` is the id of its key.

    The labeler may hold `ahead` items more than its capacity.
    """

    __slots__ = ("ahead", "future", "key", "labeler")

    def __init__(self, labeler: str, key: str | None = None, ahead: int = 0) -> None:
        self.labeler, self.key, self.ahead = labeler, key, ahead
        self.future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

    def give(self, what: T | None) -> None:
        """Wake the waiter."""
        if not self.future.done():
            self.future.set_result(what)

    @property
    def given(self) -> T | None:
        """What it was served with, if anything."""
        done = self.future.done() and not self.future.cancelled()
        return self.future.result() if done else None


class WaitingRoom(Generic[T]):
    """The requests that wait for work in a stream."""

    def __init__(self) -> None:
        self._waiters: dict[Waiter[T], None] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Waiter[T]]:
        """The waiters, longest waiting first."""
        return iter(tuple(self._waiters))

    def names(self) -> dict[str, Waiter[T]]:
        """The longest waiting request of each labeler, in first-come order."""
        first: dict[str, Waiter[T]] = {}
        for waiter in self._waiters:
            first.setdefault(waiter.labeler, waiter)
        return first

    async def wait(self, waiter: Waiter[T], seconds: float) -> T | None:
        """Wait to be served; what was given, or None on timeout.

        After a cancellation the waiter has left; check `waiter.given`.
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
        """Serve a waiter, which leaves the room."""
        self._waiters.pop(waiter, None)
        waiter.give(what)

    def dismiss(self) -> None:
        """Dismiss all waiters with nothing."""
        for waiter in self:
            self.serve(waiter, None)
