"""Fixed overlap: every item gets the same number of labels, the least labelled first.

What labelling platforms do by default. Labelers go in panel order; each takes the item with
the fewest labels, the earliest arrival among equals; an item leaves with `overlap` labels, or with
fewer if no eligible labeler is left. Competences and delays play no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.algorithm1.build import compiled
from venire.scheduling.algorithm1.labeler_turn import begin_serving, enqueue, make_turn, move
from venire.scheduling.algorithm1.ready_queues import dequeue, release
from venire.scheduling.base import Kernels
from venire.scheduling.policies.baselines.overlap import (
    OverlapPolicy,
    plan_exit,
    satisfied,
    set_target,
    take,
)
from venire.scheduling.state.desk import Desk, room
from venire.tools.compiling import inlined, kernel

__all__ = ["FixedOverlap"]

NONE = -1e300


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    return float(rank)


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return float(rank)


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    if satisfied(desk, row):
        release(desk, row)
        plan_exit(desk, row, slot)
    else:
        move(desk, row, -desk.rows[row].labels)


take_turn = make_turn(score, bound, take, refile)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    desk.rows[row].key = 0.0
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    else:
        enqueue(desk, row, -desk.rows[row].labels)


@kernel
def leave(desk: Desk, row: int) -> None:
    dequeue(desk, row)


@kernel
def serve(desk: Desk, slot: int) -> None:
    begin_serving(desk)
    for m in range(len(desk.panel)):
        if room(desk, m) > 0:
            take_turn(desk, m, slot, NONE)


@dataclass(frozen=True)
class FixedOverlap(OverlapPolicy):
    """Every item gets `overlap` labels, the least labelled first.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=FixedOverlap(2))
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('b', 'bob')]
    """

    name: ClassVar[str] = "fixed-overlap"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
