"""A forecast of the arrivals of the next slots, learned from past arrivals.

Whether it pays to wait depends on who else will want the next slots. A mean rate will not do: after
a burst there is nothing until the next one. So arrivals are remembered by the number of slots
since the last burst (a slot that brought more than `BURST` times the mean): `RATES` holds a mean
for each. A steady stream has no bursts and ends up with one rate; bursts that come at equal
distances are forecast; those that come at random are spread evenly, as they should be. A count
within the noise of a Poisson number moves a mean a little, any other count much.

What an arrival is worth is told by the mean and spread of the logarithm of the weights: three
kinds, at the mean and sqrt(3) spreads to either side of it, with masses 1/6, 2/3 and 1/6 (they
have the first five moments of a normal distribution).

All of it is in the memory of the look-ahead, written when a slot is settled: once a slot.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.base import PolicyMemory
from venire.scheduling.kernel.desk import PRICED, ROWS, Desk
from venire.scheduling.kernel.eligibility import new_stamp
from venire.scheduling.policies.waterfill.market import labels_that_pay
from venire.scheduling.policies.waterfill.policy import MEMORY as SALES
from venire.tools.compiling import inlined

__all__ = ["AHEAD", "MEMORY", "SLOTS", "add_kinds", "forecast", "note_arrivals", "note_price"]

#: Slots forecast; half of `desk.ahead`, whose other half holds the sums.
AHEAD: Final = 256

#: A slot that brings this many times the mean is a burst.
BURST: Final = 2.5

AGES: Final = 48

MEMORY: Final = PolicyMemory(
    "slots",  # slots seen
    "mean",  # arrivals a slot
    "age",  # slots since the last burst
    "oldest",  # largest age seen
    "seen",  # arrivals seen
    "log",  # mean logarithm of a weight
    "square",  # and of its square
    "crowd",  # logarithm of a factor on the rates, from prices that were not as forecast
    "next",  # logarithm of the price forecast
    "next_in",  # slot that it was forecast for
    after=SALES,
    rates=AGES,  # arrivals by age
)
SLOTS, MEAN, AGE, OLDEST, SEEN, LOG, SQUARE, CROWD, NEXT, NEXT_IN, RATES = MEMORY.places

LONG: Final = 1.0 / 32.0
SLOW: Final = 1.0 / 16.0
QUICK: Final = 1.0 / 2.0
ITEMS: Final = 1.0 / 256.0
LEARN: Final = 1.0 / 8.0
MOST: Final = 2.0  # log of the most that a forecast is multiplied by


@inlined
def arrivals(desk: Desk, slot: int) -> int:
    """How many rows arrived in this slot, which is the latest: they are the last rows."""
    n, row = 0, desk.meta[ROWS] - 1
    while row >= 0 and desk.rows[row].arrival == slot:
        row -= 1
        n += 1
    return n


@inlined
def is_burst(desk: Desk, n: float) -> bool:
    return n >= 2.0 and n > BURST * desk.gauges[MEAN]


@inlined
def note_rate(desk: Desk, age: int, n: int) -> None:
    """Learn that n rows arrived at this age; a new age starts from the rate of the one before."""
    g = desk.gauges
    if age > g[OLDEST]:
        g[OLDEST] = age
        g[RATES + age] = g[RATES + age - 1] if age > 1 else n
    rate = g[RATES + age]
    usual = abs(n - rate) <= 3.0 * math.sqrt(rate + 1.0)
    g[RATES + age] += (SLOW if usual else QUICK) * (n - rate)


@inlined
def note_arrivals(desk: Desk, slot: int) -> None:
    """Learn from what this slot brought; to be called once, when it is settled."""
    g, n = desk.gauges, arrivals(desk, slot)
    for row in range(desk.meta[ROWS] - n, desk.meta[ROWS]):
        log = math.log(desk.rows[row].weight)
        g[SEEN] += 1.0
        pace = max(ITEMS, 1.0 / g[SEEN])
        g[LOG] += pace * (log - g[LOG])
        g[SQUARE] += pace * (log * log - g[SQUARE])
    age = min(int(g[AGE]) + 1, AGES - 1) if g[SLOTS] > 0.0 else 0
    if age > 0:
        note_rate(desk, age, n)
    g[AGE] = 0.0 if is_burst(desk, n) else age
    g[SLOTS] += 1.0
    g[MEAN] += max(LONG, 1.0 / g[SLOTS]) * (n - g[MEAN])


@inlined
def forecast(desk: Desk, slot: int) -> None:
    """Write into `desk.ahead` the forecast for each of the next slots, and its cumulative sums."""
    g, ahead = desk.gauges, desk.ahead
    age = 0 if is_burst(desk, arrivals(desk, slot)) else int(g[AGE]) + 1
    total, factor = 0.0, math.exp(g[CROWD])
    ahead[0] = ahead[AHEAD] = 0.0
    for t in range(1, AHEAD):
        age += 1
        rate = g[RATES + min(age, int(g[OLDEST]), AGES - 1)]
        total += factor * rate
        ahead[t], ahead[AHEAD + t] = factor * rate, total
        if is_burst(desk, rate):
            age = 0


@inlined
def note_price(desk: Desk, slot: int, log: float, following: float) -> None:
    """Learn from the price of this slot, if there was a forecast; remember that of the next."""
    g = desk.gauges
    if g[NEXT_IN] == slot:
        error = math.exp(log) - math.exp(g[NEXT])
        g[CROWD] += LEARN * min(max(error, -1.0), 1.0)
        g[CROWD] = min(max(g[CROWD], 0.0), MOST)
    g[NEXT] = following
    g[NEXT_IN] = slot + 1 if following < log else -1


@inlined
def add_kind(desk: Desk, i: int, log: float, mass: float) -> None:
    bids, cap, money = desk.bids, desk.bounds[2], 0.0
    if desk.meta[PRICED] != 0:
        cap, money = labels_that_pay(desk, math.exp(log), new_stamp(desk), False, True)
    bids[i].log = log
    bids[i].value = math.exp(log)
    bids[i].cap = cap
    bids[i].rate = money / cap if money > 0.0 else 0.0
    bids[i].most = -bids[i].value * math.expm1(-cap) - money
    bids[i].mass = mass


@inlined
def add_kinds(desk: Desk, count: int) -> int:
    """Append the kinds of arrivals to `count` bids, the smallest first; returns how many kinds."""
    if desk.gauges[SEEN] == 0.0:
        return 0
    mean = desk.gauges[LOG]
    spread = math.sqrt(3.0 * max(desk.gauges[SQUARE] - mean * mean, 0.0))
    add_kind(desk, count, mean - spread, 1.0 / 6.0)
    add_kind(desk, count + 1, mean, 2.0 / 3.0)
    add_kind(desk, count + 2, mean + spread, 1.0 / 6.0)
    return 3
