"""The hub: streams in memory, one writer to the store, and time.

Everything that changes a stream happens on one loop, synchronously, and is handed to the writer
before anything else happens. A request is answered when its changes are on disk. If a commit
fails, the writer takes nothing more until `recover`; every stream is then thrown away and loaded
again from the store before it is used, so memory never stays ahead of the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from venire.engine import engine_version
from venire.errors import NotFound, ReplayError, StoreDown, StreamDown, VenireError
from venire.service.clock import Clock
from venire.service.runtime.health import Watch
from venire.service.runtime.ticker import Ticking
from venire.service.settings import ServiceSettings
from venire.service.stream.background import seen
from venire.service.stream.change_batch import Batch
from venire.service.stream.live_stream import Live, Moment, Tokens
from venire.service.stream.load import load
from venire.service.stream.log_position import News
from venire.storage import (
    AddEngine,
    Change,
    EngineRow,
    SaveSnapshot,
    SnapshotRow,
    Storage,
    Writer,
)

__all__ = ["BEHIND", "PIECE", "Hub", "written"]

T = TypeVar("T")

#: So many items or labels of a request are taken in one go: some ten milliseconds.
PIECE: Final = 250

#: From so many on, a thread takes them, so that no other stream waits for it.
MANY: Final = 100

#: So many pieces of a request may wait for the disk: so much and no more is before others.
BEHIND: Final = 1

_log = logging.getLogger("venire.service")


class Hub(Ticking):
    """What the verbs of the service stand on."""

    def __init__(self, storage: Storage, clock: Clock, settings: ServiceSettings) -> None:
        super().__init__()
        self.storage, self.clock, self.settings = storage, clock, settings
        self.tokens, self.watch, self.waiting = Tokens(), Watch(clock), 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._until = -math.inf
        self.deleting: dict[str, asyncio.Task[None]] = {}  # streams that go, in pieces
        self.intake: dict[str, asyncio.Lock] = {}  # one request's items after the other's
        self.aside: dict[str, str] = {}  # streams whose log does not replay, and why
        self._lost: dict[str, float] = {}  # streams that failed, and when to try them again
        self.running = False

    async def start(self) -> None:
        """Load every stream and let time pass."""
        self._loop = asyncio.get_running_loop()
        self._loading, self._poke = asyncio.Lock(), asyncio.Event()
        call, tell = self._loop.call_soon_threadsafe, self.watch.writes
        self.writer = Writer(self.storage, call, self.clock.monotonic, tell)
        self.running = True
        for row in await self.read(self.storage.streams):
            try:
                await self.live(row.name)
            except StoreDown:
                raise
            except StreamDown:
                pass  # it is set aside, and the log says why
            except Exception as error:
                self._lose(row.name, error)
        self._ticker = self.spawn(self._tick_forever())

    @property
    def ticking(self) -> bool:
        """Whether time passes."""
        return self.running and not self._ticker.done()

    async def stop(self) -> None:
        """Answer what was begun, write snapshots, and let go of the threads."""
        self.running = False
        for room in self._rooms.values():
            room.dismiss()
        for news in self._news.values():
            news.tell()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._idle()
        with contextlib.suppress(StoreDown):
            for live in tuple(self._lives.values()):
                await self.snapshot(live)
            await self.flush()
        await asyncio.to_thread(self.writer.close)
        self.end_threads()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside the requests, until it ends or the service stops."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # reading

    def moment(self) -> Moment:
        """Now."""
        return Moment.of(self.clock)

    async def read(self, method: Callable[..., T], *args: Any) -> T:
        """Ask the store something, in a thread."""
        try:
            found = await super().read(method, *args)
        except StoreDown as error:
            self.watch.down("reads", str(error))
            raise
        if getattr(method, "__self__", None) is self.storage:  # and not something beside it
            self.watch.up("reads")
        return found

    async def flush(self) -> None:
        """Return when everything that was done so far is on disk."""
        await self.write(())

    async def read_committed(self, method: Callable[..., T], *args: Any) -> T:
        """Ask the store something that holds all that was done so far."""
        await self.flush()
        return await self.read(method, *args)

    # streams

    async def ready(self) -> None:
        """Return if memory can be relied on; after a failure it is emptied first."""
        if not self.writer.up:
            await self.recover()

    async def live(self, name: str) -> Live:
        """A stream as it is now. Change it and `commit` before the next `await`."""
        while True:
            await self.ready()
            if name in self.aside:
                raise StreamDown(name, self.aside[name])
            live = self._lives.get(name)
            if live is None:
                live = await self._load(name)
            self.step(live)
            if live.busy is None:
                return live
            await asyncio.shield(live.busy)

    async def _idle(self) -> None:
        """Return when no thread works on a stream."""
        for live in tuple(self._lives.values()):
            while live.busy is not None:
                await asyncio.shield(live.busy)

    def freed(self, live: Live) -> None:
        """A stream can be used again: see what is due, and who waits."""
        self._poke.set()
        self.wake(live.name)

    def loaded(self) -> list[Live]:
        """All streams in memory, by name."""
        return [self._lives[name] for name in sorted(self._lives)]

    def adopt(self, live: Live) -> None:
        """A stream was made."""
        live.most_people = self.settings.max_labelers
        self._lives[live.name] = live
        self.news(live.name)

    def drop(self, live: Live) -> None:
        """Forget what is in memory: it is loaded again when it is needed, or when time passes."""
        if self._lives.get(live.name) is live:
            del self._lives[live.name]
            self._lost.setdefault(live.name, -math.inf)
            self._poke.set()

    def forget(self, live: Live) -> None:
        """A stream is deleted: nothing of it stays in memory, and nobody waits for it."""
        name = live.name
        del self._lives[name]
        self.tokens.forget(name)
        self.intake.pop(name, None)
        self._lost.pop(name, None)
        self._woken.discard(name)
        if name in self._rooms:
            self._rooms.pop(name).dismiss()
        if name in self._news:
            self._news.pop(name).end()

    @property
    def loading(self) -> asyncio.Lock:
        """Held while a stream is loaded or made."""
        return self._loading

    async def _load(self, name: str) -> Live:
        async with self._loading:
            if name in self._lives:
                return self._lives[name]
            await self.flush()
            try:
                live = await self.think(
                    load, self.storage, name, self.moment(), self.tokens, self.settings
                )
            except ReplayError as error:
                self.aside[name] = str(error)
                _log.error("stream %r is set aside: %s (see: venire verify)", name, error)
                raise StreamDown(name, str(error)) from error
            if live is None:
                raise NotFound("stream", name)
            await self.warm(live.settings)
            self.adopt(live)
            self._news[name].reached(live.n - 1, live.exit_n, live.revision_n)
            batch = Batch()
            batch.first = self._begins(live)
            live.rejoin(batch, self.moment())
            self.commit(live, batch)
            self.wake(name)
            return live

    def _begins(self, live: Live) -> list[Change]:
        """What is written down when another version of the engine goes on with a log."""
        body, live.begins_with = live.begins_with, None
        if body is None:
            return []
        at, live.snapshot_n = self.clock.wall(), live.n
        return [
            AddEngine(EngineRow(live.name, live.n, engine_version(), at)),
            SaveSnapshot(SnapshotRow(live.name, live.n, at, body)),
        ]

    async def recover(self) -> None:
        """Come up after a failure, with nothing in memory; `StoreDown` if that is not possible."""
        async with self._loading:
            if self.writer.up:
                return
            await self._idle()
            self._lives.clear()
            self.tokens.clear()
            if not await self.read(self.writer.recover):
                raise StoreDown("the store takes nothing for now: try again")

    # writing

    def write(self, changes: Sequence[Change]) -> asyncio.Future[None]:
        """Hand changes to the writer; done when they are on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        future.add_done_callback(seen)
        return self.writer.submit_to(changes, future)

    def commit(self, live: Live, batch: Batch) -> asyncio.Future[None]:
        """Hand in what a step changed; done when it is on disk."""
        if self._lives.get(live.name) is not live:
            lost: asyncio.Future[None] = self._loop.create_future()
            lost.add_done_callback(seen)
            lost.set_exception(StoreDown("the stream was loaded anew meanwhile: try again"))
            return lost
        future = self.write(batch.changes())
        if batch.events:
            reached = live.n - 1, live.exit_n, live.revision_n
            self._tell(future, self.news(live.name), reached)
            self.wake(live.name)
        if live.due(self.clock.monotonic()) < self._until:
            self._poke.set()
        return future

    def _tell(
        self, future: asyncio.Future[None], news: News, reached: tuple[int, int, int]
    ) -> None:
        """Tell those who follow the log, once it is on disk up to here."""

        def told(done: asyncio.Future[None]) -> None:
            if done.cancelled():  # whoever waited has gone; what was handed in is written
                self.write(()).add_done_callback(told)
            elif done.exception() is None:
                news.reached(*reached)

        future.add_done_callback(told)

    async def snapshot(self, live: Live) -> None:
        """Write down the state of the engine, if anything happened since.

        It is copied while nobody changes the stream, and packed while it goes on.
        """
        while live.busy is not None:
            await asyncio.shield(live.busy)
        if live.n > live.snapshot_n:
            before, n = live.snapshot_n, live.n
            live.snapshot_n = n
            try:
                body = await self.think((await self.apart(live, live.engine.capture)).pack)
            except BaseException:
                live.snapshot_n = before
                raise
            if self._lives.get(live.name) is live:  # or its events may not be in the store
                self.write([SaveSnapshot(SnapshotRow(live.name, n, self.clock.wall(), body))])

    async def take(
        self, live: Live, batch: Batch, count: int, step: Callable[[], T]
    ) -> tuple[T, asyncio.Future[None]]:
        """Do a step of a large request, and hand in what it changed; done when that is on disk.

        A thread does it where there is much to do. If it fails half-way the stream is loaded
        anew; what only refuses what was sent has changed nothing.
        """
        commits: list[asyncio.Future[None]] = []

        def failed(done: asyncio.Future[T]) -> None:
            if not isinstance(done.exception(), VenireError) or batch.changes():
                self._failed(live, done)

        if count >= MANY or live.is_long:
            done = self.apart(live, step, lambda _: commits.append(self.commit(live, batch)))
            done.add_done_callback(failed)
            return await done, commits[0]
        try:
            return step(), self.commit(live, batch)
        except Exception as error:
            broken: asyncio.Future[T] = self._loop.create_future()
            broken.set_exception(error)
            failed(broken)
            raise

    async def pieces(
        self, name: str, count: int, cuts: Iterable[int] = ()
    ) -> AsyncIterator[tuple[Live, slice]]:
        """Go through so many things of one request in pieces, with room for others in between.

        A piece ends also before each of the `cuts`.
        """
        starts = sorted({*range(0, count, PIECE), *cuts})
        ends = [*starts[1:], count] if starts else []  # of nothing there are no pieces
        for first, end in zip(starts, ends, strict=True):
            if first:
                await asyncio.sleep(0)
            yield await self.live(name), slice(first, end)


async def written(commits: Sequence[asyncio.Future[None]], behind: int = 0) -> None:
    """Return when all commits but the last few are on disk; an error if one is not."""
    for done in commits[: len(commits) - behind]:
        await done
