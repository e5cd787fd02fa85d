"""The plan: which rows to serve in this slot and which to let wait for a lower price.

Bids, sorted by value, are planned over this slot and the next ones, each of which sells what the
panel can give. With one price mu_t a slot, a bid of value a served in t slots from now earns

    V(a, mu_t) - t - charge,    V(a, mu) = a - mu - mu ln(a / mu)     (market.py; less if capped)

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

Slots to come also sell to rows that have not arrived (forecast.py): a few kinds of them, by value,
which stand behind the bids, with their share of what each slot brings.

**Bids.** A plan needs its bids in order of value. A short queue is sorted. In a long one similar
stalls are grouped: `CELLS` groups by the logarithm of the value (`GRAIN` wide, down from the
largest value there is) and by the charge (doubling classes), each with the means of its members.
Only the prices come from the groups; who is served is then found among the stalls themselves.
"""

from __future__ import annotations

import math
from typing import Any, Final

from venire.scheduling.kernel.desk import STALLS, Desk
from venire.scheduling.kernel.queues import make_heap
from venire.scheduling.policies.lookahead.forecast import AHEAD
from venire.scheduling.policies.waterfill.market import (
    FREE,
    STEP,
    buys,
    copy,
    cost_of,
    surplus,
    units,
    wanted,
)
from venire.tools.compiling import inlined

__all__ = ["CELLS", "fill", "grouped_bids", "pick_smallest", "plan_price", "sorted_bids"]


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
