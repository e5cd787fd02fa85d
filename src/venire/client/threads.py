"""Threads for callables that may never return.

Those of `concurrent.futures` are waited for when Python ends, so that one call that hangs would
keep the whole process; these are daemons, and end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["Threads"]

Job: TypeAlias = Callable[[], None]


class Threads:
    """Up to `most` threads, each begun when it is first needed and then kept.

    >>> async def shout():
    ...     return await Threads(1).call(str.upper, "spam")
    >>> asyncio.run(shout())
    'SPAM'
    """

    def __init__(self, most: int) -> None:
        """None is begun yet."""
        self._most, self._begun = most, 0
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def call(self, function: Callable[[Any], Any], argument: Any) -> asyncio.Future[Any]:
        """Call the function in one of the threads; what it returns, or raises, comes later."""
        loop = asyncio.get_running_loop()
        later: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            try:
                said, fault = function(argument), None
            except BaseException as raised:  # also sys.exit(): it must not end the thread unheard
                said, fault = None, _catchable(raised)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, later, said, fault)

        if self._begun < self._most:
            self._begun += 1
            threading.Thread(target=self._work, name="venire-work", daemon=True).start()
        self._jobs.put(job)
        return later

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        for _ in range(self._begun):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _catchable(raised: BaseException) -> Exception:
    """What was raised as something that a future can hold and `except Exception` catches."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    return RuntimeError(repr(raised))


def _settle(later: asyncio.Future[Any], said: Any, fault: Exception | None) -> None:
    if later.done():  # it was given up
        return
    if fault is None:
        later.set_result(said)
    else:
        later.set_exception(fault)
