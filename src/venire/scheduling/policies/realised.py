"""Realised and true utility: past delay is sunk, and an item leaves once waiting does not pay.

The paper charges delay up to the last label, so Algorithm 1 lets an item wait for no label at no
cost; its owner waits all the same. Here an item pays for every slot until it leaves. Past delay
cannot be changed, so it enters no decision; what counts is whether one more slot pays.

In each slot evidence has one price (queue_price.py), found from the items that wait, what they
have left to gain (item_value.py) and expected arrivals. At that price an item
wants x = ln(left / price) of evidence, at least one label, and has a surplus of

    loss - left exp(-x) - price x

from it. Items of positive surplus that would not wait for more are served; of those that would,
the ones that want least, since each item that waits costs one slot, whatever it wants. Labelers go
in decreasing competence, each to the chosen item where its label gains most, if that is more than
its evidence costs: what is left to gain of an item that has got what it wants is below the price.
Labelers for whom no chosen item is left serve all items, whatever the price; under overload those
are the first labels of items that would have gone without.

When the labels of the slot are in, the items that got any are valued again, the price of the next
slot is forecast, and items whose reserve is below it leave at once; so does an item that few may
label, if these have no time for it.

Where labels cost money, labelers go in increasing price of evidence, a label must gain more than
its price, and a row refuses labelers that are too dear for it (item_value.py). Labels that cost
more than a slot of delay it also refuses while others are on their way: what these say may make the
dear one superfluous.

Two policies differ in how they value an item. `Realised` uses what the labels said: two that agree
are not two that disagree. `RealisedProxy` uses the paper's accuracy, which depends only on who was
asked; the realised utility of a run is measured by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.base import Kernels, Policy, PolicyMemory
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import (
    EXHAUSTED,
    GONE,
    N_BINS,
    NO_GAIN,
    POOLED,
    Desk,
    room,
    touch,
)
from venire.scheduling.kernel.queues import begin_serving, enqueue, make_turn, move, release
from venire.scheduling.kernel.rows import never_due, waits
from venire.scheduling.policies.item_value import (
    BY_EVIDENCE,
    BY_LABELS,
    LOWEST,
    appraise,
    evidence_of,
    gain_of,
    one_label,
    sum_panel,
    supply,
)
from venire.scheduling.policies.queue_price import (
    FLOOR,
    MEMORY,
    NOW,
    PRICE,
    SLOTS,
    STAY,
    Known,
    add,
    clear_bins,
    expect,
    find_price,
    rehearse,
    remember,
)
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel

NEVER = -1  # the turn of a row that nobody can label
FIRST = N_BINS - 1  # the turn of a row that is served before those that would wait
STEPS = 32  # turns to one unit of evidence wanted
ROUND = 1e-9  # a price that differs by less counts as equal


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    """Value the row and put it into the pool, which is in order of arrival."""
    appraise(desk, row)
    place = desk.meta[POOLED]
    desk.meta[POOLED] = place + 1
    while place > 0 and desk.pool[place - 1] > row:
        desk.pool[place] = desk.pool[place - 1]
        place -= 1
    desk.pool[place] = row


@inlined
def place_of(desk: Desk, row: int) -> int:
    """Where in the pool the row is, or would be."""
    low, high = 0, desk.meta[POOLED]
    while low < high:
        middle = (low + high) // 2
        if desk.pool[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def leave(desk: Desk, row: int) -> None:
    n, low = desk.meta[POOLED], place_of(desk, row)
    if low < n and desk.pool[low] == row:
        for i in range(low, n - 1):
            desk.pool[i] = desk.pool[i + 1]
        desk.meta[POOLED] = n - 1


@inlined
def enter_again(desk: Desk, row: int, slot: int) -> None:
    """`leave` and `enter` in one; a row that is in the pool keeps its place."""
    place = place_of(desk, row)
    if place < desk.meta[POOLED] and desk.pool[place] == row:
        appraise(desk, row)
    else:
        enter(desk, row, slot)


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    gain = gain_of(desk, labeler, row)
    least = desk.gauges[FLOOR] * evidence_of(desk, labeler, desk.cases[row].kind // 2)
    return gain if gain > least + desk.panel[labeler].price else 0.0


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return math.inf


@inlined
def take(desk: Desk, labeler: int, row: int, slot: int) -> None:
    touch(desk, row, labeler, slot, gain_of(desk, labeler, row) - desk.panel[labeler].price)
    appraise(desk, row)


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    move(desk, row, desk.cases[row].kind)


@inlined
def refused(desk: Desk, labeler: int, row: int) -> bool:
    """Whether a label is too dear for the row, or others should be heard first."""
    price = desk.panel[labeler].price
    if price <= 0.0:
        return False
    if price > 1.0 and desk.rows[row].pending > 0:
        return True
    told = evidence_of(desk, labeler, desk.cases[row].kind // 2)
    return bool(price > desk.cases[row].limit * told * (1.0 + ROUND))


take_turn = make_turn(score, bound, take, refile, refused)


@inlined
def wanted(desk: Desk, row: int, price: float, log_price: float) -> tuple[float, float]:
    """How much evidence a row buys at a price, and its surplus from it."""
    x, loss, cap = desk.cases[row].log - log_price, desk.cases[row].loss, desk.cases[row].cap
    if desk.cases[row].least <= x <= cap:
        surplus = loss - price - price * x
    else:
        x = desk.cases[row].least if x < desk.cases[row].least else cap
        surplus = loss - desk.cases[row].left * math.exp(-x) - price * x
    if surplus > 0.0:
        return x, surplus
    return cap, loss - desk.cases[row].rest - price * cap


@inlined
def known(desk: Desk, held: float, next_slot: bool) -> Known:
    """What the price follows from, besides the rows; the expected arrivals go into the bins."""
    return held, one_label(desk), expect(desk, next_slot), max(1.0, desk.gauges[SLOTS])


@kernel
def price_now(desk: Desk, held: float) -> float:
    clear_bins(desk)
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        log, cap = desk.cases[row].log, desk.cases[row].cap
        add(desk, desk.cases[row].stay, STAY, 1.0, log, cap)
        add(desk, desk.cases[row].now, NOW, 1.0, log, cap)
    price, _, _ = find_price(desk, known(desk, held, False))
    return price


@kernel
def choose(desk: Desk, price: float, held: float) -> int:
    """Write how early each row is served; the turn from which on rows are chosen."""
    clear_bins(desk)
    log_price, total = math.log(price), 0.0
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        b = NEVER
        if desk.cases[row].cap > 0.0:
            b, x, surplus = 0, 0.0, 0.0
            rate = desk.cases[row].rate
            if desk.cases[row].reserve_now > price:
                if rate > 0.0:
                    x, surplus = wanted(desk, row, price + rate, math.log(price + rate))
                else:
                    x, surplus = wanted(desk, row, price, log_price)
            if surplus > 0.0:
                b = FIRST
                if desk.cases[row].reserve >= price:
                    b = max(1, FIRST - 1 - int(x * STEPS))
                desk.cases[row].want = x
                desk.bins[b, 0] += x
                total += x
        desk.cases[row].turn = b
    if total <= held:
        return 1
    cut, left = FIRST, held
    while cut > 1 and desk.bins[cut, 0] <= left:
        left -= desk.bins[cut, 0]
        cut -= 1
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if desk.cases[row].turn == cut:
            if left <= 0.0:
                desk.cases[row].turn = 0
            left -= desk.cases[row].want
    return cut


@inlined
def useful(desk: Desk, labeler: int) -> bool:
    """Whether the labeler has room and its labels carry evidence."""
    tells: bool = room(desk, labeler) > 0 and desk.panel[labeler].evidence > 0.0
    return tells


@kernel
def hand_out(desk: Desk, slot: int, low: int, high: int) -> None:
    """Let labelers take their turns over the rows of these turns, and those queued before."""
    begin_serving(desk)
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if low <= desk.cases[row].turn <= high:
            enqueue(desk, row, desk.cases[row].kind)
    for m in desk.order:
        if useful(desk, m):
            take_turn(desk, m, slot, desk.panel[m].price)


@inlined
def clear_queues(desk: Desk, low: int) -> None:
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if desk.cases[row].turn >= low and desk.rows[row].shelf >= 0:
            release(desk, row)


@kernel
def serve(desk: Desk, slot: int) -> None:
    sum_panel(desk)
    held = supply(desk)
    if desk.meta[POOLED] == 0 or held <= 0.0:
        return
    price = price_now(desk, held)
    cut = choose(desk, price, held)
    desk.gauges[FLOOR] = price
    hand_out(desk, slot, cut, FIRST)
    desk.gauges[FLOOR] = 0.0
    for m in range(len(desk.panel)):
        if useful(desk, m):  # no chosen row is left for it
            hand_out(desk, slot, 0, cut - 1)
            cut = 0
            break
    clear_queues(desk, cut)


@inlined
def look(desk: Desk, slot: int) -> None:
    """Value the rows that got labels in this slot, fill the bins, and remember the arrivals."""
    clear_bins(desk)
    arrived, logs, squares = 0, 0.0, 0.0
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if desk.rows[row].arrival == slot:
            log = math.log(desk.rows[row].weight)
            arrived, logs, squares = arrived + 1, logs + log, squares + log * log
        if desk.rows[row].last == slot:
            appraise(desk, row)
        b, log, cap = desk.cases[row].stay, desk.cases[row].log, desk.cases[row].cap
        add(desk, b, STAY, 1.0, log, cap)
        add(desk, b, NOW, 1.0, log, cap)
    remember(desk, arrived, logs, squares)


@kernel
def settle(desk: Desk, slot: int) -> int:
    sum_panel(desk)
    look(desk, slot)
    held, price, low, spare = supply(desk), LOWEST, 0, 0.0
    if held > 0.0:
        price, low, spare = find_price(desk, known(desk, held, True))
    desk.gauges[PRICE] = price
    rehearse(desk, low)
    count = kept = 0
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        stays = desk.cases[row].stay > low or desk.rows[row].pending > 0
        if desk.cases[row].few:
            stays = desk.cases[row].turn > 0 or desk.rows[row].pending > 0
        elif desk.cases[row].stay == low and spare >= 0.5:
            spare -= 1.0
            stays = True
        if desk.rows[row].due >= 0:  # because of a limit
            stays = waits(desk, row)
        elif not stays:
            desk.rows[row].reason = NO_GAIN if desk.cases[row].cap > 0.0 else EXHAUSTED
            stays = waits(desk, row)
        if stays:
            desk.pool[kept] = row
            kept += 1
        else:
            never_due(desk, row)
            desk.rows[row].state = GONE
            desk.rows[row].exit = slot
            desk.gone[count] = row
            count += 1
    desk.meta[POOLED] = kept
    return count


class _Forecasting(Policy):
    """What the two policies share: kernels, memory and price."""

    memory: ClassVar[PolicyMemory] = MEMORY
    per_row: ClassVar[tuple[str, ...]] = ("cases",)
    built: ClassVar[Kernels] = compiled(enter, leave, serve, settle, reenter=enter_again)

    def price(self, gauges: Floats) -> float | None:
        """The forecast cost of a unit of evidence, in delay of other items."""
        return float(gauges[PRICE])


@dataclass(frozen=True)
class Realised(_Forecasting):
    """For true utility: the weight of right verdicts, less the delay until the item left.

    An item is valued by what its labels said: two that agree are enough where two that disagree
    need a third.

    >>> from venire import Item, Label, Labeler, Scheduler
    >>> panel = [Labeler(name, 0.8) for name in ("ann", "bob", "eve", "joe")]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Realised())
    >>> s.arrive([Item("a", weight=6), Item("b", weight=6)])
    >>> said = {("b", "bob"): "ok"}
    >>> for a in s.assign():
    ...     s.observe(Label(a.item, a.labeler, said.get((a.item, a.labeler), "spam")))
    >>> [(e.item, e.verdict.label, round(e.verdict.confidence, 2)) for e in s.close()]
    [('a', 'spam', 0.94)]
    >>> s.outstanding
    ('b',)
    """

    name: ClassVar[str] = "realised"

    def settings(self) -> tuple[int, ...]:
        return (BY_LABELS,)


@dataclass(frozen=True)
class RealisedProxy(_Forecasting):
    """For realised utility: the paper's accuracy, less the delay until the item left.

    An item is valued by who labelled it, whatever they said.

    >>> from venire import Greedy, World, simulate
    >>> world = World.synthetic(seed=0, competences=[0.9, 0.8, 0.7])
    >>> ours, theirs = (simulate(world, p, slots=200) for p in (RealisedProxy(), Greedy()))
    >>> ours.realised_utility > theirs.realised_utility
    True
    """

    name: ClassVar[str] = "realised-proxy"

    def settings(self) -> tuple[int, ...]:
        return (BY_EVIDENCE,)
