"""Writing a large step of a stream part by part, with what others write in between.

The writer commits in one transaction whatever is queued, and others wait for it. So a part is
handed in only once the one before is on disk. The stream is busy until the last is handed in:
nothing of its own may come between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from venire.errors import StoreDown, VenireError
from venire.server.stream.background import ignore_error
from venire.server.stream.change_batch import Batch
from venire.server.stream.live_stream import LiveStream

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime


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


T = TypeVar("T")

#: Items or labels of a request to process in one step: about ten milliseconds.
CHUNK: Final = 250

#: From this many on, a thread processes them, so that no other stream waits.
THREAD_FROM: Final = 100

#: Chunks of a request that may wait for the disk, so that other requests are not far behind it.
MAX_UNCOMMITTED: Final = 1


async def run_chunk(
    runtime: Runtime,
    live: LiveStream,
    batch: Batch,
    part: slice,
    step: Callable[[], T],
    commits: list[asyncio.Future[None]],
) -> T:
    """Do one chunk of a large request, and add its commit to those of the request.

    A thread does it if there is much to do. If it fails half-way the stream is reloaded; an
    error that only refuses the request has changed nothing. Returns once at most
    `MAX_UNCOMMITTED` commits are not on disk yet.
    """

    def check(done: asyncio.Future[T]) -> None:
        if not isinstance(done.exception(), VenireError) or batch.changes():
            runtime.ticker.check(live, done)

    def commit() -> None:
        commits.append(runtime.commit(live, batch))

    if part.stop - part.start >= THREAD_FROM or live.is_large:
        done = runtime.threads.run_exclusively(live, step, lambda _: commit())
        done.add_done_callback(check)
        result = await done
    else:
        try:
            result = step()
            commit()
        except Exception as error:
            broken: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            broken.set_exception(error)
            check(broken)
            raise
    await committed(commits, MAX_UNCOMMITTED)
    return result


async def chunks(
    runtime: Runtime, name: str, count: int, cuts: Iterable[int] = ()
) -> AsyncIterator[tuple[LiveStream, slice]]:
    """Split `count` things of one request into chunks; other requests run in between.

    A chunk also ends before each of the `cuts`.
    """
    starts = sorted({*range(0, count, CHUNK), *cuts})
    ends = [*starts[1:], count] if starts else []
    for first, end in zip(starts, ends, strict=True):
        if first:
            await asyncio.sleep(0)
        yield await runtime.live_stream(name), slice(first, end)


async def committed(commits: Sequence[asyncio.Future[None]], behind: int = 0) -> None:
    """Wait until all commits but the last `behind` are on disk; raises if one failed."""
    for done in commits[: len(commits) - behind]:
        await done
