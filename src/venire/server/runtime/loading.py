"""Loading streams: each once at a time, several beside each other, those that are asked for first.

A stream is read from the store by a thread, while others are loaded and served. What was read
enters memory only if nothing happened to the stream meanwhile: an outage after which memory is
emptied, another owner, a deletion, or a stream created under that name make the load void, and
whoever waited for it looks again. Streams that nobody asks for are loaded in the background, a few
at a time and those with few open items first, so that none waits for a large one.

A stream that cannot be loaded is set aside, and the others are served. Where the fault need not
be in what is stored, such as a lack of memory, loading is tried again after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from venire.engine import engine_version
from venire.errors import (
    NotFound,
    StoreDown,
    StreamDown,
    StreamElsewhere,
    StreamLoading,
    VenireError,
)
from venire.server.store import Change, EngineRow, Insert, SnapshotRow
from venire.server.stream.background import ignore_error
from venire.server.stream.change_batch import Batch
from venire.server.stream.live_stream import LiveStream
from venire.server.stream.load import load

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime

#: How many streams that nobody asked for are loaded beside each other.
BESIDE: Final = 2

#: Seconds for which a request waits until its stream is loaded.
PATIENCE: Final = 10.0

#: Seconds until a stream is loaded again, after the store was down, or something unexpected
#: happened; then twice as many, and so on up to the last number.
RETRY, LONGEST_RETRY = 5.0, 300.0

_log = logging.getLogger("venire.service")


class Loading:
    """Brings the streams of a runtime into memory."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loads: dict[str, asyncio.Task[None]] = {}  # those that are not void
        self._wanted: set[str] = set()  # to be loaded in the background
        self._order: list[tuple[int, str]] = []  # of those: open items and name, a heap
        self._lanes = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._failures: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._wanted | self._loads.keys())

    def __contains__(self, name: str) -> bool:
        """Whether a stream is being loaded, or to be loaded in the background."""
        return name in self._wanted or name in self._loads

    async def load(self, name: str, patience: float | None = PATIENCE) -> None:
        """Load a stream, or wait until it is loaded for another; then look for it again.

        `NotFound` if there is none, `StreamDown` if it cannot be loaded, `StreamLoading` if that
        takes longer than `patience`. A caller that is cancelled does not end the loading.
        """
        task = self._loads.get(name)
        if task is None:
            task = self._loads[name] = self._runtime.spawn(self._load(name))
            task.add_done_callback(lambda done: self._ended(name, done))
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            raise StreamLoading(name)
        if task.cancelled():
            raise StoreDown("the server is stopping: try again")
        task.result()

    def void(self, name: str) -> None:
        """What is being read of a stream is not to enter memory."""
        self._loads.pop(name, None)

    def void_all(self) -> None:
        self._loads.clear()

    def forget(self, name: str) -> None:
        self.void(name)
        self._failures.pop(name, None)
        self._done_with(name)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        ignore_error(task)
        if self._loads.get(name) is task:
            del self._loads[name]

    # one stream

    async def _load(self, name: str) -> None:
        runtime, me = self._runtime, asyncio.current_task()
        await runtime.flush()
        try:
            live = await runtime.threads.load(self._read, name)
            if live is not None:
                await runtime.threads.warm(live.settings)
            if self._loads.get(name) is me:
                self._enter(name, live)
        except (StoreDown, NotFound):
            raise
        except Exception as error:
            if self._loads.get(name) is me:
                self._set_aside(name, error)
                raise StreamDown(name, runtime.set_aside[name]) from error

    def _read(self, name: str) -> LiveStream | None:
        runtime = self._runtime
        return load(runtime.storage, name, runtime.moment(), runtime.lease_index)

    def _enter(self, name: str, live: LiveStream | None) -> None:
        runtime = self._runtime
        if live is None:
            raise NotFound("stream", name)
        if not runtime.writer.up:
            raise StoreDown("the store does not accept writes at the moment: try again")
        if not runtime.sharing.holds(name):
            raise StreamElsewhere(name)
        runtime.add(live)
        try:
            runtime.log_position(name).advance(live.n - 1, live.exit_n, live.revision_n)
            batch, moment = Batch(), runtime.moment()
            live.finish_slot(batch, moment)
            batch.first = self._take_over(live)
            live.reconcile(batch, moment)
        except BaseException:
            del runtime.streams[name]
            runtime.lease_index.forget(name)
            raise
        runtime.commit(live, batch)
        runtime.set_aside.pop(name, None)
        self._failures.pop(name, None)
        self._done_with(name)
        runtime.offers.wake(name)

    def _take_over(self, live: LiveStream) -> list[Change]:
        """The rows written when this version of the engine takes over another's log."""
        body, live.takeover = live.takeover, None
        if body is None:
            return []
        at, live.snapshot_n = self._runtime.clock.wall(), live.n
        return [
            Insert([EngineRow(stream=live.name, n=live.n, version=engine_version(), at=at)]),
            Insert([SnapshotRow(stream=live.name, n=live.n, at=at, body=body)]),
        ]

    def _set_aside(self, name: str, error: Exception) -> None:
        """Serve the others; what is not known to be in the store is tried again."""
        stored = isinstance(error, VenireError)
        why = str(error) if stored else f"{type(error).__name__}: {error}"
        self._runtime.set_aside[name] = why
        self._done_with(name)
        if stored:
            _log.error("stream %r is set aside: %s (see: venire verify)", name, why)
            return
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        pause = min(RETRY * 2 ** min(failures - 1, 10), LONGEST_RETRY)
        _log.error("stream %r is set aside, loading it again in %g s", name, pause, exc_info=error)
        self._runtime.ticker.reload_at(name, pause)

    # all streams

    def want(self, names: Iterable[str]) -> None:
        new = set(names) - self._wanted - self._runtime.streams.keys()
        if new:
            self._wanted |= new
            self._settled.clear()
            self._runtime.spawn(self._enqueue(new))

    async def settled(self, patience: float | None = PATIENCE) -> bool:
        """Wait until nothing is to be loaded in the background; whether that is so in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._settled.wait()
        return self._settled.is_set()

    async def _enqueue(self, names: set[str]) -> None:
        """Put streams in order; if the store does not say how large they are, by name."""
        sizes: dict[str, int] = {}
        with contextlib.suppress(StoreDown):
            sizes = await self._runtime.read(self._runtime.storage.open_counts)
        for name in names:
            heapq.heappush(self._order, (sizes.get(name, 0), name))
        while self._lanes < min(BESIDE, len(self._order)):
            self._lanes += 1
            self._runtime.spawn(self._lane())

    async def _lane(self) -> None:
        try:
            while self._order:
                _, name = heapq.heappop(self._order)
                if name in self._wanted:
                    await self._bring(name)
                    self._done_with(name)
        finally:
            self._lanes -= 1

    def _done_with(self, name: str) -> None:
        self._wanted.discard(name)
        if not self._wanted:
            self._settled.set()

    async def _bring(self, name: str) -> None:
        """Load a stream that nobody asked for, unless somebody did."""
        runtime = self._runtime
        try:
            await runtime.ready()
            await runtime.sharing.check(name)
            while name not in runtime.streams:
                await self.load(name, None)
        except (NotFound, StreamDown, StreamElsewhere):
            pass  # it is gone, set aside, or another server's
        except StoreDown:
            runtime.ticker.reload_at(name, RETRY)
        except Exception:
            _log.exception("stream %r was not loaded; loading it again in %g s", name, RETRY)
            runtime.ticker.reload_at(name, RETRY)
