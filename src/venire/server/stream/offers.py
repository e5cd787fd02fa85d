"""Requests that wait for work, in first-come order.

A waiter is a future with a labeler's name. The dispatcher takes the names in the order of waiting
and resolves the first waiter of a name. A waiter whose request was cancelled has left the room
before it can be served; if it is cancelled between being served and waking up, `Waiter.given` holds
what has to be released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from venire.server.stream.change_batch import Batch
from venire.server.stream.grants import Grant, grant
from venire.server.stream.live_stream import LiveStream, Moment

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


#: After this many labelers in a row got nothing, the rest are tried all at once.
MAX_SINGLE_MISSES: Final = 4


class Offer(NamedTuple):
    """A lease for a waiting request, the stream it is of, and its commit."""

    live: LiveStream
    grant: Grant
    done: asyncio.Future[None]


class StreamHost(Protocol):
    """What `Offers` needs from the runtime: its streams, their steps and their commits."""

    @property
    def streams(self) -> dict[str, LiveStream]:
        """The loaded streams by name."""

    @property
    def accepting(self) -> bool:
        """Whether work may be handed out: the service runs and the store accepts writes."""

    def moment(self) -> Moment:
        """Now."""

    def step(self, live: LiveStream) -> None:
        """Expire leases and close slots that are due."""

    def commit(self, live: LiveStream, batch: Batch) -> asyncio.Future[None]:
        """Hand a batch to the writer."""


class Offers:
    """The requests that wait for work, by stream."""

    def __init__(self, host: StreamHost) -> None:
        self._host = host
        self._rooms: dict[str, WaitingRoom[Offer]] = {}
        self._woken: set[str] = set()

    def room(self, name: str) -> WaitingRoom[Offer]:
        """The requests that wait for work in a stream."""
        return self._rooms.setdefault(name, WaitingRoom())

    def wake(self, name: str) -> None:
        """Schedule a dispatch: something has changed in the stream."""
        if name in self._rooms and name not in self._woken:
            self._woken.add(name)
            asyncio.get_running_loop().call_soon(self.dispatch, name)

    def dispatch(self, name: str) -> None:
        """Hand out work to waiting requests, longest waiting first, if a wake is pending."""
        if name not in self._woken:
            return
        self._woken.discard(name)
        live, room = self._host.streams.get(name), self.room(name)
        if live is None or not room or not self._host.accepting:
            return
        self._host.step(live)
        if live.busy is not None:
            return  # the end of the busy step wakes them
        waiting, misses = room.names(), 0
        while waiting and misses < MAX_SINGLE_MISSES:
            labeler = next(iter(waiting))
            if not self._offer(live, room, {labeler: waiting.pop(labeler)}):
                misses += 1
        for ahead in sorted({one.ahead for one in waiting.values()}):
            alike = {name: one for name, one in waiting.items() if one.ahead == ahead}
            self._offer(live, room, alike)

    def _offer(
        self, live: LiveStream, room: WaitingRoom[Offer], waiting: dict[str, Waiter[Offer]]
    ) -> bool:
        """Offer work to some, who may all hold the same number of items ahead."""
        batch, ahead = Batch(), next(iter(waiting.values())).ahead
        seated, trusted = live.labelers.seated, live.trusted
        asking = {
            name: one.key for name, one in waiting.items() if name in seated or name in trusted
        }
        granted = grant(live, asking, batch, self._host.moment(), ahead)
        if granted:
            future = self._host.commit(live, batch)
            for labeler, work in granted.items():
                room.serve(waiting[labeler], Offer(live, work, future))
        return bool(granted)

    def dismiss(self, name: str) -> None:
        """Dismiss everyone who waits for a deleted stream."""
        self._woken.discard(name)
        if name in self._rooms:
            self._rooms.pop(name).dismiss()

    def dismiss_all(self) -> None:
        """Dismiss everyone who waits: the service stops."""
        for room in self._rooms.values():
            room.dismiss()
