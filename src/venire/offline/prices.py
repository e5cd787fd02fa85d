"""An upper bound on OPT from prices, and prices that make it small.

Let every block (t, m) have a price lambda[t, m] >= 0. No schedule uses more blocks than there are,
so with v_s(lambda) the most that item s can gain at these prices (`offline/one_item.py`)

    OPT <= L(lambda) = sum of capacity[m] lambda[t, m] + sum over s of v_s(lambda)

for *any* prices (weak duality; docs/certificates.md). Where labels cost money, an item pays it on
top of lambda; it is not part of the first sum. L is convex; what an item buys is a part
of a subgradient. The prices are found by the incremental subgradient method: items go in order
of arrival, and a purchase raises the price for the next item at once. First with divisible evidence
at one price in each slot, which is fast and, where labelers differ only in competence, nearly
optimal; for instances of medium size a linear program finds such prices too
(below). Then with a price for each block, coarsely from those prices and finely
from the best so far. Steps shrink geometrically. No clock and no randomness: the same instance has
the same prices.

**Rounding.** What is returned is rounded outward. A gain is computed from n options by fewer
than 8 (n + 8) operations on numbers up to w, each with a relative error of 2^-53; four times
that is added for every item, and the sums are exact (`math.fsum`) or allowed for.

Passes over all items at given prices: to adjust the prices, and to compute the bound.

**Prices from a linear program, for instances of medium size where everyone may label
everything.**

Let evidence be divisible; slot t has `supply[t]`, what the whole panel gives in it. Items of equal
arrival and weight are one kind, n of them. A share of a kind leaves in slot d with one of
a few levels of evidence E; with y[d, E] for these shares, x[t] for what the kind is given in slot
t and z[t] for what is kept of it for those who leave later,

    max  sum of (w (1 - exp(-E)) - (d - a)) y[d, E]
    sum over d, E of y[d, E] <= n
    sum over E of E y[t, E] + z[t] <= z[t - 1] + x[t]     for each kind and slot
    sum over kinds of x[t] <= supply[t]                   for each slot: its dual is mu[t]

The program is not the bound. Its duals are: a labeler of evidence e has the price mu[t] e in slot
t, and `bound_at` is a bound at any prices, with whole labels, rounded outward. So neither the
tolerance of the solver nor the choice of the levels can invalidate it. The levels are set around
the demand of the items at prices found before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.offline.instance import Instance, Problem
from venire.offline.one_item import Workspace, best_set, workspace_for
from venire.tools.arrays import Floats, Ints
from venire.tools.compiling import kernel


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


#: Levels of evidence, as shares of the demand at the known prices.
LEVELS: Final = np.array([0.5, 0.7, 0.85, 1.0, 1.15, 1.4, 2.0])

#: A program with more pairs of a kind and a slot takes too long.
PAIRS: Final = 4_000


class Kinds(NamedTuple):
    """Pairs of a kind of items and a slot in which it may leave, kind by kind."""

    many: Ints
    kind: Ints
    weight: Floats
    slot: Ints
    delay: Ints


def medium(instance: Instance) -> bool:
    """Whether the program is worth trying."""
    return bool(len(instance)) and instance.open and len(_kinds(instance).kind) <= PAIRS


def linear_prices(instance: Instance, price: Floats) -> Floats | None:
    """Prices [slot, labeler] by the program, its levels set by other prices; None if unsolved.

    >>> burst = Instance([9.0] * 40, [0] * 40, slots=9, evidence=[[0.1] * 20], capacity=[1] * 20)
    >>> by_slots = linear_prices(burst, np.full((9, 20), 0.3))
    >>> by_slots.shape, bool(by_slots[0, 0] > by_slots[5, 0])
    ((9, 20), True)
    """
    from scipy.optimize import linprog

    kinds = _kinds(instance)
    phase = instance.problem().phase
    evidence = instance.evidence[phase]
    level = (price * evidence).sum(axis=1) / np.maximum((evidence**2).sum(axis=1), 1e-300)
    levels = _levels(instance, kinds, level)
    matrix, limits = _constraints(kinds, levels, evidence @ instance.capacity)
    value = -kinds.weight[:, np.newaxis] * np.expm1(-levels) - kinds.delay[:, np.newaxis]
    cost = np.concatenate([np.zeros(2 * len(kinds.kind)), -value.ravel()])
    result = linprog(cost, A_ub=matrix, b_ub=limits, method="highs-ipm")
    if result.x is None:
        return None
    level = np.maximum(0.0, -np.asarray(result.ineqlin.marginals)[: instance.slots])
    return np.asarray(level[:, np.newaxis] * evidence)


def _most(instance: Instance) -> float:
    """The evidence that the panel has for an item: each labeler once, in its best phase."""
    return float(instance.evidence.max(axis=0).sum())


def _kinds(instance: Instance) -> Kinds:
    alike = np.stack([instance.arrival.astype(np.float64), instance.weight], axis=1)
    kinds, count = np.unique(alike, axis=0, return_counts=True)
    arrival, weight = kinds[:, 0].astype(np.int64), kinds[:, 1]
    patience = np.ceil(-weight * np.expm1(-_most(instance))).astype(np.int64)
    lasting = np.clip(patience, 1, instance.slots - arrival)
    kind = np.repeat(np.arange(len(kinds)), lasting)
    delay = np.arange(len(kind)) - np.repeat(np.cumsum(lasting) - lasting, lasting)
    return Kinds(count, kind, weight[kind], arrival[kind] + delay, delay)


def _levels(instance: Instance, kinds: Kinds, level: Floats) -> Floats:
    """Around ln(w / level) at the cheapest slot until then, and no more than there is."""
    most = _most(instance)
    low = np.empty(len(kinds.kind))
    for start, stop in zip(*_runs(kinds.kind), strict=True):
        low[start:stop] = np.minimum.accumulate(level[kinds.slot[start:stop]])
    asked = np.log(kinds.weight / np.maximum(low, 1e-12 * kinds.weight))
    asked = np.clip(asked, min(most, 0.05), most)
    levels: Floats = np.minimum(asked[:, np.newaxis] * LEVELS, most)
    return levels


def _runs(kind: Ints) -> tuple[Ints, Ints]:
    start = np.flatnonzero(np.diff(kind, prepend=-1))
    return start, np.append(start[1:], len(kind))


def _constraints(kinds: Kinds, levels: Floats, supply: Floats) -> tuple[object, Floats]:
    """Rows: slots, kinds, pairs. Columns: x and z of the pairs, then y of the pairs' levels."""
    from scipy.sparse import coo_array

    slots, pairs, types = len(supply), len(kinds.kind), len(kinds.many)
    pair, one = np.arange(pairs), np.ones(pairs)
    row_of = slots + types + pair
    y = 2 * pairs + np.arange(levels.size)
    later = np.flatnonzero(kinds.delay > 0)
    many = levels.shape[1]
    rows = [kinds.slot, row_of, row_of, row_of[later]]
    columns = [pair, pair, pairs + pair, pairs + later - 1]
    values = [one, -one, one, -one[later]]
    rows += [slots + np.repeat(kinds.kind, many), np.repeat(row_of, many)]
    columns += [y, y]
    values += [np.ones(levels.size), levels.ravel()]
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    shape = (slots + types + pairs, 2 * pairs + levels.size)
    limits = np.concatenate([supply, kinds.many.astype(np.float64), np.zeros(pairs)])
    return coo_array(entries, shape=shape).tocsr(), limits
