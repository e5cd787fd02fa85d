"""What the comparisons share when they run their points: the number of seeds, and the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from venire.errors import InputError
from venire_research.sweeps.executors import Executor
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import Point, sweep

__all__ = ["run_points", "seed_count"]


def run_points(
    points: Sequence[Point],
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """The result of each point by its key; without a store, results are kept in memory only."""
    with Store(":memory:") if store is None else nullcontext(store) as kept:
        return sweep(points, kept, executor, progress)


def seed_count(given: int | None, default: int) -> int:
    """How many seeds to run.

    >>> seed_count(None, 5), seed_count(2, 5)
    (5, 2)
    """
    if given is not None and given < 1:
        raise InputError(f"got {given} seeds, expected at least 1")
    return default if given is None else given
