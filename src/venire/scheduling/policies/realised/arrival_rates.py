"""Expected arrivals: how many rows in a usual slot, how heavy, and how much comes in bursts.

The memory of the policy holds the arrivals of the last `WINDOW` slots, their mean over all slots
after the first arrival, and a running mean and mean square of the logarithm of their weights. A
usual slot brings the mean of the last counts without the largest and the smallest fifth of them, so
that one burst does not count as usual. What the mean over all slots is above that comes in bursts.
The first arrivals do not count there: time begins with them, so they do not say when more will
come, and a batch that is alone does not pay for others that never come. Seven weights represent
all, evenly spread over three standard deviations around the mean logarithm.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.base import PolicyMemory
from venire.scheduling.kernel.desk import COSTLY, PRICED, SETTING, Desk
from venire.scheduling.kernel.eligibility import new_stamp
from venire.scheduling.policies.realised.item_value import (
    BY_LABELS,
    SHARE,
    by_cost,
    one_label,
    plan_to_buy,
    reserve_price,
)
from venire.scheduling.policies.realised.queue_price import FLOW, NOW, STAY, add, bin_of
from venire.tools.compiling import inlined, kernel

__all__ = ["FLOOR", "MEMORY", "PRICE", "SLOTS", "expect", "remember", "usual_arrivals"]

WINDOW: Final = 16
LONG: Final = 1024  # slots over which the mean forgets
WEIGHTS: Final = 7

MEMORY: Final = PolicyMemory(
    "log",  # mean logarithm of the weight of an arrival
    "square",  # mean square of it
    "slots",  # slots since the first arrival
    "busy",  # slots with arrivals
    "price",  # the price forecast last
    "mean",  # mean arrivals of a slot, without the first
    "floor",  # the least that a label must gain now, for each unit of its evidence
    counts=WINDOW,  # arrivals in each of the last slots, in a ring
)
LOG, SQUARE, SLOTS, BUSY, PRICE, MEAN, FLOOR, COUNTS = MEMORY.places


@inlined
def remember(desk: Desk, arrived: int, logs: float, squares: float) -> None:
    """Record the arrivals of a slot: how many, and the sums over the logarithms of weights."""
    g = desk.gauges
    if g[BUSY] > 0.0:
        g[MEAN] += max(1.0 / LONG, 1.0 / g[SLOTS]) * (arrived - g[MEAN])
    elif arrived == 0:
        return
    g[COUNTS + int(g[SLOTS]) % WINDOW] = arrived
    g[SLOTS] += 1.0
    if arrived > 0:
        g[BUSY] += 1.0
        rate = max(1.0 / WINDOW, 1.0 / g[BUSY])
        g[LOG] += rate * (logs / arrived - g[LOG])
        g[SQUARE] += rate * (squares / arrived - g[SQUARE])


@inlined
def usual_arrivals(desk: Desk) -> float:
    """The mean of the last counts and a zero, without the largest and the smallest fifth."""
    g = desk.gauges
    n = min(WINDOW, int(g[SLOTS])) + 1
    top, bottom = (n + 4) // 5, n // 5
    total = 0.0
    for i in range(n - 1):
        rank = 0
        for k in range(n - 1):
            more = g[COUNTS + k] > g[COUNTS + i]
            if more or (g[COUNTS + k] == g[COUNTS + i] and k < i):
                rank += 1
        if top <= rank < n - bottom:
            total += g[COUNTS + i]
    return total / max(1, n - top - bottom)


@inlined
def new_row(desk: Desk) -> tuple[float, float]:
    """Of a row without labels: what is left to gain as a share of its weight, and its scale."""
    if desk.meta[SETTING] != BY_LABELS:
        return 1.0, 1.0
    if desk.meta[COSTLY] == 0:
        return 0.5 * SHARE, 1.0
    top, total = -math.inf, 0.0
    for j in range(len(desk.scores)):
        desk.scores[j] = desk.lean[j]
        top = max(top, desk.lean[j])
    for j in range(len(desk.scores)):
        total += math.exp(desk.scores[j] - top)
    _, wrong, scale = by_cost(desk, 1.0 - 1.0 / total)
    return SHARE * math.sqrt(wrong * (1.0 - wrong)), scale


@kernel
def expect(desk: Desk, next_slot: bool) -> float:
    """Add the usual arrivals to the bins; returns what comes in bursts as a multiple of them.

    With `next_slot` these rows are also counted among those that buy.
    """
    g = desk.gauges
    usual = max(usual_arrivals(desk), 0.01 * g[MEAN])
    if usual <= 0.0:
        return 0.0
    share, scale = new_row(desk)
    step = math.sqrt(max(0.0, g[SQUARE] - g[LOG] * g[LOG])) / 2.0
    least, cap, rows = one_label(desk), desk.held[0, 0, 1], usual / WEIGHTS
    for i in range(WEIGHTS):
        weight = scale * math.exp(g[LOG] + (i - WEIGHTS // 2) * step)
        left = share * weight
        log = math.log(left)
        if desk.meta[PRICED] == 0:
            now = reserve_price(weight, left, least, cap, 0.0)
            stay = reserve_price(weight, left, least, cap, 1.0)
        else:
            everybody, new = (new_stamp(desk), False), (weight, weight, left, False)
            stay, now, cap, _, _ = plan_to_buy(desk, 1, False, everybody, new)
        add(desk, bin_of(now), FLOW, rows, log, cap)
        if next_slot:
            add(desk, bin_of(now), NOW, rows, log, cap)
            add(desk, bin_of(stay), STAY, rows, log, cap)
    return max(0.0, g[MEAN] / usual - 1.0)
