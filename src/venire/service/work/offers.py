"""Handing out work to those who wait for it, as soon as there is some."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from venire.service.stream.background import Threads
from venire.service.stream.change_batch import Batch
from venire.service.stream.live_stream import Live, Moment
from venire.service.stream.log_position import News
from venire.service.work.grants import Grant, grant
from venire.service.work.waiting_room import Room, Waiter
from venire.storage import Writer

__all__ = ["Offer", "Offering"]

#: So many who ask in vain are asked one by one, in the order of waiting; then all at once.
IN_VAIN: Final = 4


class Offer(NamedTuple):
    """Work for one who asked, the stream as it was then, and when all of it is on disk."""

    live: Live
    grant: Grant
    done: asyncio.Future[None]


class Offering(Threads):
    """The part of a hub that knows who waits, and for what."""

    writer: Writer
    running: bool

    def __init__(self) -> None:
        super().__init__()
        self._lives: dict[str, Live] = {}
        self._rooms: dict[str, Room[Offer]] = {}
        self._news: dict[str, News] = {}
        self._woken: set[str] = set()

    def step(self, live: Live) -> None:
        """Let time pass for a stream."""
        raise NotImplementedError

    def commit(self, live: Live, batch: Batch) -> asyncio.Future[None]:
        """Hand in what a step changed."""
        raise NotImplementedError

    def moment(self) -> Moment:
        """Now."""
        raise NotImplementedError

    def news(self, name: str) -> News:
        """What of a stream's log is on disk."""
        return self._news.setdefault(name, News())

    def room(self, name: str) -> Room[Offer]:
        """Those who wait for work in a stream."""
        return self._rooms.setdefault(name, Room())

    def wake(self, name: str) -> None:
        """Something has changed: see soon whether there is work for those who wait."""
        if name in self._rooms and name not in self._woken:
            self._woken.add(name)
            self._loop.call_soon(self.serve_waiting, name)

    def serve_waiting(self, name: str) -> None:
        """Hand out work to those who wait, the longest first."""
        if name not in self._woken:
            return
        self._woken.discard(name)
        live, room = self._lives.get(name), self.room(name)
        if live is None or not room or not self.writer.up or not self.running:
            return
        self.step(live)
        if live.busy is not None:
            return  # whoever made it so wakes them
        waiting, vain = room.names(), 0
        while waiting and vain < IN_VAIN:
            labeler = next(iter(waiting))
            if not self._offer(live, room, {labeler: waiting.pop(labeler)}):
                vain += 1
        if waiting:
            self._offer(live, room, waiting)

    def _offer(self, live: Live, room: Room[Offer], waiting: dict[str, Waiter[Offer]]) -> bool:
        batch = Batch()
        asking = {name: one.key for name, one in waiting.items() if name in live.people.seated}
        given = grant(live, asking, batch, self.moment())
        if given:
            future = self.commit(live, batch)
            for labeler, work in given.items():
                room.serve(waiting[labeler], Offer(live, work, future))
        return bool(given)
