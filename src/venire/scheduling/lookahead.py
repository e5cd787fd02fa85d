"""Look ahead: plan the outstanding items over the next slots, carry out the first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from venire.compiling import inlined, kernel
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.desk import COUNTER, SETTING, STALLS, TOUCHES, Desk
from venire.scheduling.forecast import add_kinds, foresee, note_arrivals
from venire.scheduling.handout import give, prepay, restore
from venire.scheduling.loop import Stream, make_run
from venire.scheduling.market import FREE, STEP, Ints, choose, copy, drop_bids, supply_of, surplus
from venire.scheduling.plan import fill, plan_price
from venire.scheduling.turns import begin_serving
from venire.scheduling.waterfill import (
    PRICE,
    anybody_free,
    enter,
    leave,
    left_to_sell,
    note_sales,
    revalue_touched,
)
from venire.scheduling.wheel import make_settle

__all__ = ["LookAhead"]

@inlined
def before(desk: Desk, a: int, b: int) -> bool:
    s = desk.stalls
    return s[a].value < s[b].value or (s[a].value == s[b].value and s[a].row < s[b].row)


@inlined
def sink(desk: Desk, heap: Ints, i: int, count: int) -> None:
    while True:
        j = 2 * i + 1
        if j + 1 < count and before(desk, heap[j + 1], heap[j]):
            j += 1
        if j >= count or not before(desk, heap[j], heap[i]):
            return
        heap[i], heap[j] = heap[j], heap[i]
        i = j


@inlined
def sorted_bids(desk: Desk, slot: int) -> int:
    heap = desk.chosen[len(desk.rows) :]
    n = 0
    for i in range(desk.meta[STALLS]):
        s = desk.stalls[i]
        if s.most > slot - s.since:
            heap[n] = i
            n += 1
    for i in range(n // 2 - 1, -1, -1):
        sink(desk, heap, i, n)
    left = n
    while left > 0:
        i = heap[0]
        j = n - left
        copy(desk.stalls, i, desk.bids, j)
        desk.bids[j].charge = float(slot - desk.stalls[i].since)
        desk.bids[j].mass = 1.0
        left -= 1
        heap[0] = heap[left]
        sink(desk, heap, 0, left)
    return n


@inlined
def choose_planned(desk: Desk, count: int, now: float, later: float, kinds: int, k: int) -> int:
    bids = desk.bids
    first, share = count, 0.0
    if k > FREE:
        _, first, share = fill(desk, count, now, later, kinds, k + 1)
    if first == count:
        return choose(desk, now, k, drop_bids(desk, count, k))
    log = (k + 1) * STEP
    price, picked = math.exp(log), 0
    for i in range(first):
        if surplus(bids[i], log, price, bids[i].charge) > 0.0:
            desk.chosen[picked] = bids[i].row
            picked += 1
    if share >= 0.5 or picked == 0:
        desk.chosen[picked] = bids[first].row
        picked += 1
    return picked


@kernel
def serve(desk: Desk, slot: int) -> None:
    first = begin_serving(desk)
    if not anybody_free(desk):
        return
    now, later = left_to_sell(desk, slot), supply_of(desk)
    bids = sorted_bids(desk, slot)
    kinds = add_kinds(desk, bids) if desk.meta[SETTING] else 0
    foresee(desk, slot)
    price, fills = plan_price(desk, bids, now, later, kinds, int(desk.gauges[PRICE]))
    count = choose_planned(desk, bids, now, later, kinds, price)
    prepay(desk, count, slot)
    give(desk, slot, True)
    give(desk, slot, False)
    restore(desk, count)
    if desk.meta[TOUCHES] > first:
        desk.gauges[PRICE] = price
        desk.meta[COUNTER] += fills
        note_sales(desk, first, slot)
        revalue_touched(desk, first, slot)


settle_slot = make_settle(leave)


@kernel
def settle(desk: Desk, slot: int) -> int:
    note_arrivals(desk, slot)
    return settle_slot(desk, slot)


run_slots = make_run(enter, serve, settle)


@kernel
def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
    return run_slots(desk, stream, start, stop)


@dataclass(frozen=True)
class LookAhead(Policy):
    """Plan."""

    forecast: int = 100
    name: ClassVar[str] = "lookahead"

    def settings(self) -> tuple[int, ...]:
        return (self.forecast,)

    def kernels(self) -> Kernels:
        """Compiled."""
        return Kernels(enter, leave, serve, settle, run)
