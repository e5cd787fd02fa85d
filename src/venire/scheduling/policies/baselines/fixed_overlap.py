"""Fixed overlap: every item gets the same number of labels, the least labelled first.

What labelling platforms do by default. Labelers go in panel order; each takes the item with
the fewest labels, the earliest arrival among equals; an item leaves with `overlap` labels, or
sooner if no more labelers may have it. Nobody's competence and no delay is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.errors import InputError
from venire.scheduling.algorithm1.exit_wheel import make_settle
from venire.scheduling.algorithm1.incoming_labels import Bools, Ints, make_hear
from venire.scheduling.algorithm1.labeler_turn import begin_serving, make_turn, move, shelve
from venire.scheduling.algorithm1.ready_queues import release, take_off
from venire.scheduling.algorithm1.run_slots import Stream, make_run
from venire.scheduling.algorithm1.verdicts import make_refile
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.policies.baselines.overlap import aim, plan_exit, satisfied, take
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
    aim(desk, row)
    desk.rows[row].key = 0.0
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    else:
        shelve(desk, row, -desk.rows[row].labels)


@kernel
def leave(desk: Desk, row: int) -> None:
    take_off(desk, row)


@kernel
def serve(desk: Desk, slot: int) -> None:
    begin_serving(desk)
    for m in range(len(desk.panel)):
        if room(desk, m) > 0:
            take_turn(desk, m, slot, NONE)


settle_slot = make_settle(leave)


@kernel
def settle(desk: Desk, slot: int) -> int:
    return settle_slot(desk, slot)


hear_all = make_hear(leave, enter)


@kernel
def hear(desk: Desk, labels: Ints, slot: int, fresh: Bools) -> int:
    return hear_all(desk, labels, slot, fresh)


file_rows = make_refile(enter)


@kernel
def file_all(desk: Desk, rows: Ints, slot: int) -> None:
    file_rows(desk, rows, slot)


run_slots = make_run(enter, serve, settle)


@kernel
def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
    return run_slots(desk, stream, start, stop)


@dataclass(frozen=True)
class FixedOverlap(Policy):
    """Every item gets `overlap` labels, the least labelled first.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=FixedOverlap(2))
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('b', 'bob')]
    """

    overlap: int = 3
    name: ClassVar[str] = "fixed-overlap"

    def __post_init__(self) -> None:
        if self.overlap < 1:
            raise InputError(f"got an overlap of {self.overlap}, expected at least 1 label an item")

    def kernels(self) -> Kernels:
        """Fixed overlap, compiled."""
        return Kernels(enter, leave, serve, settle, hear, run, file_all)

    def settings(self) -> tuple[int, ...]:
        """The overlap."""
        return (self.overlap,)
