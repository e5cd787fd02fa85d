"""Work beside the loop: reading the store, closing long slots, explaining.

Each kind has threads of its own, so that none keeps another waiting: whatever explains or
measures takes none of those that requests read by. While a thread works on a stream, `busy` of
that stream is set, and nobody else touches it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from venire.errors import TooMuch
from venire.service.settings import StreamSettings
from venire.service.stream.engine_setup import warm_up
from venire.service.stream.live_stream import Live

__all__ = ["Threads", "seen"]

T = TypeVar("T")

#: Threads that read from the store for requests.
READERS: Final = 4

#: Threads that close slots and copy the state of streams.
CLOSERS: Final = 2

#: Threads for what takes long: loading, compiling, packing, measuring.
THINKERS: Final = 3

#: One thread explains, and so many may wait for it.
EXPLAINED: Final = 8


class Threads:
    """The threads of a hub."""

    _loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, "venire-reader")
        self._closers = ThreadPoolExecutor(CLOSERS, "venire-closer")
        self._thinkers = ThreadPoolExecutor(THINKERS, "venire-thinker")
        self._explainer = ThreadPoolExecutor(1, "venire-explainer")
        self._explained = 0
        self._warm: set[tuple[str, str, int]] = set()

    async def read(self, method: Callable[..., T], *args: Any) -> T:
        """Ask the store something, in a thread."""
        return await self._loop.run_in_executor(self._readers, method, *args)

    async def think(self, method: Callable[..., T], *args: Any) -> T:
        """Do something that takes long, in a thread that no request reads by."""
        return await self._loop.run_in_executor(self._thinkers, method, *args)

    async def scan(self, many: bool, method: Callable[..., T], *args: Any) -> T:
        """Go through what was sent: at once, or in a thread if it is much."""
        return await asyncio.to_thread(method, *args) if many else method(*args)

    async def explain(self, search: Callable[[], T]) -> T:
        """Search the log, in the one thread that does; `TooMuch` if too many want that."""
        if self._explained >= EXPLAINED:
            raise TooMuch(f"{self._explained} explanations are wanted at once", retry_after=2)
        self._explained += 1
        try:
            return await self._loop.run_in_executor(self._explainer, search)
        finally:
            self._explained -= 1

    def apart(
        self, live: Live, work: Callable[[], T], then: Callable[[T], None] | None = None
    ) -> asyncio.Future[T]:
        """Let a thread work on a stream, which nobody else touches until that is done.

        `then` gets what was made, on the loop and before anybody else. Whoever waits for the
        future may be cancelled: the stream stays busy for as long as the thread works.
        """
        free = live.busy = self._loop.create_future()
        told: asyncio.Future[T] = self._loop.create_future()
        told.add_done_callback(seen)

        def done(made: Future[T]) -> None:
            live.busy = None
            free.set_result(None)
            try:
                result = made.result()
                if then is not None:
                    then(result)
            except Exception as error:
                if not told.done():
                    told.set_exception(error)
            else:
                if not told.done():
                    told.set_result(result)
            self.freed(live)

        made = self._closers.submit(work)
        made.add_done_callback(lambda _: self._loop.call_soon_threadsafe(done, made))
        return told

    def freed(self, live: Live) -> None:
        """A stream can be used again."""

    async def warm(self, settings: StreamSettings) -> None:
        """Have everything compiled that such a stream needs, once."""
        if not self.is_warm(settings):
            await self.think(warm_up, settings)
            self._warm.add((settings.policy, settings.learning, len(settings.classes)))

    def is_warm(self, settings: StreamSettings) -> bool:
        """Whether everything is compiled that such a stream needs."""
        return (settings.policy, settings.learning, len(settings.classes)) in self._warm

    def end_threads(self) -> None:
        """Take no more work; what is under way goes on to its end."""
        for threads in (self._readers, self._closers, self._thinkers, self._explainer):
            threads.shutdown(wait=False)


def seen(future: asyncio.Future[Any]) -> None:
    """A failure that nobody waits for needs no warning."""
    if not future.cancelled():
        future.exception()
