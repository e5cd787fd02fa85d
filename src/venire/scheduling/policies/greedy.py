"""Algorithm 1: the greedy schedule (paper, section 3.1), from top to bottom.

Numbers are lines of Algorithm 1 in the paper. In each slot

    8       the labelers go in decreasing competence (`desk.order`, see kernel/verdicts.py);
    9-17    each takes, up to its capacity, the outstanding item that it may label of the largest
            gain, if that gain is positive (`take_turn`);
    20      an item leaves if no labeler that it could still have gives a positive gain in the next
            slot or later (`plan_exit`; the paper: in this slot or later, which is over).

Ties go to the earliest arrival, then to the lowest index. A labeler that finds nothing does not end
the slot for the lesser ones (the paper's `Break` does). For both see docs/errata.md, 8 and 3. Where
labels cost money, a label must gain more than its price, and labelers go in increasing price of
evidence: the dear ones come last, for what the cheap ones leave.

**The gain** of one more label (paper, section 2, the incremental utility) is

    gain = a * x - d - c,   a = w exp(-E) the residual,  x = 1 - exp(-evidence) the labeler's
                            reach, d = slots since the last label, c = the price of the label

It is a line in x, and d depends on the slot of the last label alone. So items wait in queues by
that slot (their rank), each in order of a (their key), and only the first of each queue competes
for a labeler (kernel/queues.py). A rank later than the slot counts as no delay. The price of a
labeler is the same for all items: it changes none of this, only how much an item must gain by them
(the floor of a turn). An assignment costs at most the number of queues, one for each slot in which
a waiting item got its last label (the largest residual bounds how far back it is worth looking),
plus the logarithm of their size.

The set M(s, t) of those who may still label an item (line 7) is in kernel/rows.py, the loop over
slots (line 3) in simulation/run.py for a simulation and in the engine for a stream. Below, in the
order of a reading: `serve` is the slot, `take_turn` a labeler's turn, `plan_exit` the exit.
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

FAR: Final = 2**62

residual = inlined(utility.residual)
gain = inlined(utility.gain)


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    """The gain of giving this labeler a row of this rank, before its price."""
    return gain(desk.rows[row].key, desk.panel[labeler].reach, max(slot - rank, 0))


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    """No row of this rank, or of a lower one, gains more by this labeler, before its price."""
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
    """Find the first slot after which nobody gives a positive gain: a * x - c <= t + 1 - last."""
    span = best_gain(desk, row, desk.rows[row].key)
    due = desk.rows[row].last - 1 + (math.ceil(span) if span < FAR else FAR)
    reason = NO_GAIN if span > 0.0 or eligible_count(desk, row, False) > 0 else EXHAUSTED
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
        if desk.panel[m].reach <= 0.0:
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
