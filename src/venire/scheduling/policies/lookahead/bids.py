"""The bids of a plan: one for each stall, or one for each group of similar stalls.

A plan needs its bids in order of value. A short queue is sorted. In a long one similar stalls are
grouped: `CELLS` groups by the logarithm of the value (`GRAIN` wide, down from the largest
value there is) and by the charge (doubling classes), each with the means of its members. Only the
prices come from the groups; who is served is then found among the stalls themselves.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.policies.waterfill.market import buys, copy, units, wanted
from venire.scheduling.state.desk import STALLS, Desk
from venire.scheduling.state.heap import make_heap
from venire.tools.compiling import inlined

__all__ = ["CELLS", "grouped_bids", "pick_smallest", "sorted_bids"]

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
