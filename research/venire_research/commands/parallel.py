"""What `compare` and `reproduce` share: label sets, parallel processes, and interruptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from venire.cli.shared import screen
from venire.cli.shared.tables import client_of
from venire.errors import InputError

if TYPE_CHECKING:
    from venire_research.sweeps.executors import Executor

__all__ = ["check_data", "executor_of", "say_long", "say_resumable"]

#: After this number of seconds it says how long the rest will take, if that is at least LONG.
LOOK: Final = 300.0
LONG: Final = 3600.0


def check_data(data: Path | None) -> None:
    """Refuse a folder of label sets that does not exist."""
    if data is not None and not data.is_dir():
        raise InputError(f"got --data {data}, expected a folder of label sets")


@contextmanager
def executor_of(jobs: int, cluster: str | None = None) -> Iterator[Executor]:
    """An executor for this many parallel jobs, or for those of a cluster."""
    from venire_research.sweeps.executors import OnCluster, Processes, Serial

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
