"""Passes over all items at given prices: to adjust the prices, and to compute the bound."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from venire.offline.bound.one_item import Workspace, best_set
from venire.offline.instance import Problem
from venire.tools.compiling import kernel

__all__ = ["adjust", "adjust_slots", "gains", "sets"]

Floats = NDArray[np.float64]


@kernel
def adjust(problem: Problem, price: Floats, step: Floats, space: Workspace) -> None:
    """One sweep of the incremental subgradient method, in order of arrival.

    Every block first becomes cheaper by its capacity times `step[m]`; every purchase then raises
    its price by `step[m]`, at once. A price here includes the money, below which it never falls.
    """
    slots, labelers = price.shape
    s = 0
    for slot in range(slots):
        for m in range(labelers):
            price[slot, m] = max(problem.money[m], price[slot, m] - step[m] * problem.capacity[m])
        while s < len(problem.weight) and problem.arrival[s] == slot:
            best_set(problem, price, s, space)
            for k in range(space.size[0]):
                m, t = space.best[k, 0], space.best[k, 1]
                price[t, m] += step[m]
            s += 1


@kernel
def adjust_slots(
    problem: Problem, level: Floats, step: float, supply: Floats, most: Floats
) -> None:
    """The same with divisible evidence at one price, `level[slot]`, in each slot.

    The supply is `supply[phase]`, and an item may have `most[phase, group]`. It buys everything
    in the cheapest slot before it leaves: ln(w / level), up to that limit.
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
def gains(problem: Problem, price: Floats, most: Floats, space: Workspace) -> None:
    """A bound on what each item gains at these prices, which include the money."""
    for s in range(len(problem.weight)):
        _, most[s] = best_set(problem, price, s, space)


@kernel
def sets(
    problem: Problem,
    price: Floats,
    gain: Floats,
    start: NDArray[np.int64],
    blocks: NDArray[np.int64],
    space: Workspace,
) -> None:
    """The best set found of each item: blocks[start[s]:start[s + 1]], labeler and slot."""
    n = 0
    for s in range(len(problem.weight)):
        gain[s], _ = best_set(problem, price, s, space)
        start[s] = n
        for k in range(space.size[0]):
            blocks[n, 0], blocks[n, 1] = space.best[k, 0], space.best[k, 1]
            n += 1
    start[len(problem.weight)] = n
