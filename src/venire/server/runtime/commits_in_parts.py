"""Writing a large step of a stream part by part, with what others write in between.

The writer commits in one transaction whatever is queued, and others wait for it. So a part is
handed in only once the one before is on disk. The stream is busy until the last is handed in:
nothing of its own may come between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from venire.errors import StoreDown
from venire.server.stream.background import ignore_error
from venire.server.stream.change_batch import Batch
from venire.server.stream.live_stream import LiveStream


class CommitsInParts:
    """Commits the parts of batches in turn; `on_idle` is told when a stream is free again."""

    def __init__(
        self,
        commit: Callable[[LiveStream, Batch], asyncio.Future[None]],
        on_idle: Callable[[LiveStream], None],
    ) -> None:
        self._commit, self._on_idle = commit, on_idle
        self._tasks: set[asyncio.Task[None]] = set()  # nothing cancels them

    def commit(self, live: LiveStream, batch: Batch) -> asyncio.Future[None]:
        """Begin; the future is done when all parts are on disk."""
        loop = asyncio.get_running_loop()
        live.busy, outcome = loop.create_future(), loop.create_future()
        outcome.add_done_callback(ignore_error)
        task = loop.create_task(self._run(live, batch.parts(), outcome))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return outcome

    async def _run(
        self, live: LiveStream, parts: list[Batch], outcome: asyncio.Future[None]
    ) -> None:
        try:
            for part in parts[:-1]:
                await self._commit(live, part)
            self._commit(live, parts[-1]).add_done_callback(partial(_pass_on, outcome))
        except StoreDown as error:  # what is left is lost with the memory of the stream
            if not outcome.done():
                outcome.set_exception(error)
        finally:
            idle, live.busy = live.busy, None
            if idle is not None:
                idle.set_result(None)
            self._on_idle(live)


def _pass_on(outcome: asyncio.Future[None], done: asyncio.Future[None]) -> None:
    """Give a future the outcome of another."""
    error = done.exception()
    if outcome.done():
        return
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)
