"""Water-filling: a slot sells its evidence at one price.

Algorithm 1 requires that every single label pays for the whole delay of its item. Where one label
is worth little, no item gets any, although many labels together would pay: f is not submodular
(docs/errata.md). Here an item buys as much evidence as it wants at the price at which total demand
(below) meets what the panel can give in the slot, and pays for its delay once.
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

**The market: a slot sells evidence at one price, and rows buy while it pays them.**

A row with value a left to gain, `charge` to pay for its delay and at most `cap` of evidence to
get (from its eligible labelers) gains a (1 - exp(-E)) from evidence E. At the price mu it

    demands  E* = min(cap, ln(a / mu))           where the marginal gain a exp(-E) is mu
    earns    a (1 - exp(-E*)) - mu E* - charge   its surplus
    buys     if its surplus is positive

The charge is paid once, however much is bought, so demand falls with the price but jumps where a
surplus passes zero. The price is where it meets the supply: at the price above the jump less is
demanded than there is, at the one below more. All that buy at the one above are chosen, then the
best of those that buy only below, while the supply lasts.

**Money.** Where labels have prices, a row would buy, one after the other in increasing price of
evidence, the labels that add more than they cost: their evidence is its cap, and what they cost
together, divided by that, its `rate`. The price mu then comes on top: mu + rate is paid for
evidence, so the row demands ln(a / (mu + rate)), and its surplus is that at mu + rate. This is
exact where all evidence costs the same, and a mean where not; that a label must gain more than its
own price is kept when labelers are assigned.

A row that may buy has a stall: value, its logarithm, cap and value (1 - exp(-cap)) in one
contiguous array, in no order. So looking for the price needs no logarithm and no exponential per
row, and no look at the rows; it starts at the last price, and only the stalls that would buy at
the lower end of the bracket are looked at again (the bids).

Prices stand on a grid, exp(k STEP) for whole k, and evidence is counted in whole units. So sums
are exact whatever their order, and the price does not depend on where the search began.

**Supply** is the evidence that labelers can give to rows for which they are eligible. Where
everybody may label everything, that is what the whole panel can give. Where a row is for a few
labelers only, all others may be idle while many rows compete for those few: counted as supply, the
idle ones would make evidence look cheap, too many rows would buy, each would get a label or two,
and all would pay for the delay again and again. So a labeler counts for no more labels than there
are rows that it may label:

    supply = sum over labelers of  evidence * min(capacity, rows that it may label)

Where labels cost money, labelers whose label would not pay for the row with the most to gain supply
nothing.

A labeler who has labelled a row already counts as one who may: what is sold in a slot does not
change the supply of the slot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from venire.scheduling.base import Kernels, Policy, PolicyMemory
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import (
    BARRED,
    EXHAUSTED,
    NO_GAIN,
    PRICED,
    STALLS,
    TOUCHES,
    Desk,
    Records,
    room,
)
from venire.scheduling.kernel.queues import (
    begin_serving,
    dequeue,
    enqueue,
    make_for_served,
    make_heap,
    make_turn,
)
from venire.scheduling.kernel.rows import (
    eligible_count,
    first_unmarked,
    labeler_at,
    new_stamp,
    next_eligible,
    set_due,
    stamp_eligible,
)
from venire.scheduling.policies.greedy import bound, file_row, refile_at, score, take
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel

Ints = NDArray[np.int32]

#: Logarithms of prices are whole multiples of this.
STEP: Final = 2.0**-20

#: Units of evidence in 1.
UNIT: Final = 2.0**32

#: As good as free: exp(-32).
FREE: Final = -(2**25)


@inlined
def reserve(desk: Desk, row: int, here: bool) -> float:
    """The evidence of the eligible labelers; with `here`, only of those who are not away."""
    stamp = new_stamp(desk)
    total = desk.bounds[2 if here else 1]
    k = desk.rows[row].head
    while k >= 0:
        m = desk.touches[k].labeler
        if desk.panel[m].mark != stamp and (desk.panel[m].capacity > 0 or not here):
            total -= desk.panel[m].evidence
        desk.panel[m].mark = stamp
        k = desk.touches[k].next
    if desk.rows[row].group > 0:
        total = 0.0
        place = first_unmarked(desk, row)
        while place >= 0:
            m = labeler_at(desk, row, place)
            if desk.panel[m].capacity > 0 or not here:
                total += desk.panel[m].evidence
            place = next_eligible(desk, row, place)
    return max(total, 0.0)


@inlined
def labels_that_pay(
    desk: Desk, value: float, stamp: int, marked: bool, here: bool
) -> tuple[float, float]:
    """The evidence and the price of the labels that each add more to a value than they cost.

    By the labelers with this stamp, or with `marked` false by those without it, in their order;
    with `here`, only by those who are not away.
    """
    cap, money, rest = 0.0, 0.0, value
    for m in desk.order:
        p = desk.panel[m]
        may = (p.mark == stamp) == marked and (p.capacity > 0 or not here)
        if may and rest * p.reach > p.price:
            cap += p.evidence
            money += p.price
            rest *= 1.0 - p.reach
    return cap, money


@inlined
def on_sale(desk: Desk, row: int, value: float, here: bool) -> tuple[float, float]:
    """The evidence that a row of this value may buy, and what it costs in money."""
    if desk.meta[PRICED] == 0:
        return reserve(desk, row, here), 0.0
    stamp, marked = stamp_eligible(desk, row)
    return labels_that_pay(desk, value, stamp, marked, here)


@inlined
def open_stall(
    desk: Desk, row: int, value: float, cap: float, since: int, money: float = 0.0
) -> None:
    """Let the row buy, or update its value: it pays for the delay from slot `since` on."""
    place = desk.rows[row].place
    if place < 0:
        place = desk.meta[STALLS]
        desk.meta[STALLS] = place + 1
        desk.rows[row].place = place
    stalls = desk.stalls
    stalls[place].value = value
    stalls[place].log = math.log(value) if value > 0.0 else -1e300
    stalls[place].cap = cap
    stalls[place].rate = money / cap if money > 0.0 else 0.0
    stalls[place].most = -value * math.expm1(-cap) - money
    stalls[place].since = since
    stalls[place].row = row


@inlined
def close_stall(desk: Desk, row: int) -> None:
    """Remove the stall of a row; do nothing if it has none."""
    place = desk.rows[row].place
    if place < 0:
        return
    last = desk.meta[STALLS] - 1
    desk.meta[STALLS] = last
    if place != last:
        copy(desk.stalls, last, desk.stalls, place)
        desk.rows[desk.stalls[place].row].place = place
    desk.rows[row].place = -1


@inlined
def copy(source: Records, i: int, target: Records, j: int) -> None:
    target[j].value = source[i].value
    target[j].log = source[i].log
    target[j].cap = source[i].cap
    target[j].rate = source[i].rate
    target[j].most = source[i].most
    target[j].charge = source[i].charge
    target[j].since = source[i].since
    target[j].row = source[i].row


@inlined
def cost_of(s: Any, log: float, price: float) -> tuple[float, float]:
    """What a stall pays for evidence, money included: its logarithm, and itself."""
    if s.rate == 0.0:
        return log, price
    return math.log(price + s.rate), price + s.rate


@inlined
def wanted(s: Any, log: float) -> float:
    """How much evidence a stall demands at the price exp(log), if it buys."""
    total = log if s.rate == 0.0 else math.log(math.exp(log) + s.rate)
    return max(0.0, min(s.cap, s.log - total))


@inlined
def surplus(s: Any, log: float, price: float, charge: float) -> float:
    """What a stall earns at this price, less this charge for the delay."""
    total, cost = cost_of(s, log, price)
    some = s.log - total
    if some >= s.cap:
        return s.most - price * s.cap - charge
    if some <= 0.0:
        return -charge
    return s.value - cost - cost * some - charge


@inlined
def buys(s: Any, log: float, price: float, slot: int) -> bool:
    return s.log > log and surplus(s, log, price, float(slot - s.since)) > 0.0


@inlined
def units(evidence: float) -> int:
    return int(evidence * UNIT)


@inlined
def demand_at(desk: Desk, k: int, slot: int) -> int:
    """What all stalls together buy at the k-th price."""
    log, total = k * STEP, 0
    price = math.exp(log)
    for i in range(desk.meta[STALLS]):
        if buys(desk.stalls[i], log, price, slot):
            total += units(wanted(desk.stalls[i], log))
    return total


@inlined
def take_bids(desk: Desk, k: int, slot: int) -> int:
    """The bids: all stalls that buy at the k-th price; how many."""
    log, n = k * STEP, 0
    price = math.exp(log)
    for i in range(desk.meta[STALLS]):
        if buys(desk.stalls[i], log, price, slot):
            copy(desk.stalls, i, desk.bids, n)
            desk.bids[n].charge = float(slot - desk.stalls[i].since)
            n += 1
    return n


@inlined
def bids_at(desk: Desk, count: int, k: int) -> int:
    """What the bids together buy at the k-th price."""
    log, total = k * STEP, 0
    price = math.exp(log)
    for i in range(count):
        s = desk.bids[i]
        if surplus(s, log, price, s.charge) > 0.0:
            total += units(wanted(s, log))
    return total


@inlined
def drop_bids(desk: Desk, count: int, k: int) -> int:
    """Keep the bids that buy at the k-th price; how many."""
    log, n = k * STEP, 0
    price = math.exp(log)
    for i in range(count):
        s = desk.bids[i]
        if surplus(s, log, price, s.charge) > 0.0:
            if i != n:
                copy(desk.bids, i, desk.bids, n)
            n += 1
    return n


@inlined
def find_price(desk: Desk, supply: float, slot: int, guess: int) -> tuple[int, int]:
    """The highest k at whose price more is demanded than the supply, and how many bids at it.

    FREE where the supply covers all demand. `guess` is a price near it; it affects only how long
    the search takes.
    """
    offered = units(supply)
    high = 1 + math.ceil(math.log(desk.bounds[0]) / STEP) if desk.bounds[0] > 0.0 else FREE + 1
    high = max(high, FREE + 1)
    width = 1 << 16
    low = min(max(guess - width, FREE), high - 1)
    while low > FREE and demand_at(desk, low, slot) <= offered:
        high = low
        width *= 8
        low = max(low - width, FREE)
    count = take_bids(desk, low, slot)
    if low == FREE and bids_at(desk, count, FREE) <= offered:
        return FREE, count
    step = 1 << 17
    while high - low > 1:
        middle = min(low + step, (low + high) // 2) if step else (low + high) // 2
        if bids_at(desk, count, middle) > offered:
            low, step = middle, step * 8
            count = drop_bids(desk, count, middle)
        else:
            high, step = middle, 0
    return low, count


@inlined
def ahead(desk: Desk, a: int, b: int) -> bool:
    """Whether bid a has the larger surplus, or the same and the earlier row."""
    bids = desk.bids
    return bids[a].surplus > bids[b].surplus or (
        bids[a].surplus == bids[b].surplus and bids[a].row < bids[b].row
    )


sink, heapify = make_heap(ahead)


@inlined
def choose(desk: Desk, supply: float, k: int, count: int) -> int:
    """List in `desk.chosen` the rows that get evidence; returns how many.

    `k` and `count` as `find_price` gave them. Those that buy at the next price up, and of the
    others the best at this price while the supply lasts.
    """
    bids, chosen = desk.bids, desk.chosen
    if k == FREE:
        for i in range(count):
            chosen[i] = bids[i].row
        return count
    left, picked, waiting = units(supply), 0, 0
    heap = desk.chosen[len(desk.rows) :]
    log, above = k * STEP, (k + 1) * STEP
    price, price_above = math.exp(log), math.exp(above)
    for i in range(count):
        s = bids[i]
        if surplus(s, above, price_above, s.charge) > 0.0:
            left -= units(wanted(s, above))
            chosen[picked] = s.row
            picked += 1
        else:
            bids[i].surplus = surplus(s, log, price, s.charge)
            heap[waiting] = i
            waiting += 1
    heapify(desk, heap, waiting)
    while waiting > 0:
        s = bids[heap[0]]
        some = units(wanted(s, log))
        if some > left and not pays(s, left / UNIT, picked, price):
            break
        chosen[picked] = s.row
        picked += 1
        left -= some
        waiting -= 1
        heap[0] = heap[waiting]
        sink(desk, heap, 0, waiting)
    return picked


@inlined
def pays(s: Any, left: float, others: int, price: float) -> bool:
    """Whether what is left of the supply does more for this bid than for the others.

    They stand at the price: `left` spread over n of them gains n price (1 - exp(-left / n)).
    """
    if left <= 0.0:
        return False
    share = -others * price * math.expm1(-left / others) if others > 0 else 0.0
    some = min(left, s.cap)
    return -s.value * math.expm1(-some) - s.rate * some - s.charge > share


@inlined
def mark_outsiders(desk: Desk, row: int, count: int) -> int:
    """Mark all who are excluded from the row, with a new stamp; returns how many.

    `count` is added to the pointer of each.
    """
    stamp, barred = new_stamp(desk), 0
    k = desk.rows[row].head
    while k >= 0:
        m = desk.touches[k].labeler
        if desk.touches[k].said == BARRED and desk.panel[m].mark != stamp:
            desk.panel[m].mark = stamp
            desk.panel[m].pointer += count
            barred += 1
        k = desk.touches[k].next
    return barred


@inlined
def count_members(desk: Desk, row: int) -> None:
    """Add the row to the pointers of the members of its group who are not excluded from it."""
    mark_outsiders(desk, row, 0)
    place = first_unmarked(desk, row)
    while place >= 0:
        desk.panel[labeler_at(desk, row, place)].pointer += 1
        place = next_eligible(desk, row, place)


@inlined
def count_rows(desk: Desk, enough: int) -> int:
    """Count the rows with a stall that each labeler may label: its pointer plus the result.

    Counting stops once everybody may label `enough` rows.
    """
    for m in range(len(desk.panel)):
        desk.panel[m].pointer = 0
    everybody, unbarred = 0, 0
    for i in range(desk.meta[STALLS]):
        row = desk.stalls[i].row
        if desk.rows[row].group > 0:
            count_members(desk, row)
            continue
        everybody += 1
        if mark_outsiders(desk, row, -1) == 0:
            unbarred += 1
            if unbarred >= enough:
                break
    return everybody


@inlined
def supply_of(desk: Desk) -> float:
    """The evidence that the labelers present can give in a slot; nobody labels a row twice."""
    enough = 0
    for m in range(len(desk.panel)):
        enough = max(enough, desk.panel[m].capacity)
    everybody, total, most = count_rows(desk, enough), 0.0, 0.0
    if desk.meta[PRICED] != 0:
        for i in range(desk.meta[STALLS]):
            most = max(most, desk.stalls[i].value)
    for m in range(len(desk.panel)):
        rows, price = everybody + desk.panel[m].pointer, desk.panel[m].price
        if price == 0.0 or price < most * desk.panel[m].reach:
            total += min(desk.panel[m].capacity, rows) * desk.panel[m].evidence
    return total


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
