"""Time that passes: slots that close, leases that end, and streams that are loaded again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from venire.errors import NotFound, StoreDown, StreamDown
from venire.service.clock import Clock
from venire.service.runtime.health import Watch
from venire.service.settings import ServiceSettings
from venire.service.stream.change_batch import Batch
from venire.service.stream.live_stream import Live
from venire.service.work.offers import Offering
from venire.storage import Storage

__all__ = ["Ticking"]

#: The ticker looks around at least so often, and tries a store that is down so often.
LONGEST, RETRY = 1.0, 0.25

#: A stream that failed is loaded again after so many seconds.
LATER: Final = 5.0

_log = logging.getLogger("venire.service")


class Ticking(Offering):
    """The part of a hub that lets time pass."""

    storage: Storage
    clock: Clock
    settings: ServiceSettings
    watch: Watch
    _poke: asyncio.Event
    _lost: dict[str, float]
    _until: float

    async def live(self, name: str) -> Live:
        """A stream as it is now."""
        raise NotImplementedError

    def drop(self, live: Live) -> None:
        """Forget what is in memory."""
        raise NotImplementedError

    async def recover(self) -> None:
        """Come up after a failure, with nothing in memory."""
        raise NotImplementedError

    async def snapshot(self, live: Live) -> None:
        """Write down the state of a stream."""
        raise NotImplementedError

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside the requests."""
        raise NotImplementedError

    def step(self, live: Live) -> None:
        """Let time pass for a stream; one that fails is thrown away, as it may be half changed.

        Where that may take long a thread does it, and the stream is `busy`.
        """
        moment, slot = self.moment(), live.engine.slot
        if live.busy is not None:
            return
        if not live.is_due(moment.now):
            if live.is_long and not live.engine.is_filed:
                self.apart(live, live.engine.file).add_done_callback(partial(self._failed, live))
            return
        if live.is_long:
            apart = self.apart(
                live, partial(live.step, moment, self.clock), partial(self._stepped, live, slot)
            )
            apart.add_done_callback(partial(self._failed, live))
            return
        try:
            batch = live.step(moment, self.clock)
        except Exception:
            self.drop(live)
            raise
        self._stepped(live, slot, batch)

    def _stepped(self, live: Live, slot: int, batch: Batch | None) -> None:
        """Time has passed. In a new slot a policy may want what it did not want before."""
        if batch is not None:
            self.commit(live, batch)
        if live.open and live.engine.slot > slot:
            self.wake(live.name)

    def _failed(self, live: Live, apart: asyncio.Future[Any]) -> None:
        error = apart.exception()
        if error is not None and self._lives.get(live.name) is live:
            self.drop(live)
            self._lose(live.name, error)

    def tick(self) -> None:
        """Let time pass for all streams; one that fails does not stop the others."""
        for live in tuple(self._lives.values()):
            try:
                self.step(live)
                if live.n - live.snapshot_n >= max(
                    self.settings.snapshot_every, 2 * len(live.open)
                ):
                    self.spawn(self.snapshot(live))
            except Exception as error:
                self._lose(live.name, error)

    async def _tick_forever(self) -> None:
        while True:
            try:
                self.watch.try_files()
                if self.writer.up:
                    self.tick()
                    await self._find()
                else:
                    with contextlib.suppress(StoreDown):
                        await self._reload()
                await self._nap()
            except Exception:
                _log.exception("the ticker stumbled, and goes on")
                await asyncio.sleep(RETRY)

    async def _nap(self) -> None:
        """Wait until something is due."""
        now = self.clock.monotonic()
        free = [live for live in self._lives.values() if live.busy is None]
        due = min((live.due(now) for live in free), default=math.inf)
        self._until = min(due, now + LONGEST)
        self._poke.clear()
        pause = max(self._until - now, 0.0) if self.writer.up else RETRY
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._poke.wait()

    async def _reload(self) -> None:
        """After a failure: all streams are loaded, so that their leases end and slots close."""
        await self.recover()
        self._lost = {row.name: -math.inf for row in await self.read(self.storage.streams)}
        await self._find()

    async def _find(self) -> None:
        """Load the streams that were lost, each for itself."""
        now = self.clock.monotonic()
        for name in [name for name, at in self._lost.items() if at <= now]:
            try:
                await self.live(name)
                self._lost.pop(name, None)
            except StoreDown:
                raise
            except (NotFound, StreamDown):  # it was never written down, or is set aside
                self._lost.pop(name, None)
            except Exception as error:
                self._lose(name, error)

    def _lose(self, name: str, error: BaseException) -> None:
        _log.error("stream %r failed: it is loaded again in %g s", name, LATER, exc_info=error)
        self._lost[name] = self.clock.monotonic() + LATER
