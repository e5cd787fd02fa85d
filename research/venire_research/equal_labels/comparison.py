"""Every label set, mode and number of labels with several seeds: one row for each contestant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from venire.scheduling.base import Learning, Policy
from venire_research.common.runs import run_points, seed_count
from venire_research.equal_labels.buying import MODES, Mode
from venire_research.equal_labels.measures import RULE, Row, cell
from venire_research.equal_labels.replay import sets_in
from venire_research.sweeps.executors import Executor
from venire_research.sweeps.store import Store

__all__ = ["POINTS", "QUICK_SEEDS", "QUICK_SETS", "SEEDS", "compare"]

#: Labels per item, on average.
POINTS: Final[tuple[float | str, ...]] = (1.5, 2.0, 3.0, 5.0, RULE)
#: Streams of each set, seeds 0 to SEEDS - 1.
SEEDS: Final = 5
#: With `quick`: fewer seeds, and those of these sets that are available.
QUICK_SEEDS: Final = 2
QUICK_SETS: Final = ("bluebird", "dog", "rte", "temp")


def compare(
    sets: Sequence[str] = (),
    seeds: int | None = None,
    *,
    data: Path | None = None,
    quick: bool = False,
    modes: Sequence[Mode] = MODES,
    labels: Sequence[float | str] = POINTS,
    policy: Policy | None = None,
    learning: Learning | None = None,
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Run all cells; rows of `COLUMNS`.

    Parameters
    ----------
    sets
        Names of label sets; none: all of the folder, or with `quick` a few of them.
    seeds
        How many seeds; None: the suite's.
    data
        The folder of label sets; None: those that `venire datasets` has.
    quick
        Fewer sets and seeds.
    modes, labels
        Whether labelers are chosen or come, and how many labels there are per item.
    policy, learning
        What is measured; None: venire's defaults.
    store, executor, progress
        Where finished cells are stored (by default nowhere), where they run, and a progress
        callback.
    """
    count = seed_count(seeds, QUICK_SEEDS if quick else SEEDS)
    names = sets_in(data, sets)
    if quick and not sets:
        names = [name for name in names if name in QUICK_SETS] or names[:1]
    points = [
        cell(name, mode, many, seed, data, policy, learning)
        for name in names
        for mode in modes
        for many in labels
        for seed in range(count)
    ]
    found = run_points(points, store, executor, progress).values()
    return [row for rows in found for row in rows]
