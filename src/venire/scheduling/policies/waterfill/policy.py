"""Water-filling: a slot sells its evidence at one price.

Algorithm 1 requires that every single label pays for the whole delay of its item. Where one label
is worth little, no item gets any, although many labels together would pay: f is not submodular
(docs/errata.md). Here an item buys as much evidence as it wants at the price at which total demand
(market.py) meets what the panel can give in the slot, and pays for its delay once.
Items that buy are assigned labelers as in Algorithm 1, with the delay counted as paid
(`prepay`). An item leaves when all eligible labelers together would not pay for one more
slot:

    w exp(-E) (1 - exp(-evidence of all unused)) <= t + 1 - t_last

Where labels cost money, "all" are those whose labels add more than they cost, less what they cost.
Where single labels pay, it does what Algorithm 1 does, or nearly.

**Prepaid delay.** The delay that a row pays for a label in this slot is paid once, however many
labels it gets. Algorithm 1 charges it to the first label alone, so where one label is worth less
than a slot, no label is the first. Here a policy chooses the rows to serve; they are in a queue
before all others, without a delay, so that labels for them compete by what they add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from venire.scheduling.base import Floats, Kernels, Policy, PolicyMemory
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import EXHAUSTED, NO_GAIN, STALLS, TOUCHES, Desk, room
from venire.scheduling.kernel.eligibility import eligible_count
from venire.scheduling.kernel.exits import set_due
from venire.scheduling.kernel.queues import (
    begin_serving,
    dequeue,
    enqueue,
    make_for_served,
    make_turn,
)
from venire.scheduling.policies.greedy import bound, file_row, refile_at, score, take
from venire.scheduling.policies.waterfill.market import (
    STEP,
    choose,
    close_stall,
    find_price,
    on_sale,
    open_stall,
    supply_of,
)
from venire.tools.compiling import inlined, kernel

__all__ = ["Waterfill", "give", "prepay", "restore"]

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


@inlined
def score_chosen(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    return score(desk, labeler, row, rank, slot) if rank > slot else -1.0


@inlined
def bound_chosen(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return bound(desk, labeler, rank, slot) if rank > slot else -1.0


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    refile_at(desk, row, slot + 1 if desk.rows[row].paid == slot else desk.rows[row].last)


take_turn = make_turn(score, bound, take, refile)
take_chosen = make_turn(score_chosen, bound_chosen, take, refile)


@inlined
def prepay(desk: Desk, count: int, slot: int) -> None:
    """Count the delay of the chosen rows as paid: they come before all others."""
    for i in range(count):
        row = desk.chosen[i]
        desk.rows[row].paid = slot
        dequeue(desk, row)
        enqueue(desk, row, slot + 1)


@inlined
def give(desk: Desk, slot: int, chosen_only: bool) -> None:
    """Every labeler with room takes the rows of the largest gain, the best labeler first."""
    for m in desk.order:
        if desk.panel[m].reach <= 0.0:
            break
        if room(desk, m) > 0:
            if chosen_only:
                take_chosen(desk, m, slot, desk.panel[m].price)
            else:
                take_turn(desk, m, slot, desk.panel[m].price)


@inlined
def restore(desk: Desk, count: int) -> None:
    """Put the chosen rows where they belong."""
    for i in range(count):
        row = desk.chosen[i]
        desk.rows[row].paid = -1
        dequeue(desk, row)
        enqueue(desk, row, desk.rows[row].last)
