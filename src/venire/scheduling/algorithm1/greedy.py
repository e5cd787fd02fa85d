"""Algorithm 1: the greedy schedule (paper, section 3.1).

In each slot the labelers go in decreasing competence; each takes the outstanding item that it
may label of the largest gain, if that gain is positive; then an item leaves if no labeler that
it could still have gives a positive gain in the next slot or later (the paper: in this slot or
later, which is over). Ties go to the earliest arrival, then to the lowest index. A labeler that
finds nothing does not end the slot for the lesser ones (the paper's `Break` does). For both see
docs/errata.md, 8 and 3.

Where labels cost money, a label must gain more than its price, and labelers go in increasing price
of evidence (`by_merit` in verdicts.py): the dear ones come last, for what the cheap ones leave.

An assignment costs at most the number of queues (see gain.py: one for each slot in which a
waiting item got its last label; the largest residual bounds how far back it is worth looking) plus
the logarithm of their size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.algorithm1.build import compiled
from venire.scheduling.algorithm1.exit_wheel import set_due
from venire.scheduling.algorithm1.gain import bound, file_row, refile_at, score, take
from venire.scheduling.algorithm1.labeler_turn import begin_serving, make_for_served, make_turn
from venire.scheduling.algorithm1.ready_queues import dequeue
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.state.desk import EXHAUSTED, NO_GAIN, Desk, room
from venire.scheduling.state.eligibility import best_gain, eligible_count
from venire.tools.compiling import inlined, kernel

__all__ = ["Greedy"]

FAR = 2**62


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
