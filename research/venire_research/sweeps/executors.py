"""Where the points of a sweep run: in this process, in several, or on a cluster.

A sweep needs nothing but an `Executor`: yield each point with its result, in any order, as it
finishes.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol

from venire.errors import InputError, StateError

if TYPE_CHECKING:
    from venire_research.sweeps.sweep import Point

__all__ = ["Executor", "OnCluster", "Processes", "Serial"]


class Executor(Protocol):
    """Something that runs points."""

    def run(self, points: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
        """Each point with its result, as it finishes."""
        ...


@dataclass(frozen=True)
class Serial:
    """One after the other, in this process.

    >>> from venire_research.sweeps.sweep import Point
    >>> [result for _, result in Serial().run([Point("statistics:fmean", {"data": [1, 2]})])]
    [1.5]
    """

    def run(self, points: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
        """Each point with its result, in order."""
        for point in points:
            yield point, point.run()


@dataclass(frozen=True)
class Processes:
    """`jobs` spawned processes of this machine (Numba's threads do not survive a fork).

    A process lives as long as the sweep, so that it loads the compiled kernels once, and gets one
    point at a time, so that a result is stored as soon as it is there: passing a point takes a
    millisecond, running it ten to a thousand. Ctrl-C reaches this process alone; it stops the
    others, and their unfinished points are lost. If this process is killed, they exit.
    """

    jobs: int

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError(f"got {self.jobs} jobs, expected at least 1")

    def run(self, points: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
        """Each point with its result, as it finishes."""
        if not points:
            return
        context = multiprocessing.get_context("spawn")
        jobs = min(self.jobs, len(points))
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent)
        try:
            with _no_interrupts():  # inherited: only this process handles Ctrl-C
                waiting: dict[Future[Any], Point] = {pool.submit(p.run): p for p in points}
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BrokenExecutor:
            raise StateError(
                "a process died, perhaps out of memory: finished results are kept, so try again, "
                "with fewer jobs"
            ) from None
        except BaseException:
            _stop(pool)
            raise
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class OnCluster:
    """The workers of a Dask cluster, by its client (`venire.cluster.connected`).

    The points of a worker that dies are run again by others. Workers need venire, of this version,
    and the folders that a point reads.
    """

    client: Any

    def run(self, points: Sequence[Point]) -> Iterator[tuple[Point, Any]]:
        """Each point with its result, as it finishes."""
        from distributed import KilledWorker, as_completed

        waiting = {self.client.submit(p.run, pure=False): p for p in points}
        try:
            for done in as_completed(list(waiting)) if waiting else ():
                yield waiting[done], done.result()
        except KilledWorker:
            raise StateError(
                "workers of the cluster died again and again on the same point, perhaps out of "
                "memory: finished results are kept, so try again, with more memory for each"
            ) from None
        finally:
            self.client.cancel(list(waiting))


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Defer Ctrl-C; processes started within never see it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """In a worker: exit when the parent does, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        watch = threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True)
        watch.start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _stop(pool: ProcessPoolExecutor) -> None:
    """Terminate the workers; unfinished points are lost, finished ones are kept."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()
