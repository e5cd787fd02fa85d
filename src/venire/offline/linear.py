r"""Prices from a linear program, for instances of medium size where everyone may label everything.

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

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.instance import Instance

__all__ = ["linear_prices", "medium"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
