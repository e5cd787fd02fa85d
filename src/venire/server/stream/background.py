"""Thread pools: reads, what keeps the store, long steps, loading, compiling, heavy work and more.

Each kind of work has its own pool, so that none blocks another: requests never wait for a reader
behind an explanation. While a thread works on a stream, the stream's `busy` is set and nobody else
touches it.
"""

from __future__ import annotations

import asyncio
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


class OneThread:
    """A thread for long work, with a bounded queue."""

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most, self._count = what, most, 0
        self._pool = ThreadPoolExecutor(1, f"venire-{what}")

    async def run(self, work: Callable[[], T]) -> T:
        """Do it when it is its turn; `TooMuch` if too many are waiting."""
        if self._count >= self._most:
            raise TooMuch(f"{self._count} {self._what} are in progress, the limit", retry_after=2)
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._count -= 1

    def shutdown(self, wait: bool, cancel_futures: bool) -> None:
        """Accept no more work."""
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)


class ThreadPools:
    """The thread pools of a service; `on_idle` is called when a stream is no longer busy."""

    def __init__(self, on_idle: Callable[[LiveStream], None]) -> None:
        self._on_idle = on_idle
        self._readers = ThreadPoolExecutor(READERS, "venire-reader")
        self._keepers = ThreadPoolExecutor(KEEPERS, "venire-keeper")
        self._steppers = ThreadPoolExecutor(STEPPERS, "venire-stepper")
        self._loaders = ThreadPoolExecutor(LOADERS, "venire-loader")
        self._compilers = ThreadPoolExecutor(COMPILERS, "venire-compiler")
        self._workers = ThreadPoolExecutor(WORKERS, "venire-worker")
        self._explainer = OneThread("explanations", MAX_EXPLANATIONS)
        self._replayer = OneThread("replays", MAX_REPLAYS)
        self._teacher = ThreadPoolExecutor(1, "venire-teacher")
        self._warm: dict[tuple[str, str, int], asyncio.Future[None]] = {}
        self._compiling = 0.0, 0  # since when, and how many functions were compiled before

    async def read(self, method: Callable[..., T], *args: Any) -> T:
        """Read from the store, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, method, *args)

    async def keep(self, method: Callable[..., T], *args: Any) -> T:
        """Do what keeps the store, or the streams of it that are ours, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._keepers, method, *args)

    async def compute(self, method: Callable[..., T], *args: Any) -> T:
        """Do heavy work, in a thread that no request reads with."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, method, *args)

    async def load(self, method: Callable[..., T], *args: Any) -> T:
        """Load a stream, beside others."""
        return await asyncio.get_running_loop().run_in_executor(self._loaders, method, *args)

    async def learn(self, method: Callable[..., T], *args: Any) -> T:
        """Teach a student, one at a time: however many there are, streams are loaded meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._teacher, method, *args)

    async def scan(self, many: bool, method: Callable[..., T], *args: Any) -> T:
        """Go through the contents of a request: directly, or in a thread if there are many."""
        return await asyncio.to_thread(method, *args) if many else method(*args)

    async def explain(self, search: Callable[[], T]) -> T:
        """Search the log, in the one thread for that; `TooMuch` if too many are waiting."""
        return await self._explainer.run(search)

    async def replay(self, work: Callable[[], T]) -> T:
        """Replay many labels, in the one thread for that: no explanation waits for it."""
        return await self._replayer.run(work)

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
        for pool in (self._readers, self._keepers, self._steppers, self._workers):
            pool.shutdown(wait=False)
        for pool in (self._loaders, self._compilers, self._teacher):
            pool.shutdown(wait=False, cancel_futures=True)
        for queue in (self._explainer, self._replayer):
            queue.shutdown(wait=False, cancel_futures=queue is self._replayer)


def _kind(settings: StreamSettings) -> tuple[str, str, int]:
    """What decides which kernels a stream needs."""
    return settings.policy, settings.learning, len(settings.classes)


def ignore_error(future: asyncio.Future[Any]) -> None:
    """Suppress the warning about an exception that nobody retrieved."""
    if not future.cancelled():
        future.exception()
