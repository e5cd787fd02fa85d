"""The most valuable label of each item, for its price.

The value of a label of labeler m on item i is

    weight_i * risk_i * (1 - exp(-(1 - kinship) e_m)) / price_m

(`belief` says what these are). Values are multiplied by a draw between 1 - NOISE and 1 + NOISE, so
that labelers of about the same worth share the work, and meet each other. Buying the highest values
until the budget is gone spends it at one price for all items: the value of the last label bought.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.batch.belief import Belief
from venire.batch.work import FREE, Work
from venire.tools.compiling import threaded

__all__ = ["best_entries", "first_entries"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Half the width of the draw that a value is multiplied by.
NOISE: Final = 0.08


def first_entries(work: Work, free: Bools, price: Floats, seed: int) -> Ints:
    """The labeler of the first label of each item, drawn with odds 1 / `price`; -1 for none.

    >>> from venire.batch.work import as_items
    >>> work = Work.of(as_items({str(i): "" for i in range(1000)}), ["dear", "cheap"])
    >>> entry = first_entries(work, np.ones(2000, bool), np.array([3.0, 1.0]), seed=0)
    >>> np.bincount(work.labeler[entry]).tolist()
    [240, 760]
    """
    best = np.empty(len(work.items), np.int64)
    _first(work.start, work.labeler, free, price, np.uint64(seed), best)
    return best


def best_entries(
    work: Work, said: NDArray[np.int32], belief: Belief, worth: Floats, price: Floats, seed: int
) -> tuple[Ints, Floats]:
    """The best free entry of each item and its value; value 0 where there is none.

    `said` is FREE, or 0 and more for labels; `worth` is what a verdict without risk is worth, 0 for
    items that are done; `price` is infinite for labelers who cannot be asked.
    """
    n = len(work.items)
    best, value = np.zeros(n, np.int64), np.zeros(n)
    left = worth * belief.risk
    _best(
        work.start,
        work.labeler,
        said,
        left,
        belief.verdict,
        belief.rival,
        belief.evidence,
        belief.kinship,
        price,
        np.uint64(seed),
        best,
        value,
    )
    return best, value


@threaded()
def _draw(seed: np.uint64, a: int, b: int) -> float:
    """A number in [0, 1) from a seed and two numbers (SplitMix64)."""
    z = seed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(a) * np.uint64(0xD1B54A32D192ED03)
    z = z + np.uint64(b) * np.uint64(0x8CB92BA72F3D8DD7)
    for _ in range(2):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@threaded()
def _first(
    start: Ints, labeler: Ints, free: Bools, price: Floats, seed: np.uint64, best: Ints
) -> None:
    for i in range(start.size - 1):
        best[i] = -1
        soonest = np.inf
        for e in range(start[i], start[i + 1]):
            if free[e]:
                waits = -math.log1p(-_draw(seed, i, labeler[e])) * price[labeler[e]]
                if waits < soonest:
                    soonest, best[i] = waits, e


@threaded()
def _best(
    start: Ints,
    labeler: Ints,
    said: NDArray[np.int32],
    left: Floats,
    verdict: Ints,
    rival: Ints,
    evidence: Floats,
    kinship: Floats,
    price: Floats,
    seed: np.uint64,
    best: Ints,
    value: Floats,
) -> None:
    here = np.empty(price.size if kinship.shape[0] > 1 else 0, np.int64)
    for i in range(start.size - 1):
        value[i] = 0.0
        if left[i] <= 0.0:
            continue
        asked = 0
        if here.size:
            for e in range(start[i], start[i + 1]):
                if said[e] >= 0:
                    here[asked] = labeler[e]
                    asked += 1
        for e in range(start[i], start[i + 1]):
            m = labeler[e]
            if said[e] != FREE or not price[m] < np.inf:
                continue
            akin = 0.0
            for n in here[:asked]:
                akin = max(akin, kinship[n, m])
            told = (1.0 - akin) * evidence[m, verdict[i], rival[i]]
            drawn = 1.0 + NOISE * (2.0 * _draw(seed, i, m) - 1.0)
            worth = left[i] * -math.expm1(-told) / price[m] * drawn
            if worth > value[i]:
                value[i], best[i] = worth, e
