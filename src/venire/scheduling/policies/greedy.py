"""Algorithm 1: the greedy schedule (paper, section 3.1).

Numbers are lines of Algorithm 1 in the paper. In each slot

    8       labelers take turns, the most competent first (`desk.order`, see kernel/verdicts.py);
    9-17    each repeatedly takes the eligible outstanding item with the largest gain, while that
            gain is positive and it has capacity left (`take_turn`);
    20      an item leaves once no labeler that it could still have would gain anything from the
            next slot on (`plan_exit`; the paper says from this slot on, which is over by then).

Ties go to the earliest arrival, then to the lowest index. A labeler that finds nothing does not end
the slot for the labelers after it (the paper's `Break` would). For both see docs/errata.md, 8 and
3. Where labels cost money, a label must gain more than its price, and the cheapest labelers per
unit of evidence go first: expensive ones get what is left.

**The gain** of one more label (paper, section 3.2, the incremental utility) is

    gain = a * x - d - c,   a = w exp(-E) the residual,  x = 1 - exp(-evidence) the labeler's
                            reach, d = slots since the last label, c = the price of the label

It is linear in x, and d depends only on the slot of the last label. So items wait in queues by that
slot (their rank), each a heap ordered by a (`key`), and only the head of each queue has to be
compared (kernel/queues.py). If a rank is after the current slot, the delay is 0. The price of a
labeler is the same for all items, so it does not affect their order, only the least gain that a
turn accepts (`floor` of `take_turn`). An assignment takes O(q + log n): q queues, one for each slot
in which a waiting item got its last label (the largest residual bounds how far back to look).

The set M(s, t) of those who may still label an item (line 7) is in kernel/rows.py, the loop over
slots (line 3) in simulation/loop.py for a simulation and in the engine for a stream. Begin to read
at the bottom: `serve` is the slot, `take_turn` a labeler's turn, `plan_exit` the exit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from venire.paper import utility
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import EXHAUSTED, NO_GAIN, Desk, room, touch
from venire.scheduling.kernel.queues import (
    begin_serving,
    dequeue,
    enqueue,
    make_for_served,
    make_turn,
    move,
)
from venire.scheduling.kernel.rows import best_gain, eligible_count, set_due
from venire.tools.compiling import inlined, kernel

#: Never, as a slot that still fits.
FAR: Final = 2**62

residual = inlined(utility.residual)
gain = inlined(utility.gain)


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    """The gain of giving this labeler a row of this rank, before its price."""
    return gain(desk.rows[row].key, desk.panel[labeler].reach, max(slot - rank, 0))


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    """Upper bound on the gain of any row of this rank or a lower one, before the price."""
    return gain(desk.bounds[0], desk.panel[labeler].reach, max(slot - rank, 0))


@inlined
def take(desk: Desk, labeler: int, row: int, slot: int) -> None:
    """Give the row to the labeler, and record the gain."""
    gained = score(desk, labeler, row, desk.rows[row].last, slot)
    touch(desk, row, labeler, slot, gained - desk.panel[labeler].price)


@inlined
def refile_at(desk: Desk, row: int, rank: int) -> None:
    """Put a row that is out of its heap into the queue of this rank, by what is left to gain."""
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    move(desk, row, rank)


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    refile_at(desk, row, desk.rows[row].last)


take_turn = make_turn(score, bound, take, refile)


@inlined
def plan_exit(desk: Desk, row: int, slot: int) -> None:
    """The row leaves after the first slot t with a * x - c <= t + 1 - last for every labeler.

    Gain is measured in slots, so the largest a * x - c is how many slots a label is worth waiting.
    """
    worth = best_gain(desk, row, desk.rows[row].key)
    due = desk.rows[row].last - 1 + (math.ceil(worth) if worth < FAR else FAR)
    reason = NO_GAIN if worth > 0.0 or eligible_count(desk, row, False) > 0 else EXHAUSTED
    set_due(desk, row, max(due, slot), reason)


plan_exits = make_for_served(plan_exit)


@inlined
def file_row(desk: Desk, row: int) -> None:
    """Put a row that is in no queue where it belongs."""
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    desk.bounds[0] = max(desk.bounds[0], desk.rows[row].key)
    enqueue(desk, row, desk.rows[row].last)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    file_row(desk, row)
    plan_exit(desk, row, slot)


@kernel
def leave(desk: Desk, row: int) -> None:
    dequeue(desk, row)


@kernel
def serve(desk: Desk, slot: int) -> None:
    first = begin_serving(desk)
    for m in desk.order:
        if desk.panel[m].reach <= 0.0:  # those without evidence are last in the order
            break
        if room(desk, m) > 0:
            take_turn(desk, m, slot, desk.panel[m].price)
    plan_exits(desk, first, slot)


@dataclass(frozen=True)
class Greedy(Policy):
    """Algorithm 1 of the paper.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Greedy())
    >>> s.arrive([Item("a", weight=2), Item("b", weight=8)])
    >>> [(a.item, a.labeler, round(a.gain, 3)) for a in s.assign()]
    [('b', 'ann', 4.678), ('b', 'bob', 0.518)]
    """

    name: ClassVar[str] = "greedy"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
    per_row: ClassVar[tuple[str, ...]] = ()
