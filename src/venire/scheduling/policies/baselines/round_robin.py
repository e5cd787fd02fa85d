"""Round-robin: items take turns until each has its number of labels.

Labelers go in panel order; each takes the item that has waited longest since its last turn; an
item that was assigned goes to the back of the queue and leaves with `overlap` labels, or with fewer
if no eligible labeler is left.
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
from venire.scheduling.state.desk import TURN, Desk, room
from venire.tools.compiling import inlined, kernel

__all__ = ["RoundRobin"]

NONE = -1e300


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    key: float = desk.rows[row].key
    return key


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return 0.0  # keys are negative


@inlined
def to_the_back(desk: Desk, row: int) -> None:
    desk.meta[TURN] += 1
    desk.rows[row].key = -float(desk.meta[TURN])


@inlined
def take_and_queue(desk: Desk, labeler: int, row: int, slot: int) -> None:
    take(desk, labeler, row, slot)
    to_the_back(desk, row)


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    if satisfied(desk, row):
        release(desk, row)
        plan_exit(desk, row, slot)
    else:
        move(desk, row, 0)


take_turn = make_turn(score, bound, take_and_queue, refile)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    else:
        if desk.rows[row].key == 0.0:
            to_the_back(desk, row)
        enqueue(desk, row, 0)


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
class RoundRobin(OverlapPolicy):
    """Items take turns until each has `overlap` labels.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=RoundRobin(2))
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('b', 'bob')]
    """

    name: ClassVar[str] = "round-robin"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
