"""Daemon threads for callables that may never return.

Python joins the threads of `concurrent.futures` at exit, so one call that hangs would keep the
process alive; these are daemons and end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

Job: TypeAlias = Callable[[], None]


class Threads:
    """Up to `most` threads, started on demand and then reused.

    >>> async def shout():
    ...     return await Threads(1).call(str.upper, "spam")
    >>> asyncio.run(shout())
    'SPAM'
    """

    def __init__(self, most: int) -> None:
        """No thread is started yet."""
        self._most, self._started = most, 0
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def call(self, function: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """Call the function in a thread; the future holds its result or exception."""
        loop = asyncio.get_running_loop()
        later: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            try:
                said, fault = function(argument), None
            except BaseException as raised:  # also SystemExit: it must not end the thread silently
                said, fault = None, _catchable(raised)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, later, said, fault)

        if self._started < self._most:
            self._started += 1
            threading.Thread(target=self._work, name="venire-work", daemon=True).start()
        self._jobs.put(job)
        return later

    def close(self) -> None:
        """Let the threads end once they are idle."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _catchable(raised: BaseException) -> Exception:
    """An exception that a future can hold and `except Exception` catches."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    return RuntimeError(repr(raised))


def _settle(later: asyncio.Future[Any], said: Any, fault: Exception | None) -> None:
    if later.done():  # it was cancelled
        return
    if fault is None:
        later.set_result(said)
    else:
        later.set_exception(fault)
