"""The best length of the learning phase, by a search without optimism bias.

The best of many lengths on the seeds it was chosen on looks better than it is. Seeds are split
in two halves; on each half the length with the highest mean utility is chosen, and evaluated on the
other half. The biased result, the best length of each seed in hindsight, is reported too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from venire_research.reproduction.trials import Trials

__all__ = ["Search", "search"]

Floats = NDArray[np.float64]

SAMPLES = 500


@dataclass(frozen=True, eq=False)
class Search:
    """What was chosen and how it did; arrays are seeds x horizons unless said otherwise."""

    trials: Trials
    length: NDArray[np.int64]
    regret: Floats
    ratio: Floats
    right: Floats
    majority: Floats
    hindsight_regret: Floats
    #: Best length on all seeds, and the middle 95 % of what other seeds would choose: horizons.
    best: NDArray[np.int64]
    best_low: Floats
    best_high: Floats
    #: Best length on each of many redrawn sets of seeds: samples x horizons.
    redrawn: NDArray[np.int64]


def search(trials: Trials, seed: int = 0) -> Search:
    """Choose on one half of the seeds, evaluate on the other, for every horizon."""
    value = np.where(trials.usable[:, None, :], trials.utility, -np.inf)
    seeds = np.arange(len(trials.seeds))
    chosen = np.empty(value.shape[1:], dtype=np.int64)
    for half in (0, 1):
        chosen[seeds % 2 == half] = value[:, seeds % 2 != half].mean(axis=1).argmax(axis=0)
    rng = np.random.default_rng(seed)
    drawn = np.array(
        [
            trials.lengths[value[:, rng.integers(len(seeds), size=len(seeds))].mean(1).argmax(0)]
            for _ in range(SAMPLES)
        ]
    )
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)

    def at(values: Floats) -> Floats:
        return np.asarray(np.take_along_axis(values, chosen[None], axis=0)[0])

    regret = np.where(trials.usable[:, None, :], trials.regret, np.inf)
    return Search(
        trials,
        trials.lengths[chosen],
        at(trials.regret),
        at(trials.ratio),
        at(trials.right),
        at(trials.majority),
        regret.min(axis=0),
        trials.lengths[value.mean(axis=1).argmax(axis=0)],
        low,
        high,
        drawn,
    )
