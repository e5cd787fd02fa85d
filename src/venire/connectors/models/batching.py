"""Calls that come one by one, made many at a time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Final

from venire.errors import InputError

__all__ = ["Batching"]

#: Seconds that a call waits for others to come along.
WAIT: Final = 0.02


class Batching:
    """A function of a list, called with what was asked for within a moment.

    >>> async def both():
    ...     total = Batching(lambda numbers: [sum(numbers)] * len(numbers), most=64)
    ...     return await asyncio.gather(total(1), total(2))
    >>> asyncio.run(both())
    [3, 3]
    """

    def __init__(self, call: Callable[[list[Any]], Any], most: int, parallel: int = 1) -> None:
        """At most `most` items a call, and `parallel` calls at once."""
        self._call, self._most = call, most
        self._room = asyncio.Semaphore(parallel)
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, item: Any) -> Any:
        """The answer to one item; the exception, if the call of its batch failed."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        task = asyncio.ensure_future(self._flush(len(self._waiting) >= self._most))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await future

    async def _flush(self, full: bool) -> None:
        """Call with what waits: at once if there is enough, else after a moment."""
        if not full:
            await asyncio.sleep(WAIT)
        async with self._room:
            some, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            some = [(item, future) for item, future in some if not future.cancelled()]
            if some:
                await self._answer([item for item, _ in some], [future for _, future in some])

    async def _answer(self, items: list[Any], futures: list[asyncio.Future[Any]]) -> None:
        try:
            said = await self._said(items)
            if len(said) != len(items):
                raise InputError(f"got {len(said)} answers to {len(items)} items")
        except Exception as fault:
            said = [fault] * len(items)
        for future, one in zip(futures, said, strict=True):
            if future.done():
                continue
            if isinstance(one, Exception):
                future.set_exception(one)
            else:
                future.set_result(one)

    async def _said(self, items: list[Any]) -> list[Any]:
        if inspect.iscoroutinefunction(self._call):
            return list(await self._call(items))
        return list(await asyncio.to_thread(self._call, items))
