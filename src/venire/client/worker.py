"""`Worker`: a callable as a labeler of a stream, and the threads in which it is called.

Those are daemons, since a call may never return: Python joins the threads of `concurrent.futures`
at exit, so one that hangs would keep the process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from venire.client.clients import AsyncClient
from venire.client.wire import Nothing, ServerError, Unreachable, Work, given
from venire.errors import GaveUp, InputError, NotNow
from venire.model import NoWork, rationale_of

Job: TypeAlias = Callable[[], None]


class Threads:
    """Up to `most` threads, started on demand and then reused.

    >>> async def shout():
    ...     return await Threads(1).call(str.upper, "spam")
    >>> asyncio.run(shout())
    'SPAM'
    """

    def __init__(self, most: int) -> None:
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


LONGEST_PAUSE = 30.0

#: The most requests for work at once; a server lets a key wait with a few hundred in all.
ASKERS = 8

LOG = logging.getLogger("venire.work")


@dataclass
class Tally:
    """Counts of what a worker has done."""

    labelled: int = 0
    failed: int = 0
    given_back: int = 0


class Worker:
    """Pulls work for one labeler and answers it with a callable.

        worker = Worker(client, "posts", "judge-1", lambda payload: "spam", concurrency=4)
        await worker.run()      # until worker.stop(), or the stream is closed and empty

    `concurrency` is how many items it works on at once; the labeler's capacity in the stream must
    allow it. With `until_idle`, it stops after that many seconds without work. Without `resume`, it
    leaves alone what the labeler holds already: for several workers of one labeler at a time.
    """

    def __init__(
        self,
        client: AsyncClient,
        stream: str,
        labeler: str | None,
        call: Callable[[Any], Any],
        *,
        concurrency: int = 1,
        wait: float = 20.0,
        grace: float = 30.0,
        until_idle: float | None = None,
        resume: bool = True,
    ) -> None:
        """`grace` is how many seconds running work may take to finish after `stop`."""
        if concurrency < 1:
            raise InputError(f"got a concurrency of {concurrency}, expected 1 or more")
        self._client, self._stream, self._labeler, self._call = client, stream, labeler, call
        self._concurrency, self._grace = concurrency, grace
        self._wait = wait if until_idle is None else min(wait, until_idle)
        self._until_idle, self._resume = until_idle, resume
        self._held: deque[Work] = deque()
        self._stopping = asyncio.Event()
        self._threads = Threads(concurrency)
        self._askers = asyncio.Semaphore(ASKERS)
        self._nothing: tuple[float, Nothing] = (float("-inf"), Nothing("empty"))
        self.tally = Tally()
        self.gave_up: str | None = None

    def stop(self) -> None:
        """Stop gracefully: running work is finished, or released after the grace period."""
        self._stopping.set()

    async def run(self) -> Tally:
        """Work until stopped."""
        if self._resume:
            self._held.extend(await self._client.held(self._stream, self._labeler))
            await asyncio.gather(*(self._renew(work) for work in self._held))
        pullers = [asyncio.ensure_future(self._pull()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*pullers)
        finally:
            for puller in pullers:
                puller.cancel()
            await asyncio.gather(*pullers, return_exceptions=True)
            self._threads.close()
            for work in self._held:
                await self._release(work, "stopped before it was begun", bar=False)
        return self.tally

    async def _pull(self) -> None:
        """Label one item after another, until stopped or there is nothing to do."""
        failures = 0
        while not self._stopping.is_set():
            work = self._held.popleft() if self._held else await self._ask()
            if isinstance(work, Nothing):
                done = work.reason in (NoWork.CLOSED, NoWork.BUDGET_SPENT)
                if done or (self._until_idle is not None and work.reason != "stopping"):
                    return
                if work.reason in (NoWork.OVER_CAPACITY, NoWork.PAUSED):
                    await self._sleep(1.0)
            elif await self._do(work):
                failures = 0
            else:
                failures += 1
                await self._sleep(min(LONGEST_PAUSE, 0.1 * 2**failures))

    async def _ask(self) -> Work | Nothing:
        """Request work; returns at once on `stop`."""
        asked = asyncio.ensure_future(self._next())
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({asked, stop}, return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else Nothing("stopping")
        finally:
            stop.cancel()
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def _next(self) -> Work | Nothing:
        """Request work, a few requests at once; what another one found out meanwhile holds too."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        async with self._askers:
            if self._nothing[0] > since:
                return self._nothing[1]
            found = await self._client.next(self._stream, self._labeler, self._wait)
            if isinstance(found, Nothing):
                self._nothing = (loop.time(), found)
            return found

    async def _do(self, work: Work) -> bool:
        """Label one item; whether the callable succeeded."""
        said = asyncio.ensure_future(self._answer(work))
        beat = asyncio.ensure_future(self._beat(work))
        try:
            await self._finish(said)
            if not said.done():
                await self._release(work, "stopped before it was finished", bar=False)
                return True
            answer = said.result()
        except NotNow as fault:
            LOG.info("%s: no answer for now: %s", work.item, fault)
            await self._release(work, "not now", bar=False)
            return False
        except GaveUp as fault:
            self.gave_up = str(fault)
            self.stop()
            await self._release(work, "gave up", bar=False)
            return False
        except Exception as fault:
            LOG.warning("%s: the callable failed: %r", work.item, fault)
            await self._release(work, "failed", bar=True)
            return False
        finally:
            beat.cancel()
            said.cancel()
        return await self._send(work, answer)

    async def _finish(self, said: asyncio.Future[Any]) -> None:
        """Wait for the answer; after `stop`, for the grace period at most."""
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({said, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not said.done():
                await asyncio.wait({said}, timeout=self._grace)
        finally:
            stop.cancel()

    async def _answer(self, work: Work) -> Any:
        argument = work if _wants_work(self._call) else work.payload
        if inspect.iscoroutinefunction(self._call):
            return await self._call(argument)
        said = await self._threads.call(self._call, argument)
        return await said if inspect.isawaitable(said) else said

    async def _beat(self, work: Work) -> None:
        await asyncio.sleep(max(0.05, work.ttl / 3))
        while await self._renew(work):
            await asyncio.sleep(max(0.05, work.ttl / 3))

    async def _renew(self, work: Work) -> bool:
        """Renew the lease; whether that succeeded."""
        try:
            await self._client.heartbeat(work.token)
        except (ServerError, Unreachable) as fault:
            LOG.info("%s: heartbeat failed: %s", work.item, fault)
            return False
        return True

    async def _send(self, work: Work, answer: Any) -> bool:
        said, sure = getattr(answer, "label", answer), getattr(answer, "confidence", None)
        why = rationale_of(getattr(answer, "rationale", None))
        if not isinstance(said, str) or said not in work.classes:
            why = "no answer" if said is None else f"said {said!r}, expected one of {work.classes}"
            LOG.info("%s: no label: %s", work.item, why)
            await self._release(work, why, bar=True)
            return said is None
        try:
            beside = given(confidence=sure, rationale=why)
            await self._client.label(work.token, said, **beside)
        except ServerError as fault:  # about this item; general errors also come from `next`
            LOG.warning("%s: the label was refused: %s", work.item, fault)
            self.tally.failed += 1
            return False
        self.tally.labelled += 1
        return True

    async def _release(self, work: Work, why: str, bar: bool) -> None:
        if bar and why != "no answer":
            self.tally.failed += 1
        self.tally.given_back += 1
        try:
            if why != "no answer" or not await self._abstain(work):
                await self._client.release(work.token, bar)
        except ServerError as fault:
            LOG.info("%s: release failed: %s", work.item, fault)

    async def _abstain(self, work: Work) -> bool:
        """Say that there is no answer; whether the server knows what that is: older ones do not."""
        try:
            await self._client.abstain(work.token)
        except ServerError as fault:
            if fault.status != 404:
                raise
            return False
        return True

    async def _sleep(self, seconds: float) -> None:
        """Sleep; returns at once on `stop`."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return


def _wants_work(call: Callable[..., Any]) -> bool:
    """Whether the first parameter of the callable is annotated as `Work`."""
    try:
        signature = inspect.signature(call, eval_str=True)
    except (TypeError, ValueError):
        return False
    except Exception:  # an annotation that cannot be evaluated: compare its name
        signature = inspect.signature(call)
    first = next(iter(signature.parameters.values()), None)
    return first is not None and first.annotation in (Work, "Work")
