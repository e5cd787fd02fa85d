"""What `compare` and `reproduce` share: label sets, parallel processes, and interruptions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from venire.cli import screen
from venire.cli.clusters import client_of
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.simulation.sweeps.executors import Executor

__all__ = ["JOBS", "check_data", "executor_of", "say_resumable", "worker_count"]

JOBS = "Processes to run at once. [default: one for each core]"


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


def say_resumable(store: Path) -> None:
    """Say that an interrupted command can be resumed."""
    screen.say(f"finished points are kept in {store}: the same command resumes from there")
