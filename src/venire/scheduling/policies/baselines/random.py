"""Random: each labeler gets outstanding items at random until each item has its labels.

Labelers go in panel order; each draws uniformly among the outstanding items that it may label
and that need labels. The draws are a function of the seed, the slot and the labeler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.algorithm1.build import compiled
from venire.scheduling.algorithm1.labeler_turn import begin_serving
from venire.scheduling.base import Kernels
from venire.scheduling.policies.baselines.overlap import (
    OverlapPolicy,
    plan_exit,
    satisfied,
    set_target,
    take,
)
from venire.scheduling.state.desk import POOLED, SETTING, Desk, room
from venire.scheduling.state.eligibility import may_take
from venire.scheduling.state.pool import drop_from_pool, put_in_pool
from venire.tools.compiling import inlined, kernel
from venire.tools.draws import below

__all__ = ["Random"]

TRIES = 16


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
        return
    put_in_pool(desk, row)


@kernel
def leave(desk: Desk, row: int) -> None:
    drop_from_pool(desk, row)


@inlined
def draw_row(desk: Desk, labeler: int, slot: int) -> int:
    """Draw a row for the labeler: a few tries, then the k-th of those for which it is eligible."""
    n = desk.meta[POOLED]
    seed = desk.meta[SETTING + 1] + desk.panel[labeler].load
    for attempt in range(TRIES):
        row = desk.pool[below(seed, slot, labeler * TRIES + attempt, n)]
        if may_take(desk, row, labeler):
            return row
    count = 0
    for i in range(n):
        if may_take(desk, desk.pool[i], labeler):
            count += 1
    if count == 0:
        return -1
    k = below(seed, slot, labeler * TRIES + TRIES - 1, count)
    for i in range(n):
        if may_take(desk, desk.pool[i], labeler):
            if k == 0:
                return desk.pool[i]
            k -= 1
    return -1


@kernel
def serve(desk: Desk, slot: int) -> None:
    for m in range(len(desk.panel)):
        while room(desk, m) > 0 and desk.meta[POOLED] > 0:
            begin_serving(desk)
            row = draw_row(desk, m, slot)
            if row < 0:
                break
            take(desk, m, row, slot)
            if satisfied(desk, row):
                leave(desk, row)
                plan_exit(desk, row, slot)


@dataclass(frozen=True)
class Random(OverlapPolicy):
    """Items at random until each has `overlap` labels.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Random(overlap=1, seed=7))
    >>> s.arrive([Item("a"), Item("b")])
    >>> sorted(a.item for a in s.assign())
    ['a', 'b']
    """

    seed: int = 0
    name: ClassVar[str] = "random"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)

    def settings(self) -> tuple[int, ...]:
        """The overlap and the seed."""
        return (self.overlap, self.seed)
