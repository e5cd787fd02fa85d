"""Every world, policy and way of learning with several seeds: one row for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from venire.scheduling import (
    FixedOverlap,
    Greedy,
    LearnThenServe,
    LearnWhileServing,
    LookAhead,
    Realised,
    Waterfill,
)
from venire.scheduling.base import Learning, Policy
from venire_research.common.runs import run_points, seed_count
from venire_research.sweeps.executors import Executor
from venire_research.sweeps.store import Store
from venire_research.trust.measures import Row, cell
from venire_research.trust.worlds import SLOTS, WORLDS, world_named

__all__ = ["QUICK_SEEDS", "QUICK_SLOTS", "SEEDS", "compare", "default_learning", "default_policies"]

#: Streams of each world, seeds 0 to SEEDS - 1.
SEEDS: Final = 5
#: With `quick`: shorter streams, and fewer of them.
QUICK_SEEDS: Final = 2
QUICK_SLOTS: Final = 120
#: How long the learning phase is, where there is one.
PHASE: Final = 45


def default_policies() -> tuple[Policy, ...]:
    """The policies of the suite."""
    return Realised(), LookAhead(), Greedy(), Waterfill(), FixedOverlap(3)


def default_learning() -> tuple[Learning, ...]:
    """The ways of learning of the suite."""
    return LearnWhileServing(), LearnThenServe(PHASE)


def compare(
    worlds: Sequence[str] = (),
    seeds: int | None = None,
    *,
    policies: Sequence[Policy] | None = None,
    learning: Sequence[Learning] | None = None,
    quick: bool = False,
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Run all cells; one row for each.

    `worlds` are names, none for all; `seeds`, `policies` and `learning` are the suite's by
    default. Finished cells are kept in `store`.

    >>> from venire import FixedOverlap, LearnWhileServing
    >>> one = {"policies": [FixedOverlap(3)], "learning": [LearnWhileServing()]}
    >>> rows = compare(["panel-4"], seeds=1, quick=True, **one)
    >>> [(row["world"], row["policy"], row["seed"]) for row in rows]
    [('panel-4', 'fixed-overlap:3', 0)]
    """
    count = seed_count(seeds, QUICK_SEEDS if quick else SEEDS)
    names = [world_named(name).name for name in worlds] or [world.name for world in WORLDS]
    points = [
        cell(name, policy, how, seed, QUICK_SLOTS if quick else SLOTS)
        for name in names
        for how in (default_learning() if learning is None else learning)
        for policy in (default_policies() if policies is None else policies)
        for seed in range(count)
    ]
    return list(run_points(points, store, executor, progress).values())
