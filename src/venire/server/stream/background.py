"""Thread pools: reads, what keeps the store, long steps, loading, compiling, heavy work and more.

Each kind of work has its own pool, so that none blocks another: requests never wait for a reader
behind an explanation. While a thread works on a stream, the stream's `busy` is set and nobody else
touches it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from venire.errors import StreamLoading, TooMuch
from venire.server.stream.engine_setup import warm_up
from venire.tools.compiling import Notice

if TYPE_CHECKING:
    from venire.server.settings import StreamSettings
    from venire.server.stream.live_stream import LiveStream

T = TypeVar("T")

#: Threads that read from the store for requests.
READERS: Final = 4

#: Threads that keep the store and its streams: they wait for no request that reads.
KEEPERS: Final = 3

#: Threads that close slots and copy the state of streams.
STEPPERS: Final = 2

#: Threads that load streams: more than are loaded in the background, so that what is asked for
#: need not wait for two large ones.
LOADERS: Final = 4

#: Threads that compile: a stream of a new policy does not keep others waiting.
COMPILERS: Final = 2

#: How many functions are compiled for a typical stream.
FUNCTIONS: Final = 210

#: Threads for other heavy work: packing snapshots, measuring skills, making engines.
WORKERS: Final = 3

#: How many explanations may run or wait, and how many longer replays; one thread for each kind.
MAX_EXPLANATIONS, MAX_REPLAYS = 8, 4


class Threads(ThreadPoolExecutor):
    """Threads for one kind of work; with `most`, no more than this may run or wait."""

    def __init__(self, what: str, threads: int = 1, most: float = math.inf) -> None:
        super().__init__(threads, f"venire-{what}")
        self._what, self._most, self._count = what, most, 0

    async def __call__(self, work: Callable[..., T], *args: Any) -> T:
        """Do it when it is its turn; `TooMuch` if too many are waiting."""
        if self._count >= self._most:
            raise TooMuch(f"{self._count} {self._what} are in progress, the limit", retry_after=2)
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self, work, *args)
        finally:
            self._count -= 1


class ThreadPools:
    """The thread pools of a service; `on_idle` is called when a stream is no longer busy."""

    def __init__(self, on_idle: Callable[[LiveStream], None]) -> None:
        self._on_idle = on_idle
        self.read = Threads("reader", READERS)
        self.keep = Threads("keeper", KEEPERS)
        self.compute = Threads("worker", WORKERS)
        self.load = Threads("loader", LOADERS)
        self.learn = Threads("teacher")  # one student at a time
        self.explain = Threads("explanations", most=MAX_EXPLANATIONS)
        self.replay = Threads("replays", most=MAX_REPLAYS)
        self._steppers = Threads("stepper", STEPPERS)
        self._compilers = Threads("compiler", COMPILERS)
        self._warm: dict[tuple[str, str, int], asyncio.Future[None]] = {}
        self._compiling = 0.0, 0  # since when, and how many functions were compiled before

    async def scan(self, many: bool, method: Callable[..., T], *args: Any) -> T:
        """Go through the contents of a request: directly, or in a thread if there are many."""
        return await asyncio.to_thread(method, *args) if many else method(*args)

    def run_exclusively(
        self, live: LiveStream, work: Callable[[], T], then: Callable[[T], None] | None = None
    ) -> asyncio.Future[T]:
        """Run a step of a stream in a thread, with the stream marked busy until it is done.

        `then` gets the result, on the loop and before anybody else. Whoever awaits the future may
        be cancelled: the stream stays busy for as long as the thread runs.
        """
        loop = asyncio.get_running_loop()
        idle = live.busy = loop.create_future()
        outcome: asyncio.Future[T] = loop.create_future()
        outcome.add_done_callback(ignore_error)

        def finish(made: Future[T]) -> None:
            live.busy = None
            idle.set_result(None)
            try:
                result = made.result()
                if then is not None:
                    then(result)
            except Exception as error:
                if not outcome.done():
                    outcome.set_exception(error)
            else:
                if not outcome.done():
                    outcome.set_result(result)
            self._on_idle(live)

        made = self._steppers.submit(work)
        made.add_done_callback(lambda _: loop.call_soon_threadsafe(finish, made))
        return outcome

    async def warm(self, settings: StreamSettings, patience: float | None = None) -> None:
        """Compile everything that such a stream needs, once, however many wait for it.

        `StreamLoading` if that takes longer than `patience`; it goes on all the same.
        """
        kind = _kind(settings)
        if self.is_warm(settings):
            return
        warming = self._warm.get(kind)
        if warming is None:
            loop = asyncio.get_running_loop()
            warming = self._warm[kind] = loop.run_in_executor(self._compilers, warm_up, settings)
            self._compiling = loop.time(), Notice.functions
            warming.add_done_callback(lambda done: self._warmed(kind, done))
        await asyncio.wait({warming}, timeout=patience)
        if not warming.done():
            raise StreamLoading(compiling=self._seconds_left())
        warming.result()

    def _seconds_left(self) -> float:
        """For about how long it is still compiled, by the pace so far."""
        since, before = self._compiling
        passed, done = asyncio.get_running_loop().time() - since, Notice.functions - before
        return min(max(passed * (FUNCTIONS / max(done, 1) - 1), 1.0), 60.0)

    def _warmed(self, kind: tuple[str, str, int], done: asyncio.Future[None]) -> None:
        ignore_error(done)
        if done.cancelled() or done.exception() is not None:
            del self._warm[kind]  # the next one tries again

    def is_warm(self, settings: StreamSettings) -> bool:
        """Whether everything that such a stream needs is compiled."""
        kind = _kind(settings)
        return kind in self._warm and self._warm[kind].done()

    def close(self) -> None:
        """Accept no more work; what is running continues to its end."""
        for pool in (self.read, self.keep, self.compute, self._steppers, self.explain):
            pool.shutdown(wait=False)
        for pool in (self.load, self.learn, self.replay, self._compilers):
            pool.shutdown(wait=False, cancel_futures=True)


def _kind(settings: StreamSettings) -> tuple[str, str, int]:
    """What decides which kernels a stream needs."""
    return settings.policy, settings.learning, len(settings.classes)


def ignore_error(future: asyncio.Future[Any]) -> None:
    """Suppress the warning about an exception that nobody retrieved."""
    if not future.cancelled():
        future.exception()
