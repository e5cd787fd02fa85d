"""Baselines: everyone, fixed overlap, round-robin, random. Competences play no part in them.

They share the number of labels that an item is to get, and when it has enough: a row leaves with
`overlap` labels, or with fewer if no eligible labeler is left. Labelers go in panel order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from venire.errors import InputError
from venire.paper import utility
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import (
    EXHAUSTED,
    OUTSTANDING,
    OVERLAP,
    POOLED,
    ROWS,
    SETTING,
    TURN,
    Desk,
    drop_from_pool,
    put_in_pool,
    room,
    touch,
)
from venire.scheduling.kernel.queues import (
    begin_serving,
    dequeue,
    enqueue,
    make_for_served,
    make_turn,
    move,
    release,
)
from venire.scheduling.kernel.rows import eligible_count, may_take, set_due
from venire.tools.compiling import inlined, kernel
from venire.tools.draws import below

#: A turn takes rows that score above this: all.
NONE: Final = -1e300

#: How often a row is drawn before the rows are counted for which the labeler is eligible.
TRIES: Final = 16

residual = inlined(utility.residual)
gain = inlined(utility.gain)


@inlined
def set_target(desk: Desk, row: int) -> None:
    """Set the target of a row: the overlap, or all eligible labelers if they are fewer.

    Those who are away do not count, unless the row has no label and nobody is present: it waits.
    """
    possible = desk.rows[row].labels + eligible_count(desk, row, True)
    if possible == 0:
        possible = eligible_count(desk, row, False)
    desk.rows[row].target = min(desk.meta[SETTING], possible)


@inlined
def satisfied(desk: Desk, row: int) -> bool:
    """Whether the row has, or will have, its target of labels."""
    enough: bool = desk.rows[row].labels >= desk.rows[row].target
    return enough


@inlined
def plan_exit(desk: Desk, row: int, slot: int) -> None:
    reason = OVERLAP if desk.rows[row].labels >= desk.meta[SETTING] else EXHAUSTED
    set_due(desk, row, slot, reason)


@inlined
def take(desk: Desk, labeler: int, row: int, slot: int) -> None:
    """Assign the row to the labeler. The gain is recorded; these policies do not use it."""
    value = residual(desk.rows[row].weight, desk.rows[row].evidence)
    delay = slot - desk.rows[row].last
    gained = gain(value, desk.panel[labeler].reach, delay)
    touch(desk, row, labeler, slot, gained - desk.panel[labeler].price)


@kernel
def leave_queue(desk: Desk, row: int) -> None:
    dequeue(desk, row)


@dataclass(frozen=True)
class OverlapPolicy(Policy):
    """A policy that gives every item the same number of labels."""

    overlap: int = 3
    per_row: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.overlap < 1:
            raise InputError(f"got an overlap of {self.overlap}, expected at least 1 label an item")

    def settings(self) -> tuple[int, ...]:
        return (self.overlap,)


# fixed overlap: queues by the number of labels


@inlined
def by_labels(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    return float(rank)


@inlined
def bound_by_labels(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return float(rank)


@inlined
def refile_by_labels(desk: Desk, row: int, slot: int) -> None:
    if satisfied(desk, row):
        release(desk, row)
        plan_exit(desk, row, slot)
    else:
        move(desk, row, -desk.rows[row].labels)


take_least_labelled = make_turn(by_labels, bound_by_labels, take, refile_by_labels)


@kernel
def enter_by_labels(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    desk.rows[row].key = 0.0
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    else:
        enqueue(desk, row, -desk.rows[row].labels)


@kernel
def serve_by_labels(desk: Desk, slot: int) -> None:
    begin_serving(desk)
    for m in range(len(desk.panel)):
        if room(desk, m) > 0:
            take_least_labelled(desk, m, slot, NONE)


@dataclass(frozen=True)
class FixedOverlap(OverlapPolicy):
    """Every item gets `overlap` labels, the least labelled first.

    What labelling platforms do by default: each labeler takes the item with the fewest labels, the
    earliest arrival among equals.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=FixedOverlap(2))
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('b', 'bob')]
    """

    name: ClassVar[str] = "fixed-overlap"
    built: ClassVar[Kernels] = compiled(enter_by_labels, leave_queue, serve_by_labels)


# round-robin: one queue, by the turn


@inlined
def by_turn(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    key: float = desk.rows[row].key
    return key


@inlined
def bound_by_turn(desk: Desk, labeler: int, rank: int, slot: int) -> float:
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
def refile_by_turn(desk: Desk, row: int, slot: int) -> None:
    if satisfied(desk, row):
        release(desk, row)
        plan_exit(desk, row, slot)
    else:
        move(desk, row, 0)


take_next = make_turn(by_turn, bound_by_turn, take_and_queue, refile_by_turn)


@kernel
def enter_by_turn(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    else:
        if desk.rows[row].key == 0.0:
            to_the_back(desk, row)
        enqueue(desk, row, 0)


@kernel
def serve_by_turn(desk: Desk, slot: int) -> None:
    begin_serving(desk)
    for m in range(len(desk.panel)):
        if room(desk, m) > 0:
            take_next(desk, m, slot, NONE)


@dataclass(frozen=True)
class RoundRobin(OverlapPolicy):
    """Items take turns until each has `overlap` labels.

    Each labeler takes the item that has waited longest since its last turn; an item that was
    assigned goes to the back of the queue.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=RoundRobin(2))
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('b', 'bob')]
    """

    name: ClassVar[str] = "round-robin"
    built: ClassVar[Kernels] = compiled(enter_by_turn, leave_queue, serve_by_turn)


# random: a pool


@kernel
def enter_pool(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
        return
    put_in_pool(desk, row)


@kernel
def leave_pool(desk: Desk, row: int) -> None:
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
def serve_at_random(desk: Desk, slot: int) -> None:
    for m in range(len(desk.panel)):
        while room(desk, m) > 0 and desk.meta[POOLED] > 0:
            begin_serving(desk)
            row = draw_row(desk, m, slot)
            if row < 0:
                break
            take(desk, m, row, slot)
            if satisfied(desk, row):
                leave_pool(desk, row)
                plan_exit(desk, row, slot)


@dataclass(frozen=True)
class Random(OverlapPolicy):
    """Items at random until each has `overlap` labels.

    Each labeler draws uniformly among the outstanding items that it may label and that need
    labels. The draws are a function of the seed, the slot and the labeler.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Random(overlap=1, seed=7))
    >>> s.arrive([Item("a"), Item("b")])
    >>> sorted(a.item for a in s.assign())
    ['a', 'b']
    """

    seed: int = 0
    name: ClassVar[str] = "random"
    built: ClassVar[Kernels] = compiled(enter_pool, leave_pool, serve_at_random)

    def settings(self) -> tuple[int, ...]:
        return (self.overlap, self.seed)


# everyone: no queue; each labeler knows how far it has come


@inlined
def plan_exit_if_satisfied(desk: Desk, row: int, slot: int) -> None:
    if satisfied(desk, row):
        plan_exit(desk, row, slot)


plan_exits = make_for_served(plan_exit_if_satisfied)


@kernel
def enter_for_all(desk: Desk, row: int, slot: int) -> None:
    set_target(desk, row)
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    elif row < desk.meta[TURN]:  # it comes back, and some labelers are past it
        for m in range(len(desk.panel)):
            desk.panel[m].pointer = min(desk.panel[m].pointer, row)


@kernel
def leave_nothing(desk: Desk, row: int) -> None:
    """Nothing to remove: no queue is kept."""


@kernel
def serve_in_order(desk: Desk, slot: int) -> None:
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
    """Everyone labels everything, first come, first served: the most labels that can be had.

    Each labeler works through the items in order of arrival, up to its capacity in each slot; an
    item leaves when all eligible labelers have labelled it. When items arrive faster than the
    slowest labeler works, the queue grows without bound.

    >>> from venire import Item, Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.7, capacity=2)]
    >>> s = Scheduler(panel, classes=["spam", "ok"], policy=Everyone())
    >>> s.arrive([Item("a"), Item("b")])
    >>> [(a.item, a.labeler) for a in s.assign()]
    [('a', 'ann'), ('a', 'bob'), ('b', 'bob')]
    """

    name: ClassVar[str] = "everyone"
    built: ClassVar[Kernels] = compiled(enter_for_all, leave_nothing, serve_in_order)
    per_row: ClassVar[tuple[str, ...]] = ()

    def settings(self) -> tuple[int, ...]:
        """An overlap that is never reached."""
        return (2**31,)
