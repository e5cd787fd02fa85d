"""Everyone labels everything, first come, first served: the most labels that can be had.

Each labeler works through the items in order of arrival, up to its capacity in each slot; an item
leaves when all eligible labelers have labelled it. When items arrive faster than the slowest
labeler works, the queue grows without bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.algorithm1.build import compiled
from venire.scheduling.algorithm1.labeler_turn import begin_serving, make_for_served
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.policies.baselines.overlap import plan_exit, satisfied, set_target, take
from venire.scheduling.state.desk import (
    OUTSTANDING,
    ROWS,
    TURN,
    Desk,
    room,
)
from venire.scheduling.state.eligibility import may_take
from venire.tools.compiling import inlined, kernel

__all__ = ["Everyone"]


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    elif row < desk.meta[TURN]:  # it comes back, and some labelers are past it
        for m in range(len(desk.panel)):
            desk.panel[m].pointer = min(desk.panel[m].pointer, row)


@inlined
def plan_exit_if_satisfied(desk: Desk, row: int, slot: int) -> None:
    if satisfied(desk, row):
        plan_exit(desk, row, slot)


plan_exits = make_for_served(plan_exit_if_satisfied)


@kernel
def leave(desk: Desk, row: int) -> None:
    """Nothing to remove: no queue is kept."""


@kernel
def serve(desk: Desk, slot: int) -> None:
    first = begin_serving(desk)
    for m in range(len(desk.panel)):
        row = desk.panel[m].pointer
        while room(desk, m) > 0 and row < desk.meta[ROWS]:
            outstanding = desk.rows[row].state == OUTSTANDING
            if outstanding and may_take(desk, row, m):
                take(desk, m, row, slot)
            row += 1
        desk.panel[m].pointer = row
        desk.meta[TURN] = max(desk.meta[TURN], row)
    plan_exits(desk, first, slot)


@dataclass(frozen=True)
class Everyone(Policy):
    """Everyone labels everything, in order of arrival.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7, capacity=2)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Everyone())
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('a', 'bob'), ('b', 'bob')]
    """

    name: ClassVar[str] = "everyone"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
    per_row: ClassVar[tuple[str, ...]] = ()

    def settings(self) -> tuple[int, ...]:
        """An overlap that is never reached."""
        return (2**31,)
