"""Sweeps over all items at prices: to adjust the prices, and to add up the bound."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from venire.offline.bound.one_item import Bench, best_set
from venire.offline.instance import Problem
from venire.tools.compiling import kernel

__all__ = ["adjust", "adjust_slots", "gains", "sets"]

Floats = NDArray[np.float64]


@kernel
def adjust(problem: Problem, price: Floats, step: Floats, bench: Bench) -> None:
    """One sweep of the incremental subgradient method, in order of arrival.

    Every block offers its capacity once and becomes cheaper for it; every purchase makes it
    dearer, at once. `step[m]` is by how much.
    """
    slots, labelers = price.shape
    s = 0
    for slot in range(slots):
        for m in range(labelers):
            price[slot, m] = max(0.0, price[slot, m] - step[m] * problem.capacity[m])
        while s < len(problem.weight) and problem.arrival[s] == slot:
            best_set(problem, price, s, bench)
            for k in range(bench.size[0]):
                m, t = bench.best[k, 0], bench.best[k, 1]
                price[t, m] += step[m]
            s += 1


@kernel
def adjust_slots(
    problem: Problem, level: Floats, step: float, supply: Floats, most: Floats
) -> None:
    """The same as if evidence were a liquid with one price, `level[slot]`, for all of a slot.

    `supply[phase]` of it is offered, and an item may have `most[phase, group]`. It buys all of it
    in the cheapest slot before it leaves: ln(w / level), until that is what one more is worth.
    """
    slots, s = len(level), 0
    for slot in range(slots):
        level[slot] = max(0.0, level[slot] - step)
        while s < len(problem.weight) and problem.arrival[s] == slot:
            weight, best, bought, where, low = problem.weight[s], 0.0, 0.0, -1, np.inf
            for t in range(slot, slots):
                if weight - (t - slot) <= best:
                    break
                if level[t] >= min(low, weight):
                    continue
                low = level[t]
                amount = most[problem.phase[t], problem.group[s]]
                if low > 0.0:
                    amount = min(amount, math.log(weight / low))
                gain = -weight * math.expm1(-amount) - low * amount - (t - slot)
                if gain > best:
                    best, bought, where = gain, amount, t
            if where >= 0:
                level[where] += step * bought / supply[problem.phase[where]]
            s += 1


@kernel
def gains(problem: Problem, price: Floats, most: Floats, bench: Bench) -> None:
    """A bound on what each item gains at these prices."""
    for s in range(len(problem.weight)):
        _, most[s] = best_set(problem, price, s, bench)


@kernel
def sets(
    problem: Problem,
    price: Floats,
    gain: Floats,
    start: NDArray[np.int64],
    blocks: NDArray[np.int64],
    bench: Bench,
) -> None:
    """The best set found of each item: blocks[start[s]:start[s + 1]], labeler and slot."""
    n = 0
    for s in range(len(problem.weight)):
        gain[s], _ = best_set(problem, price, s, bench)
        start[s] = n
        for k in range(bench.size[0]):
            blocks[n, 0], blocks[n, 1] = bench.best[k, 0], bench.best[k, 1]
            n += 1
    start[len(problem.weight)] = n
