"""Water-filling: a slot sells its evidence at one price.

Algorithm 1 requires that every single label pays for the whole delay of its item. Where one label
is worth little, no item gets any, although many labels together would pay: f is not submodular
(docs/errata.md). Here an item buys as much evidence as it wants at the price at which total demand
(market.py) meets what the panel can give in the slot (supply.py), and pays for its delay once.
Items that buy are assigned labelers as in Algorithm 1, with the delay counted as paid
(prepaid_delay.py). An item leaves when all eligible labelers together would not pay for one more
slot:

    w exp(-E) (1 - exp(-evidence of all unused)) <= t + 1 - t_last

Where labels cost money, "all" are those whose labels add more than they cost, less what they cost.
Where single labels pay, it does what Algorithm 1 does, or nearly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from venire.scheduling.algorithm1.build import compiled
from venire.scheduling.algorithm1.exit_wheel import set_due
from venire.scheduling.algorithm1.gain import file_row
from venire.scheduling.algorithm1.labeler_turn import begin_serving, make_for_served
from venire.scheduling.algorithm1.ready_queues import dequeue
from venire.scheduling.base import Floats, Kernels, Policy
from venire.scheduling.policies.waterfill.market import (
    STEP,
    choose,
    close_stall,
    find_price,
    on_sale,
    open_stall,
)
from venire.scheduling.policies.waterfill.prepaid_delay import give, prepay, restore
from venire.scheduling.policies.waterfill.supply import supply_of
from venire.scheduling.state.desk import EXHAUSTED, NO_GAIN, STALLS, TOUCHES, Desk, room
from venire.scheduling.state.eligibility import eligible_count
from venire.scheduling.state.policy_memory import PolicyMemory
from venire.tools.compiling import inlined, kernel

__all__ = ["Waterfill"]

FAR: Final = 2.0**62

MEMORY: Final = PolicyMemory(
    "price",  # number of the last price
    "sold_in",  # slot in which work was last assigned
    "sold",  # evidence assigned in that slot
)
PRICE, SOLD_IN, SOLD = MEMORY.places


@inlined
def plan_exit(desk: Desk, row: int, slot: int) -> None:
    """Find the first slot after which all unused labelers together would not pay."""
    cap, money = on_sale(desk, row, desk.rows[row].key, False)
    span = -desk.rows[row].key * math.expm1(-cap) - money
    due = desk.rows[row].last - 1 + math.ceil(min(span, FAR))
    reason = NO_GAIN if span > 0.0 or eligible_count(desk, row, False) > 0 else EXHAUSTED
    set_due(desk, row, max(due, slot), reason)


@inlined
def value_row(desk: Desk, row: int, slot: int) -> None:
    """Update the market and the exit of a row whose residual or eligible labelers have changed."""
    cap, money = on_sale(desk, row, desk.rows[row].key, True)
    open_stall(desk, row, desk.rows[row].key, cap, desk.rows[row].last, money)
    plan_exit(desk, row, slot)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    file_row(desk, row)
    desk.rows[row].paid = -1
    value_row(desk, row, slot)


@kernel
def leave(desk: Desk, row: int) -> None:
    dequeue(desk, row)
    close_stall(desk, row)


@inlined
def anybody_free(desk: Desk) -> bool:
    """Whether anything can be assigned at all."""
    for m in desk.order:
        if desk.panel[m].reach <= 0.0:
            return False
        if room(desk, m) > 0:
            return desk.meta[STALLS] > 0
    return False


@inlined
def left_of(desk: Desk, supply: float, slot: int) -> float:
    """What is left of the supply of this slot after earlier assignments in it."""
    sold = desk.gauges[SOLD] if desk.gauges[SOLD_IN] == slot else 0.0
    return max(supply - sold, 0.0)


@inlined
def note_sales(desk: Desk, first: int, slot: int) -> None:
    """Remember the evidence assigned in this slot."""
    if desk.gauges[SOLD_IN] != slot:
        desk.gauges[SOLD_IN], desk.gauges[SOLD] = slot, 0.0
    for k in range(first, desk.meta[TOUCHES]):
        desk.gauges[SOLD] += desk.panel[desk.touches[k].labeler].evidence


value_served = make_for_served(value_row)


@kernel
def serve(desk: Desk, slot: int) -> None:
    first = begin_serving(desk)
    if not anybody_free(desk):
        return
    supply = left_of(desk, supply_of(desk), slot)
    price, bids = find_price(desk, supply, slot, int(desk.gauges[PRICE]))
    count = choose(desk, supply, price, bids)
    prepay(desk, count, slot)
    give(desk, slot, False)
    restore(desk, count)
    if desk.meta[TOUCHES] > first:
        # a serving that assigns nothing is not in the log: it must not change the state
        desk.gauges[PRICE] = price
        note_sales(desk, first, slot)
        value_served(desk, first, slot)


@dataclass(frozen=True)
class Waterfill(Policy):
    """Sell the evidence of a slot at one price; an item pays for its delay once.

    Three labels that are worth 0.6 each pay together for a slot that none pays for alone:

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler(name, 0.6) for name in ("ann", "bob", "cem")]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Waterfill())
    >>> s.arrive([Item("a", weight=16), Item("b", weight=16)])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('b', 'bob'), ('a', 'cem')]
    """

    name: ClassVar[str] = "waterfill"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
    memory: ClassVar[PolicyMemory] = MEMORY
    per_row: ClassVar[tuple[str, ...]] = ("stalls", "bids")

    def price(self, gauges: Floats) -> float | None:
        """The price in the last slot in which work was assigned."""
        return math.exp(float(gauges[PRICE]) * STEP)
