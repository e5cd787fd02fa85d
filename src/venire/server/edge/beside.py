"""One thread beside the event loop, for reading and writing long JSON.

Both hold the interpreter's lock for tens of milliseconds at a time. Several threads would pass it
on to each other before the event loop gets it, and everybody else would wait for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

__all__ = ["beside"]

T = TypeVar("T")

_THREAD: Final = ThreadPoolExecutor(1, "venire-json")


async def beside(work: Callable[[], T]) -> T:
    """What the function returns, after those that came before it.

    >>> asyncio.run(beside(lambda: sum(range(5))))
    10
    """
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work)
