"""The ticker: closes slots, expires leases, and has streams that failed loaded again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from venire.errors import StoreDown
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
        """Sleep until something is due."""
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
        """Load a stream again after a number of seconds."""
        self._reloads[name] = self._runtime.clock.monotonic() + seconds

    def forget(self, name: str) -> None:
        """Do not reload a stream that is deleted."""
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
        """Load the streams again that failed and are due."""
        now = self._runtime.clock.monotonic()
        due = [name for name, at in self._reloads.items() if at <= now]
        for name in due:
            del self._reloads[name]
        self._runtime.loading.want(due)
