"""Look ahead: plan the outstanding items over the slots to come, carry out the first.

Water-filling spreads a burst thinly over its first slot, since nothing is cheaper than a label
without delay. But an item that is served later gets a lower price, for one unit of delay a slot;
and the more there is to gain of an item, the more it gains by a lower price. So in each slot the
queue is planned over this slot and the next ones (plan.py), with what they will bring as far as
it can be forecast (forecast.py), and the items that the plan serves in this slot are assigned
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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from venire.errors import InputError
from venire.scheduling.base import Floats, Kernels, Policy, PolicyMemory
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import COUNTER, SETTING, STALLS, TOUCHES, Desk
from venire.scheduling.kernel.exits import make_settle
from venire.scheduling.kernel.queues import begin_serving
from venire.scheduling.policies.lookahead.forecast import (
    MEMORY,
    SLOTS,
    add_kinds,
    forecast,
    note_arrivals,
    note_price,
)
from venire.scheduling.policies.lookahead.plan import (
    CELLS,
    fill,
    grouped_bids,
    pick_smallest,
    plan_price,
    sorted_bids,
)
from venire.scheduling.policies.waterfill.market import STEP, choose, find_price, supply_of, surplus
from venire.scheduling.policies.waterfill.policy import (
    PRICE,
    anybody_free,
    enter,
    give,
    leave,
    left_of,
    note_sales,
    prepay,
    restore,
    value_served,
)
from venire.tools.compiling import inlined, kernel

__all__ = ["LookAhead"]

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
        """The budget."""
        return (self.budget,)

    def price(self, gauges: Floats) -> float | None:
        """The price in the last slot in which work was assigned."""
        return math.exp(float(gauges[PRICE]) * STEP)
