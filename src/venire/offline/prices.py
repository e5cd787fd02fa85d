r"""An upper bound on OPT from prices, and prices that make it small.

Let every block (t, m) have a price lambda[t, m] >= 0. No schedule uses more blocks than there are,
so with v_s(lambda) the most that item s can gain at these prices (`offline/one_item.py`)

    OPT <= L(lambda) = sum of capacity[m] lambda[t, m] + sum over s of v_s(lambda)

for *any* prices (weak duality; docs/certificates.md). Where labels cost money, an item pays it on
top of lambda; it is no part of the first sum. L is convex; what an item buys is a part
of a subgradient. The prices are found by the incremental subgradient method: items go in order
of arrival, and a purchase raises the price for the next item at once. First with divisible evidence
at one price in each slot, which is fast and, where labelers differ only in competence, nearly
optimal; for instances of medium size a linear program finds such prices too
(`offline/linear.py`). Then with a price for each block, coarsely from those prices and finely
from the best so far. Steps shrink geometrically. No clock and no randomness: the same instance has
the same prices.

**Rounding.** What is returned is rounded outward. A gain is computed from n options by fewer
than 8 (n + 8) operations on numbers up to w, each with a relative error of 2^-53; four times
that is added for every item, and the sums are exact (`math.fsum`) or allowed for.

Passes over all items at given prices: to adjust the prices, and to compute the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.offline.instance import Instance, Problem
from venire.offline.linear import linear_prices, medium
from venire.offline.one_item import Workspace, best_set, workspace_for
from venire.tools.compiling import kernel

__all__ = [
    "Priced",
    "adjust",
    "adjust_slots",
    "bound_at",
    "candidates",
    "find_prices",
    "gains",
    "sets",
    "sweeps_for",
]

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


Progress = Callable[[int, int], None]

#: The first and the last step, as shares of the price of evidence.
STEPS: Final = (1.0, 0.002)
ROUGH_STEPS: Final = (0.5, 0.003)
FINE_STEPS: Final = (0.05, 0.0005)

#: Coarse sweeps for each fine one, which takes that much longer.
COARSE: Final = 8

#: Up to this evidence a label may be treated as divisible.
DROP: Final = 0.1

#: Nodes and tolerance of a branch and bound while the prices are moving.
QUICK: Final = (5, 1e-3)


class Priced(NamedTuple):
    """Prices, the bound at them, and how they were found: `prices` (by sweeps) or `lp`."""

    price: Floats
    bound: float
    method: str


def bound_at(instance: Instance, price: Floats) -> float:
    """An upper bound on what anyone could earn, from any prices of blocks [slot, labeler].

    They come on top of what a label costs in money.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> round(bound_at(tiny, np.zeros((2, 2))), 4), round(bound_at(tiny, np.ones((2, 2))), 4)
    (8.5456, 9.1122)
    """
    if price.shape != (instance.slots, len(instance.capacity)):
        raise InputError(f"got prices of the shape {price.shape}, expected one for each block")
    if not (np.isfinite(price).all() and (price >= 0).all()):
        raise InputError("a price is negative or not finite, expected numbers from 0 on")
    problem, most = instance.problem(), np.zeros(len(instance))
    gains(problem, price + instance.money, most, workspace_for(problem))
    options = problem.evidence.size
    slack = 32.0 * (options + 8) * 2.0**-53 * instance.weight * instance.patience
    blocks = float((price.sum(axis=0) * instance.capacity).sum()) * (1.0 + 1e-13)
    return (blocks + math.fsum(most) + math.fsum(slack)) * (1.0 + 1e-14)


def sweeps_for(instance: Instance) -> int:
    """The number of passes over the items: more of them if a pass is little work."""
    work = float((instance.patience * instance.options).sum())
    return int(np.clip(8e8 / max(1.0, work), 40, 240))


def find_prices(
    instance: Instance, sweeps: int | None = None, progress: Progress | None = None
) -> tuple[Floats, float]:
    """Prices at which the bound is small, and the bound.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> price, bound = find_prices(tiny)
    >>> price.shape, 7.1 < bound < 7.7
    ((2, 2), True)
    """
    best = candidates(instance, sweeps, progress)[0]
    return best.price, best.bound


def candidates(
    instance: Instance, sweeps: int | None = None, progress: Progress | None = None
) -> list[Priced]:
    """All prices on the way with their bounds, the smallest bound first."""
    problem, total = instance.problem(), sweeps or sweeps_for(instance)
    worth = _level(instance)
    slots = _by_slots(instance, problem, worth, COARSE * total)
    ranked = _ranked(instance, [slots, np.zeros_like(slots)])
    by_program = linear_prices(instance, slots) if medium(instance) else None
    if by_program is not None:
        found = _ranked(instance, [_above(instance, by_program)], "lp")
        ranked = sorted([*ranked, *found], key=_bound_of)
    if not _liquid(instance):
        each = max(worth, 0.05 * float(instance.weight.mean())) * instance.evidence.max(axis=0)
        half = max(1, total // 2)
        for k, steps in enumerate((ROUGH_STEPS, FINE_STEPS)):
            start = slots if k == 0 else ranked[0].price
            moves = np.outer(_steps(half, *steps), each / instance.capacity)
            last, mean = _by_blocks(problem, start, moves, progress, (k * half, 2 * half))
            ranked = sorted([*ranked, *_ranked(instance, [last, mean])], key=_bound_of)
    _tell(progress, total - 1, total)
    return ranked


def _ranked(instance: Instance, found: list[Floats], method: str = "prices") -> list[Priced]:
    return sorted((Priced(p, bound_at(instance, p), method) for p in found), key=_bound_of)


def _bound_of(priced: Priced) -> float:
    return priced.bound


def _by_blocks(
    problem: Problem,
    start: Floats,
    moves: Floats,
    progress: Progress | None,
    done: tuple[int, int],
) -> tuple[Floats, Floats]:
    """A price for each block, sweep by sweep: the last, and the mean of the last quarter."""
    price, space = start + problem.money, workspace_for(problem, *QUICK)
    mean, count = np.zeros_like(price), 0
    for k, step in enumerate(moves):
        adjust(problem, price, step, space)
        _tell(progress, done[0] + k, done[1])
        if 4 * (k + 1) > 3 * len(moves):
            mean += price
            count += 1
    return price - problem.money, np.maximum(0.0, mean / count - problem.money)


def _by_slots(instance: Instance, problem: Problem, worth: float, sweeps: int) -> Floats:
    """Prices in proportion to evidence, at a level for each slot, less what is paid in money."""
    supply = np.maximum((instance.evidence * instance.capacity).sum(axis=1), 1e-300)
    groups = [instance.evidence[:, g].sum(axis=1) for g in instance.groups[1:]]
    most = np.stack([instance.evidence.sum(axis=1), *groups], axis=1)
    level = np.full(instance.slots, worth)
    first = max(worth, 0.05 * float(instance.weight.mean())) if len(instance) else 1.0
    for step in _steps(sweeps, *STEPS):
        adjust_slots(problem, level, first * step, supply, most)
    return _above(instance, level[:, np.newaxis] * instance.evidence[problem.phase])


def _above(instance: Instance, price: Floats) -> Floats:
    """What is left of prices after the money that a label costs."""
    return np.maximum(0.0, price - instance.money) if instance.money.any() else price


def _liquid(instance: Instance) -> bool:
    """Whether evidence is nearly divisible and for everyone: then slot prices are enough."""
    return instance.open and float(instance.evidence.max()) <= DROP


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress:
        progress(done + 1, total + 1)


def _steps(count: int, first: float, last: float) -> Floats:
    return np.asarray(first * (last / first) ** (np.arange(count) / max(1, count)))


def _level(instance: Instance) -> float:
    """The price of evidence at which the demand of all items equals the total supply.

    An item of weight w demands ln(w / price), and no more than the panel has.
    """
    if not len(instance) or not instance.evidence.any():
        return 1.0
    lasting = np.diff([*instance.since.tolist(), max(instance.slots, instance.since[-1])])
    supply = float(lasting @ (instance.evidence @ instance.capacity))
    most = float(instance.evidence.sum(axis=1).max())
    logs = np.log(instance.weight)
    low, high = float(logs.min()) - most, float(logs.max())
    for _ in range(60):
        middle = (low + high) / 2
        if np.clip(logs - middle, 0.0, most).sum() > supply:
            low = middle
        else:
            high = middle
    return math.exp(low)
