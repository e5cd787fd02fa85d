"""Look ahead: plan the outstanding items over the slots to come, carry out the first.

Water-filling spreads a burst thinly over its first slot, since nothing is cheaper than a label
without delay. But an item that is served later gets a lower price, for one unit of delay a slot;
and the more there is to gain of an item, the more it gains by a lower price. So in each slot the
queue is planned over this slot and the next ones, with what they will bring as far as
it can be forecast (below), and the items that the plan serves in this slot are assigned
labelers (`prepay`); those that it serves later must wait, unless labelers are left over.

The plan of a short queue is the optimum of the linear program. In a long queue similar items are
grouped (`grouped_bids`). The time for it is bounded, by a count of operations and not by a clock,
so that a log replays to the same schedule anywhere: `budget` operations a slot, some ten
nanoseconds each. A queue for which even the grouped plan would take more is served by
water-filling. The counters say how often each happened, among the servings that assigned anything:

    planned    the queue item by item
    grouped    similar items together
    fell_back  water-filling

Items leave as under water-filling. In the first two slots there is no forecast: they are served by
water-filling too.

**The plan: which rows to serve in this slot and which to let wait for a lower price.**

Bids, sorted by value, are planned over this slot and the next ones, each of which sells what the
panel can give. With one price mu_t a slot, a bid of value a served in t slots from now earns

    V(a, mu_t) - t - charge,    V(a, mu) = a - mu - mu ln(a / mu)     (waterfill.py; less if capped)

dV/da = 1 - mu/a grows as the price falls while a slot of waiting costs every bid 1. So if one bid
gains by waiting, those of a larger value gain too: a best plan serves the small ones first, and is
a partition of the sorted bids into slots. The first bid of a slot is indifferent between it and the
slot before, which ties one price to the next:

    V(b, mu_{t+1}) = V(b, mu_t) + 1

So the price of this slot fixes the whole plan: fill it with bids in order of value until its
supply is sold, find the next price from the bid that no longer fits, fill the next slot. If the
price falls to nothing before all are served, it was too low; if all are served, it was high
enough. The least price that is high enough is found by bisection: no solver, and the optimum of
the linear program (bids divisible, evidence bought in any slot up to the last) to its precision.

Slots to come also sell to rows that have not arrived (below): a few kinds of them, by value,
which stand behind the bids, with their share of what each slot brings.

**Bids.** A plan needs its bids in order of value. A short queue is sorted. In a long one similar
stalls are grouped: `CELLS` groups by the logarithm of the value (`GRAIN` wide, down from the
largest value there is) and by the charge (doubling classes), each with the means of its members.
Only the prices come from the groups; who is served is then found among the stalls themselves.

**A forecast of the arrivals of the next slots, learned from past arrivals.**

Whether it pays to wait depends on who else will want the next slots. A mean rate is not enough:
after a burst there is nothing until the next one. So arrivals are remembered by the number of slots
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
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from venire.errors import InputError
from venire.scheduling.base import Kernels, Policy, PolicyMemory
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import COUNTER, PRICED, ROWS, SETTING, STALLS, TOUCHES, Desk
from venire.scheduling.kernel.queues import begin_serving, make_heap
from venire.scheduling.kernel.rows import make_settle, new_stamp
from venire.scheduling.policies.waterfill import (
    FREE,
    PRICE,
    STEP,
    anybody_free,
    buys,
    choose,
    copy,
    cost_of,
    enter,
    find_price,
    give,
    labels_that_pay,
    leave,
    left_of,
    note_sales,
    prepay,
    restore,
    supply_of,
    surplus,
    units,
    value_served,
    wanted,
)
from venire.scheduling.policies.waterfill import MEMORY as SALES
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel

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


@inlined
def next_price(s: Any, log: float, price: float) -> float:
    """The price at which the bid earns 1 more than at this one; 0 if there is none.

    Newton's method on mu (1 + ln(a / mu)) = a - V, which is concave in mu: after the first step
    it comes from below and never passes the root. With prices of labels, mu includes the money.
    """
    total, cost = cost_of(s, log, price)
    some = min(s.cap, s.log - total)
    worth = s.most - price * s.cap if some >= s.cap else s.value - cost - cost * some
    if worth + 1.0 >= s.most:
        return 0.0
    if some >= s.cap:
        return price - 1.0 / s.cap
    floor = s.value * math.exp(-s.cap)  # below this price the cap binds
    at_floor = s.most - (floor - s.rate) * s.cap
    if worth + 1.0 >= at_floor:
        return (s.most - worth - 1.0) / s.cap
    target = s.value - worth - 1.0
    mu = max(cost - 1.0 / some, floor)
    for _ in range(8):
        slope = s.log - math.log(mu)
        step = (target - mu * (1.0 + slope)) / slope
        mu += step
        if abs(step) <= 1e-12 * mu:
            break
    return mu - s.rate


@inlined
def fill(
    desk: Desk, count: int, now: float, later: float, kinds: int, k: int
) -> tuple[bool, int, float, float]:
    """Plan the bids from the k-th price on.

    `now` and `later` are what this slot and each of the next sells; bids from `count` to
    `count + kinds` are what a slot to come brings. Returns whether the price is too low, the
    first bid that does not wholly fit into this slot (`count` if all do), the share of it that
    fits, and the logarithm of the price of the next slot (of this one if nobody waits).
    """
    bids = desk.bids
    log = k * STEP
    price, left = math.exp(log), now
    t, first, share, following = 0, count, 0.0, log
    kind = 0
    i, rest = 0, 1.0
    while i < count or (kind < kinds and t > 0):
        coming = kind < kinds and (i >= count or bids[count + kind].value < bids[i].value)
        if coming and t == 0:
            kind += 1  # smaller than all that wait: served as it comes
            continue
        s = bids[count + kind] if coming else bids[i]
        charge = 0.0 if coming else s.charge + t
        mass = s.mass * desk.ahead[AHEAD + t] if coming else s.mass
        some = 0.0
        if s.log > log and surplus(s, log, price, charge) > 0.0:
            some = wanted(s, log) * mass * rest
        if some <= left:
            left -= some
            rest = 1.0
            if coming:
                kind += 1
            else:
                i += 1
            continue
        if t == 0:
            first, share = i, left / some
        rest *= 1.0 - left / some
        price = next_price(s, log, price)
        t += 1
        if price <= 0.0 or t >= AHEAD:
            return True, first, share, following
        log = math.log(price)
        if t == 1:
            following = log
        left = later
        for j in range(kind):
            new = bids[count + j]
            if new.log > log:
                left -= wanted(new, log) * new.mass * desk.ahead[t]
        if left <= 0.0:
            return True, first, share, following
    return False, first, share, following


@inlined
def plan_price(desk: Desk, count: int, now: float, later: float, kinds: int, guess: int) -> int:
    """The highest price (as its number) that is too low for the bids; the next is high enough.

    One below FREE if that is high enough. `guess` is a price near it.
    """
    high = 1 + math.ceil(math.log(desk.bounds[0]) / STEP) if desk.bounds[0] > 0.0 else FREE + 1
    high = max(high, FREE + 1)
    width = 1 << 14
    low = min(max(guess - width, FREE), high - 1)
    while not fill(desk, count, now, later, kinds, low)[0]:
        if low == FREE:
            return FREE - 1
        high = low
        width *= 8
        low = max(low - width, FREE)
    step = 1 << 15
    while high - low > 1:
        middle = min(low + step, (low + high) // 2) if step else (low + high) // 2
        if fill(desk, count, now, later, kinds, middle)[0]:
            low, step = middle, step * 8
        else:
            high, step = middle, 0
    return low


GRAIN: Final = 16.0  # groups in one unit of the logarithm of the value
STEPS: Final = 64
CHARGES: Final = 8  # 0, 1, 2..3, 4..7, and so on
CELLS: Final = STEPS * CHARGES


@inlined
def before(desk: Desk, a: int, b: int) -> bool:
    """Whether stall a has the smaller value, or the same and the earlier row."""
    s = desk.stalls
    return s[a].value < s[b].value or (s[a].value == s[b].value and s[a].row < s[b].row)


sink, heapify = make_heap(before)


@inlined
def sorted_bids(desk: Desk, slot: int) -> int:
    """One bid for each stall that could pay for its delay, the smallest value first; how many."""
    heap, n = desk.chosen[len(desk.rows) :], 0
    for i in range(desk.meta[STALLS]):
        if desk.stalls[i].most > slot - desk.stalls[i].since:
            heap[n] = i
            n += 1
    heapify(desk, heap, n)
    for j in range(n):
        i, left = heap[0], n - j - 1
        copy(desk.stalls, i, desk.bids, j)
        desk.bids[j].charge = float(slot - desk.stalls[i].since)
        desk.bids[j].mass = 1.0
        heap[0] = heap[left]
        sink(desk, heap, 0, left)
    return n


@inlined
def cell_of(log: float, top: float, charge: int) -> int:
    """The group of a stall; groups of a larger value have larger numbers."""
    step = STEPS - 1 - int(min(max((top - log) * GRAIN, 0.0), STEPS - 1.0))
    kind = 0
    while charge > 0 and kind < CHARGES - 1:
        charge >>= 1
        kind += 1
    return step * CHARGES + kind


@inlined
def grouped_bids(desk: Desk, slot: int) -> int:
    """One bid for each group of stalls that could pay for their delay; how many."""
    bids, top = desk.bids, math.log(desk.bounds[0])
    for c in range(CELLS):
        bids[c].log = bids[c].cap = bids[c].rate = bids[c].charge = bids[c].mass = 0.0
    for i in range(desk.meta[STALLS]):
        s = desk.stalls[i]
        charge = slot - s.since
        if s.most > charge:
            c = cell_of(s.log, top, charge)
            bids[c].mass += 1.0
            bids[c].log += s.log
            bids[c].cap += s.cap
            bids[c].rate += s.rate
            bids[c].charge += charge
    n = 0
    for c in range(CELLS):
        mass = bids[c].mass
        if mass > 0.0:
            log, cap = bids[c].log / mass, bids[c].cap / mass
            bids[n].value, bids[n].log, bids[n].cap = math.exp(log), log, cap
            bids[n].rate = bids[c].rate / mass
            bids[n].most = -math.exp(log) * math.expm1(-cap) - bids[n].rate * cap
            bids[n].charge, bids[n].mass = bids[c].charge / mass, mass
            n += 1
    return n


@inlined
def pick_smallest(desk: Desk, slot: int, supply: float, log: float) -> int:
    """Choose the stalls that buy at the price exp(log), smallest first, until all is sold."""
    heap, n = desk.chosen[len(desk.rows) :], 0
    price, left, picked = math.exp(log), units(supply), 0
    for i in range(desk.meta[STALLS]):
        if buys(desk.stalls[i], log, price, slot):
            heap[n] = i
            n += 1
    heapify(desk, heap, n)
    while n > 0:
        i = heap[0]
        some = units(wanted(desk.stalls[i], log))
        if picked > 0 and 2 * left < some:
            break
        desk.chosen[picked] = desk.stalls[i].row
        picked += 1
        left -= some
        n -= 1
        heap[0] = heap[n]
        sink(desk, heap, 0, n)
    return picked


# counters
PLANNED: Final = 0
GROUPED: Final = 1
FELL_BACK: Final = 2

#: Slots before the first forecast; until then no item is made to wait.
FORECAST_FROM: Final = 2

#: About how often a plan is filled until its price is found.
FILLS: Final = 24


@inlined
def way_to_plan(desk: Desk) -> int:
    """How the queue can be planned within the budget."""
    n, budget = desk.meta[STALLS], desk.meta[SETTING]
    if n * (FILLS + math.log2(n + 1.0)) <= budget:
        return PLANNED
    if 4 * n + FILLS * CELLS <= budget:
        return GROUPED
    return FELL_BACK


@inlined
def choose_sorted(desk: Desk, first: int, share: float, log: float) -> int:
    """Choose the sorted bids before `first` that buy, and `first` itself if half of it fits."""
    bids, price, picked = desk.bids, math.exp(log), 0
    for i in range(first):
        if surplus(bids[i], log, price, bids[i].charge) > 0.0:
            desk.chosen[picked] = bids[i].row
            picked += 1
    if share >= 0.5 or picked == 0:
        desk.chosen[picked] = bids[first].row
        picked += 1
    return picked


@inlined
def this_slot(desk: Desk, slot: int, now: float, guess: int) -> tuple[int, int, float]:
    """Choose for a slot by itself, as water-filling does: no item waits."""
    price, bids = find_price(desk, now, slot, guess)
    return choose(desk, now, price, bids), price, (price + 1) * STEP


@inlined
def look_ahead(desk: Desk, slot: int, now: float, later: float, way: int) -> tuple[int, int, float]:
    """Choose by a plan: how many, at which price, and the logarithm of the next price.

    If no item waits, the next price returned is no lower than this one.
    """
    if desk.gauges[SLOTS] < FORECAST_FROM:
        return this_slot(desk, slot, now, int(desk.gauges[PRICE]))
    bids = sorted_bids(desk, slot) if way == PLANNED else grouped_bids(desk, slot)
    kinds = add_kinds(desk, bids)
    forecast(desk, slot)
    k = plan_price(desk, bids, now, later, kinds, int(desk.gauges[PRICE]))
    log = (k + 1) * STEP
    _, first, share, following = fill(desk, bids, now, later, kinds, k + 1)
    if first == bids:
        return this_slot(desk, slot, now, k)
    if way == PLANNED:
        return choose_sorted(desk, first, share, log), k, following
    return pick_smallest(desk, slot, now, log), k, following


@kernel
def serve(desk: Desk, slot: int) -> None:
    first = begin_serving(desk)
    if not anybody_free(desk):
        return
    later, way = supply_of(desk), way_to_plan(desk)
    now = left_of(desk, later, slot)
    if way == FELL_BACK:
        count, price, following = this_slot(desk, slot, now, int(desk.gauges[PRICE]))
    else:
        count, price, following = look_ahead(desk, slot, now, later, way)
    prepay(desk, count, slot)
    if following < (price + 1) * STEP:
        give(desk, slot, True)
        begin_serving(desk)  # a labeler gets a second turn, in which its first counts as past
    give(desk, slot, False)
    restore(desk, count)
    if desk.meta[TOUCHES] > first:
        # a serving that assigns nothing is not in the log: it must not change the state
        desk.gauges[PRICE] = price
        desk.meta[COUNTER + way] += 1
        note_price(desk, slot, (price + 1) * STEP, following)
        note_sales(desk, first, slot)
        value_served(desk, first, slot)


let_due_leave = make_settle(leave)


@kernel
def settle(desk: Desk, slot: int) -> int:
    note_arrivals(desk, slot)
    return let_due_leave(desk, slot)


@dataclass(frozen=True)
class LookAhead(Policy):
    """Plan the queue over the slots to come, and serve those whose turn it is.

    Parameters
    ----------
    budget
        Operations that a slot may spend on its plan, about ten nanoseconds each: the default is
        about 10 ms. Beyond it similar items are grouped, and beyond that the slot is served by
        water-filling.

    Examples
    --------
    A burst for a panel that is too weak to serve it in one slot:

    >>> from venire import Bursty, World, simulate
    >>> world = World.synthetic(0, [0.6] * 10, Bursty(size=20, every=20), weights=(20,))
    >>> run = simulate(world, LookAhead(), slots=100)
    >>> run.counters
    {'planned': 35, 'grouped': 0, 'fell_back': 0}
    """

    budget: int = 1_000_000

    name: ClassVar[str] = "lookahead"
    built: ClassVar[Kernels] = compiled(enter, leave, serve, settle)
    memory: ClassVar[PolicyMemory] = MEMORY
    per_row: ClassVar[tuple[str, ...]] = ("stalls", "bids")
    counter_names: ClassVar[tuple[str, ...]] = ("planned", "grouped", "fell_back")

    def __post_init__(self) -> None:
        if self.budget < 0:
            raise InputError(f"got a budget of {self.budget} operations, expected at least 0")

    def settings(self) -> tuple[int, ...]:
        return (self.budget,)

    def price(self, gauges: Floats) -> float | None:
        return math.exp(float(gauges[PRICE]) * STEP)
