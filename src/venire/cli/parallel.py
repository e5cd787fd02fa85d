"""What `compare` and `reproduce` share: label sets, parallel processes, and interruptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from venire.cli import screen
from venire.cli.clusters import client_of
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.simulation.sweeps.executors import Executor

__all__ = ["JOBS", "check_data", "executor_of", "say_long", "say_resumable", "worker_count"]

JOBS = "Processes to run at once. [default: one for each core]"

#: After so many seconds it is said how long the rest will take, if that is as long as LONG.
LOOK: Final = 300.0
LONG: Final = 3600.0


def worker_count(jobs: int | None, cluster: str | None = None) -> int:
    """How many processes to run: `jobs`, validated, or one for each core."""
    if jobs is not None and cluster is not None:
        raise InputError("got --jobs and --cluster, expected one of them: a cluster has workers")
    if jobs is not None and not 1 <= jobs <= 1024:
        raise InputError(f"got --jobs {jobs}, expected 1 to 1024 processes")
    return jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else jobs or 2


def check_data(data: Path | None) -> None:
    """Refuse a folder of label sets that does not exist."""
    if data is not None and not data.is_dir():
        raise InputError(f"got --data {data}, expected a folder of label sets")


@contextmanager
def executor_of(jobs: int, cluster: str | None = None) -> Iterator[Executor]:
    """An executor for this many parallel jobs, or for those of a cluster."""
    from venire.simulation.sweeps.executors import OnCluster, Processes, Serial

    if cluster is not None:
        with client_of(cluster) as client:
            yield OnCluster(client)
        return
    yield Processes(jobs) if jobs > 1 else Serial()


def say_long(
    progress: screen.Progress | None,
    cluster: str | None,
    clock: Callable[[], float] = time.monotonic,
) -> screen.Progress | None:
    """The same progress, which says once when the rest takes hours and more machines would pay."""
    if cluster is not None:
        return progress
    begun: tuple[float, int] | None = None
    told = False

    def update(done: int, total: int) -> None:
        nonlocal begun, told
        if progress is not None:
            progress(done, total)
        if begun is None:
            begun = clock(), done
        since, new = clock() - begun[0], done - begun[1]
        if told or since < LOOK or not new:
            return
        told, left = True, since * (total - done) / new
        if left >= LONG:
            screen.say(
                f"about {left / 3600:.1f} hours left: after Ctrl-C the same command with --cluster "
                "goes on from here, on other machines too (docs/cluster.md)"
            )

    return update


def say_resumable(store: Path) -> None:
    """Say that an interrupted command can be resumed."""
    screen.say(f"finished points are kept in {store}: the same command resumes from there")
