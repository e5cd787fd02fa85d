"""Steps of streams: the ticker's, and those of large requests, which are written in parts.

The ticker closes slots, expires leases, and has streams that failed loaded again.

The writer commits in one transaction whatever is queued, and others wait for it. So a part of a
large step is handed in only once the one before is on disk. The stream is busy until the last is
handed in: nothing of its own may come between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from venire.errors import StoreDown, VenireError
from venire.server.stream.background import ignore_error
from venire.server.stream.change_batch import Batch
from venire.server.stream.live_stream import LiveStream

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime

#: The longest sleep of the ticker, and the sleep while the store is down, in seconds.
MAX_SLEEP, OUTAGE_SLEEP = 1.0, 0.25

#: Seconds after which a stream that failed is reloaded.
RELOAD_SECONDS: Final = 5.0

_log = logging.getLogger("venire.service")


class Ticker:
    """Drives the streams of a runtime by the clock."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._woken = asyncio.Event()
        self._sleeps_until = -math.inf
        self._reloads: dict[str, float] = {}  # streams that failed, and when to reload them
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._runtime.spawn(self._tick_forever())

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def wake(self, due: float = -math.inf) -> None:
        """Stop sleeping, if it would sleep beyond `due`."""
        if due < self._sleeps_until or due == -math.inf:
            self._woken.set()

    def step(self, live: LiveStream) -> None:
        """Expire leases and close slots of a stream; drop a stream that fails half-way.

        If that may take long a thread does it, and the stream is `busy`.
        """
        threads, clock = self._runtime.threads, self._runtime.clock
        moment, slot = self._runtime.moment(), live.engine.slot
        if live.busy is not None:
            return
        if not live.is_due(moment.now):
            if live.is_large and not live.engine.is_filed:
                filed = threads.run_exclusively(live, live.engine.file)
                filed.add_done_callback(partial(self.check, live))
            return
        if live.is_large:
            stepped = threads.run_exclusively(
                live, partial(live.step, moment, clock), partial(self._stepped, live, slot)
            )
            stepped.add_done_callback(partial(self.check, live))
            return
        try:
            batch = live.step(moment, clock)
        except Exception:
            self._runtime.drop(live)
            raise
        self._stepped(live, slot, batch)

    def _stepped(self, live: LiveStream, slot: int, batch: Batch | None) -> None:
        """Commit a step. In a new slot the policy may assign items that it did not before."""
        if batch is not None:
            self._runtime.commit(live, batch)
        if live.open and live.engine.slot > slot:
            self._runtime.offers.wake(live.name)

    def check(self, live: LiveStream, done: asyncio.Future[Any]) -> None:
        """Drop a stream whose step failed, and schedule its reload."""
        error = done.exception()
        if error is not None and self._runtime.streams.get(live.name) is live:
            self._runtime.drop(live)
            self.reload_later(live.name, error)

    def tick(self) -> None:
        """Step all streams; one that fails does not stop the others."""
        for live in tuple(self._runtime.streams.values()):
            try:
                self.step(live)
                self._runtime.students.look(live)
                every = max(self._runtime.settings.snapshot_every, 2 * len(live.open))
                if live.n - live.snapshot_n >= every:
                    self._runtime.spawn(self._runtime.snapshot(live))
            except Exception as error:
                self.reload_later(live.name, error)

    async def _tick_forever(self) -> None:
        while True:
            try:
                self._runtime.health.try_files()
                lost = self._runtime.storage.lost
                if lost is not None and self._runtime.writer.up:
                    self._runtime.writer.refuse(lost)
                if self._runtime.writer.up:
                    self.tick()
                    self._reload_due()
                else:
                    with contextlib.suppress(StoreDown):
                        await self._reload_all()
                await self._sleep()
            except Exception:
                _log.exception("the ticker failed; retrying")
                await asyncio.sleep(OUTAGE_SLEEP)

    async def _sleep(self) -> None:
        now = self._runtime.clock.monotonic()
        free = [live for live in self._runtime.streams.values() if live.busy is None]
        due = min((live.due(now) for live in free), default=math.inf)
        self._sleeps_until = min(due, now + MAX_SLEEP)
        self._woken.clear()
        up = self._runtime.writer.up
        pause = max(self._sleeps_until - now, 0.0) if up else OUTAGE_SLEEP
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._woken.wait()

    # streams that failed

    def reload_now(self, name: str) -> None:
        """Reload a stream at the next tick, unless that is already scheduled."""
        self._reloads.setdefault(name, -math.inf)
        self.wake()

    def reload_later(self, name: str, error: BaseException) -> None:
        """Reload a stream that failed, after a pause."""
        _log.error("stream %r failed; reloading in %g s", name, RELOAD_SECONDS, exc_info=error)
        self.reload_at(name, RELOAD_SECONDS)

    def reload_at(self, name: str, seconds: float) -> None:
        self._reloads[name] = self._runtime.clock.monotonic() + seconds

    def forget(self, name: str) -> None:
        self._reloads.pop(name, None)

    async def _reload_all(self) -> None:
        """After an outage: load all streams, so that their leases expire and slots close."""
        runtime = self._runtime
        await runtime.recover()
        rows = await runtime.read(runtime.storage.streams)
        names = [row.name for row in rows if row.archived_at is None]
        ours = [name for name in names if runtime.sharing.holds(name)]
        runtime.loading.want(name for name in ours if name not in runtime.set_aside)

    def _reload_due(self) -> None:
        now = self._runtime.clock.monotonic()
        due = [name for name, at in self._reloads.items() if at <= now]
        for name in due:
            del self._reloads[name]
        self._runtime.loading.want(due)


class CommitsInParts:
    """Commits the parts of batches in turn; `on_idle` is told when a stream is free again."""

    def __init__(
        self,
        commit: Callable[[LiveStream, Batch], asyncio.Future[None]],
        on_idle: Callable[[LiveStream], None],
    ) -> None:
        self._commit, self._on_idle = commit, on_idle
        self._tasks: set[asyncio.Task[None]] = set()  # nothing cancels them

    def commit(self, live: LiveStream, batch: Batch) -> asyncio.Future[None]:
        """Begin; the future is done when all parts are on disk."""
        loop = asyncio.get_running_loop()
        live.busy, outcome = loop.create_future(), loop.create_future()
        outcome.add_done_callback(ignore_error)
        task = loop.create_task(self._run(live, batch.parts(), outcome))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return outcome

    async def _run(
        self, live: LiveStream, parts: list[Batch], outcome: asyncio.Future[None]
    ) -> None:
        try:
            for part in parts[:-1]:
                await self._commit(live, part)
            self._commit(live, parts[-1]).add_done_callback(partial(_pass_on, outcome))
        except StoreDown as error:  # what is left is lost with the memory of the stream
            if not outcome.done():
                outcome.set_exception(error)
        finally:
            idle, live.busy = live.busy, None
            if idle is not None:
                idle.set_result(None)
            self._on_idle(live)


def _pass_on(outcome: asyncio.Future[None], done: asyncio.Future[None]) -> None:
    error = done.exception()
    if outcome.done():
        return
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)


T = TypeVar("T")

#: Items or labels of a request to process in one step: about ten milliseconds.
CHUNK: Final = 250

#: From this many on, a thread processes them, so that no other stream waits.
THREAD_FROM: Final = 100

#: Chunks of a request that may wait for the disk, so that other requests are not far behind it.
MAX_UNCOMMITTED: Final = 1


async def run_chunk(
    runtime: Runtime,
    live: LiveStream,
    batch: Batch,
    part: slice,
    step: Callable[[], T],
    commits: list[asyncio.Future[None]],
) -> T:
    """Do one chunk of a large request, and add its commit to those of the request.

    A thread does it if there is much to do. If it fails half-way the stream is reloaded; an
    error that only refuses the request has changed nothing. Returns once at most
    `MAX_UNCOMMITTED` commits are not on disk yet.
    """

    def check(done: asyncio.Future[T]) -> None:
        if not isinstance(done.exception(), VenireError) or batch.changes():
            runtime.ticker.check(live, done)

    def commit() -> None:
        commits.append(runtime.commit(live, batch))

    if part.stop - part.start >= THREAD_FROM or live.is_large:
        done = runtime.threads.run_exclusively(live, step, lambda _: commit())
        done.add_done_callback(check)
        result = await done
    else:
        try:
            result = step()
            commit()
        except Exception as error:
            broken: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            broken.set_exception(error)
            check(broken)
            raise
    await committed(commits, MAX_UNCOMMITTED)
    return result


async def chunks(
    runtime: Runtime, name: str, count: int, cuts: Iterable[int] = ()
) -> AsyncIterator[tuple[LiveStream, slice]]:
    """Split `count` things of one request into chunks; other requests run in between.

    A chunk also ends before each of the `cuts`.
    """
    starts = sorted({*range(0, count, CHUNK), *cuts})
    ends = [*starts[1:], count] if starts else []
    for first, end in zip(starts, ends, strict=True):
        if first:
            await asyncio.sleep(0)
        yield await runtime.live_stream(name), slice(first, end)


async def committed(commits: Sequence[asyncio.Future[None]], behind: int = 0) -> None:
    """Wait until all commits but the last `behind` are on disk; raises if one failed."""
    for done in commits[: len(commits) - behind]:
        await done
