"""The runtime: streams in memory, one writer to the store, and the ticker.

Everything that changes a stream happens on one loop, synchronously, and is handed to the writer
before anything else happens. A request is answered when its changes are on disk. If a commit fails,
the writer accepts nothing more until `recover`; every stream is then dropped and loaded again from
the store before it is used, so memory never stays ahead of the disk. Which streams are here is
said by `sharing`: all of them, unless several servers share the store. `loading` brings them into
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from venire.errors import StoreDown, StreamDown, StreamElsewhere
from venire.server.clock import Clock
from venire.server.runtime.health import HealthMonitor
from venire.server.runtime.loading import Loading
from venire.server.runtime.sharing import Sharing
from venire.server.runtime.students import Students
from venire.server.runtime.ticker import CommitsInParts, Ticker
from venire.server.settings import ServiceSettings
from venire.server.store import (
    Change,
    Insert,
    SetMeta,
    SnapshotRow,
    Storage,
    Writer,
    streams_of,
)
from venire.server.stream.background import ThreadPools, ignore_error
from venire.server.stream.change_batch import Batch, LogPosition
from venire.server.stream.grants import Offers
from venire.server.stream.leases import LeaseIndex
from venire.server.stream.live_stream import LiveStream, Moment

T = TypeVar("T")

#: The name under which the store keeps the secret of the draws.
AUDIT_SECRET: Final = "audit-secret"


class Runtime:
    """What the operations of the service are built on."""

    def __init__(self, storage: Storage, clock: Clock, settings: ServiceSettings) -> None:
        self.storage, self.clock, self.settings = storage, clock, settings
        self.lease_index, self.health = LeaseIndex(), HealthMonitor(clock)
        self.streams: dict[str, LiveStream] = {}
        self.threads, self.offers, self.ticker = ThreadPools(self._idle), Offers(self), Ticker(self)
        self.students, self.sharing, self.loading = Students(self), Sharing(self), Loading(self)
        self.waiting = 0  # requests for work
        self.deleting: dict[str, asyncio.Task[None]] = {}  # streams that are being purged
        self.intake: dict[str, asyncio.Lock] = {}  # one request adds items to a stream at a time
        self.set_aside: dict[str, str] = {}  # streams that cannot be loaded, and why
        self.running = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._in_parts = CommitsInParts(self._commit_part, self._idle)
        self._positions: dict[str, LogPosition] = {}
        self._recovery: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the ticker, and to load every stream that is ours."""
        self._loop = asyncio.get_running_loop()
        call, report = self._loop.call_soon_threadsafe, self.health.writes
        self.writer = Writer(self.storage, call, self.clock.monotonic, report)
        self.running = True
        async with self.starting():
            self._audit_secret = await self._read_secret()
        await self.sharing.start()
        self.ticker.start()

    @contextlib.asynccontextmanager
    async def starting(self) -> AsyncIterator[None]:
        """Hold the lock of starting: one server at a time makes what a new store lacks."""
        lock = self.storage.starting()
        await self.read(lock.__enter__)
        try:
            yield
        finally:
            await self.read(lock.__exit__, None, None, None)

    async def _read_secret(self) -> bytes:
        """The secret by which verdicts are drawn to be audited; made with the store."""
        kept: str | None = await self.read(self.storage.meta, AUDIT_SECRET)
        if kept is None:
            kept = secrets.token_hex(32)
            await self.write([SetMeta(AUDIT_SECRET, kept)])
        return bytes.fromhex(kept)

    def secret_for(self, use: str) -> bytes:
        """A secret of the store for another use, the same for all servers on it."""
        return hmac.digest(self._audit_secret, use.encode(), "sha256")

    @property
    def ticking(self) -> bool:
        return self.running and self.ticker.running

    @property
    def accepting(self) -> bool:
        """Whether work may be handed out: the service runs and the store accepts writes."""
        return self.running and self.writer.up

    async def stop(self) -> None:
        """Shut down gracefully: finish what was begun, write snapshots, close the threads."""
        self.running = False
        self.offers.dismiss_all()
        for position in self._positions.values():
            position.notify()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._all_idle()
        with contextlib.suppress(StoreDown):
            for live in tuple(self.streams.values()):
                await self.snapshot(live)
            await self.flush()
        await asyncio.to_thread(self.writer.close)
        self.threads.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a background task, until it ends or the service stops."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # reading

    def moment(self) -> Moment:
        return Moment.of(self.clock)

    async def read(self, method: Callable[..., T], *args: Any) -> T:
        return await self._noted(self.threads.read(method, *args), method)

    async def keep(self, method: Callable[..., T], *args: Any) -> T:
        """Do what keeps the store or its streams, in a thread that no request waits for."""
        return await self._noted(self.threads.keep(method, *args), method)

    async def _noted(self, work: Coroutine[Any, Any, T], method: Callable[..., T]) -> T:
        try:
            found = await work
        except StoreDown as error:
            self.health.down("reads", str(error))
            raise
        if getattr(method, "__self__", None) is self.storage:  # not a function of our own
            self.health.up("reads")
        return found

    async def flush(self) -> None:
        """Wait until everything done so far is on disk."""
        await self.write(())

    async def read_committed(self, method: Callable[..., T], *args: Any) -> T:
        """Read from the store after everything done so far is on disk."""
        await self.flush()
        return await self.read(method, *args)

    # streams

    async def ready(self) -> None:
        """Return once memory matches the store; after a failure it is emptied first."""
        if not self.writer.up:
            await self.recover()

    async def live_stream(self, name: str) -> LiveStream:
        """A stream, up to date. Change it and `commit` before the next `await`."""
        while True:
            await self.ready()
            await self.sharing.check(name)
            if name in self.set_aside:
                raise StreamDown(name, self.set_aside[name])
            live = self.streams.get(name)
            if live is None:
                await self.loading.load(name)
                continue
            self.step(live)
            if live.busy is None:
                return live
            await asyncio.shield(live.busy)

    async def writable(self, name: str) -> LiveStream:
        """A stream to change, up to date; `StateError` if it is archived."""
        live = await self.live_stream(name)
        live.check_writable()
        return live

    def step(self, live: LiveStream) -> None:
        self.ticker.step(live)

    def log_position(self, name: str) -> LogPosition:
        return self._positions.setdefault(name, LogPosition())

    async def _all_idle(self) -> None:
        for live in tuple(self.streams.values()):
            while live.busy is not None:
                await asyncio.shield(live.busy)

    def _idle(self, live: LiveStream) -> None:
        """A stream is no longer busy: see what is due, and who waits."""
        self.ticker.wake()
        self.offers.wake(live.name)

    def loaded(self) -> list[LiveStream]:
        return [self.streams[name] for name in sorted(self.streams)]

    def add(self, live: LiveStream) -> None:
        live.max_labelers, live.checks.secret = self.settings.max_labelers, self._audit_secret
        self.streams[live.name] = live
        self.log_position(live.name)

    def drop(self, live: LiveStream) -> None:
        """Drop a stream from memory; it is reloaded when it is needed, or by the ticker."""
        if self.streams.get(live.name) is live:
            del self.streams[live.name]
            self.ticker.reload_now(live.name)

    def put_away(self, live: LiveStream) -> None:
        """Drop an archived stream from memory, until somebody reads it."""
        if self.streams.get(live.name) is live:
            del self.streams[live.name]
            self.offers.dismiss(live.name)

    def let_go(self, name: str) -> None:
        """Remove a stream that is deleted, or another server's, and dismiss who waits for it."""
        self.streams.pop(name, None)
        self.set_aside.pop(name, None)
        self.lease_index.forget(name)
        self.intake.pop(name, None)
        self.ticker.forget(name)
        self.loading.forget(name)
        self.offers.dismiss(name)
        if name in self._positions:
            self._positions.pop(name).end()

    async def recover(self) -> None:
        """Recover from a failed commit, with memory emptied; `StoreDown` if the store is down.

        Whoever comes while that is tried waits for the same attempt.
        """
        if self.writer.up:
            return
        if self._recovery is None or self._recovery.done():
            self._recovery = self.spawn(self._recover())
            self._recovery.add_done_callback(ignore_error)
        attempt = self._recovery
        await asyncio.wait({attempt})
        if attempt.cancelled():
            raise StoreDown("the server is stopping: try again")
        attempt.result()

    async def _recover(self) -> None:
        await self._all_idle()
        self.loading.void_all()
        self.streams.clear()
        self.lease_index.clear()
        if not await self.keep(self.writer.recover):
            raise StoreDown("the store does not accept writes at the moment: try again")
        for name in [name for name in self._positions if not self.sharing.holds(name)]:
            self.let_go(name)

    # writing

    def write(self, changes: Sequence[Change]) -> asyncio.Future[None]:
        """Hand changes to the writer; the future is done when they are on disk."""
        if self.storage.shared:
            for name in streams_of(changes):
                if not self.sharing.may_write(name):
                    return self._refused(StreamElsewhere(name))
        future: asyncio.Future[None] = self._loop.create_future()
        future.add_done_callback(ignore_error)
        return self.writer.submit_to(changes, future)

    def _refused(self, error: StoreDown) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        future.add_done_callback(ignore_error)
        future.set_exception(error)
        return future

    def commit(self, live: LiveStream, batch: Batch) -> asyncio.Future[None]:
        """Hand the changes of a step to the writer; the future is done when they are on disk.

        A batch that is cut is written part by part, and the stream is busy until the last one is
        handed in: what others write goes between them.
        """
        if batch.earlier:
            return self._in_parts.commit(live, batch)
        return self._commit_part(live, batch)

    def _commit_part(self, live: LiveStream, batch: Batch) -> asyncio.Future[None]:
        if self.streams.get(live.name) is not live:
            if not self.sharing.holds(live.name):
                return self._refused(StreamElsewhere(live.name))
            return self._refused(StoreDown("the stream was reloaded meanwhile: try again"))
        future = self.write(batch.changes())
        if batch.events:
            self._publish(future, live.name, batch.reached)
            self.offers.wake(live.name)
        self.ticker.wake(live.due(self.clock.monotonic()))
        return future

    def _publish(
        self, future: asyncio.Future[None], name: str, reached: tuple[int, int, int]
    ) -> None:
        """Advance the stream's log position once a commit is on disk."""
        position = self.log_position(name)

        def publish(done: asyncio.Future[None]) -> None:
            if done.cancelled():  # the caller is gone; the changes are written all the same
                self.write(()).add_done_callback(publish)
            elif done.exception() is None:
                position.advance(*reached)

        future.add_done_callback(publish)

    async def snapshot(self, live: LiveStream) -> None:
        """Write a snapshot of the engine, if anything happened since the last one.

        The state is copied while the stream is busy, and packed while it is in use again.
        """
        while live.busy is not None:
            await asyncio.shield(live.busy)
        if live.n > live.snapshot_n:
            before, n = live.snapshot_n, live.n
            live.snapshot_n = n
            try:
                state = await self.threads.run_exclusively(live, live.engine.capture)
                body = await self.threads.compute(state.pack)
            except BaseException:
                live.snapshot_n = before
                raise
            if self.streams.get(live.name) is live:  # or its events may not be in the store
                self.write(
                    [Insert([SnapshotRow(stream=live.name, n=n, at=self.clock.wall(), body=body)])]
                )
