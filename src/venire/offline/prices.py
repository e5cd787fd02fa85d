r"""An upper bound on OPT from prices, and prices that make it small.

Let every block (t, m) have a price lambda[t, m] >= 0. Whatever schedule there is pays for no
more blocks than there are, so that with v_s(lambda) the most that item s can gain at these
prices (`offline/item.py`)

    OPT <= L(lambda) = sum of capacity[m] lambda[t, m] + sum over s of v_s(lambda)

for *any* prices (weak duality; docs/certificates.md). L is convex; what an item buys is a part
of a subgradient. The prices are found by the incremental subgradient method: items go in order
of arrival, and what one buys is dearer for the next at once. First with one price for all
evidence of a slot, which is coarse and quick to settle, then with one for each block; steps
shrink geometrically, and the last prices are averaged. No clock and no randomness: the same
instance has the same prices.

**Rounding.** What is returned is rounded outward. A gain is computed from n options by fewer
than 8 (n + 8) operations on numbers up to w, each with a relative error of 2^-53; four times
that is added for every item, and the sums are exact (`math.fsum`) or allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.offline.instance import Instance, Problem
from venire.offline.item import lay_bench
from venire.offline.kernels import adjust, adjust_slots, gains

__all__ = ["bound_at", "find_prices", "sweeps_for"]

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

#: The first and the last step, as shares of the price of evidence.
STEPS: Final = (1.0, 0.002)
BLOCK_STEPS: Final = (0.5, 0.003)

#: So many coarse sweeps for each fine one, which takes that much longer.
COARSE: Final = 8

#: A label of so little evidence may as well be bought in part.
DROP: Final = 0.1

#: While the prices are moving, a branch and bound may be short and coarse.
QUICK: Final = (5, 1e-3)


def bound_at(instance: Instance, price: Floats) -> float:
    """An upper bound on what anyone could earn, from any prices of blocks [slot, labeler].

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> round(bound_at(tiny, np.zeros((2, 2))), 4), round(bound_at(tiny, np.ones((2, 2))), 4)
    (8.5456, 9.1122)
    """
    if price.shape != (instance.slots, len(instance.capacity)):
        raise InputError(f"got prices of the shape {price.shape}, expected one for each block")
    if not (np.isfinite(price).all() and (price >= 0).all()):
        raise InputError("a price is negative or not finite, expected numbers from 0 on")
    problem, most = instance.problem(), np.zeros(len(instance))
    gains(problem, price, most, lay_bench(problem))
    options = problem.evidence.size
    slack = 32.0 * (options + 8) * 2.0**-53 * instance.weight
    blocks = float((price.sum(axis=0) * instance.capacity).sum()) * (1.0 + 1e-13)
    return (blocks + math.fsum(most) + math.fsum(slack)) * (1.0 + 1e-14)


def sweeps_for(instance: Instance) -> int:
    """How often the items are gone through: the more often, the less work it is."""
    patience = np.minimum(np.ceil(instance.weight), instance.slots - instance.arrival)
    options = np.array([len(instance.capacity), *(len(g) for g in instance.groups[1:])])
    each = options[0] if instance.group is None else options[instance.group]
    work = float((patience * each).sum())
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
    problem, total = instance.problem(), sweeps or sweeps_for(instance)
    bench, worth = lay_bench(problem, *QUICK), _level(instance)
    price = _by_slots(instance, problem, worth, COARSE * total)
    found = [price.copy(), np.zeros_like(price)]
    worth = max(worth, 0.05 * float(instance.weight.mean())) if len(instance) else 1.0
    each = worth * instance.evidence.max(axis=0) / instance.capacity
    mean, count = np.zeros_like(price), 0
    rounds = 0 if _liquid(instance) else total
    for k, step in enumerate(_steps(rounds, *BLOCK_STEPS)):
        adjust(problem, price, step * each, bench)
        _tell(progress, k, total)
        if 4 * k >= 3 * rounds:
            mean += price
            count += 1
    if rounds:
        found += [mean / max(1, count), price]
    bounds = [bound_at(instance, p) for p in found]
    print([round(b,1) for b in bounds])
    best = int(np.argmin(bounds))
    _tell(progress, total - 1, total)
    return found[best], bounds[best]


def _by_slots(instance: Instance, problem: Problem, worth: float, sweeps: int) -> Floats:
    """Prices in proportion to evidence, at a level for each slot."""
    supply = np.maximum((instance.evidence * instance.capacity).sum(axis=1), 1e-300)
    groups = [instance.evidence[:, g].sum(axis=1) for g in instance.groups[1:]]
    most = np.stack([instance.evidence.sum(axis=1), *groups], axis=1)
    level = np.full(instance.slots, worth)
    first = max(worth, 0.05 * float(instance.weight.mean())) if len(instance) else 1.0
    for step in _steps(sweeps, *STEPS):
        adjust_slots(problem, level, first * step, supply, most)
    return level[:, np.newaxis] * instance.evidence[problem.phase]


def _liquid(instance: Instance) -> bool:
    """Whether evidence comes in drops, for everyone: then a price for each slot is enough."""
    masked = instance.group is not None or len(instance.barred) > 0
    return not masked and float(instance.evidence.max()) <= DROP


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress:
        progress(done + 1, total + 1)


def _steps(count: int, first: float, last: float) -> Floats:
    return np.asarray(first * (last / first) ** (np.arange(count) / max(1, count)))


def _level(instance: Instance) -> float:
    """The price of evidence at which all items together would ask for all that there is.

    An item of weight w asks for ln(w / price), and for no more than the panel holds.
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
