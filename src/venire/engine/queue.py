"""The queue of a live stream: items, labels and labelers come and go.

The simulator knows its whole stream beforehand and allocates its arrays once. The engine does not,
so its queue grows as items arrive, keeps track of labels in flight, and drops the rows of items
that have left. Everything here is a number; the registry knows the names.

**Objects that the garbage collector need not look at.**

A full collection goes through every object that Python tracks, and stops all threads meanwhile:
150 ms with 300,000 open items. Items hold names and numbers, nothing that leads back to them, so
they are in no cycle; untracked, they are still freed when the last reference goes. The same holds
for the lists of them. Why `gc.freeze` does not do: docs/defense-of-design.md.

**Whether anybody is still expected: who comes once does not tell when the last one has.**

A labeler who leaves says so (`Scheduler.leave`), and one who came again and again may do so after
a night or a holiday. But in a crowd of people who give one label each, everybody is on the panel
for ever, and an item would wait for people who never come. So if at least 20 labelers came, and
nearly nobody (one in 20) ever gave a label in a later slot than its last, and if nobody has come
for 100 slots and ten times as long as ever before, then nobody is expected, and items that have
waited as long leave with what they have.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from venire.estimators.voices import N_TONES
from venire.events import Assigned, Event, Joined, Observed
from venire.model import LabelerId
from venire.scheduling.base import PER_ROW, Belief, Kernels, Policy
from venire.scheduling.kernel.build import put_to_work, refile_all
from venire.scheduling.kernel.desk import (
    BARRED,
    EDGES,
    FREE_SHELF,
    GONE,
    GROUPS,
    LABELER,
    OUTSTANDING,
    PENDING,
    POOLED,
    ROWS,
    TOUCHES,
    Desk,
    add_edge,
    add_group,
    allocate,
    grow_touches,
    link,
)
from venire.scheduling.kernel.rows import look_up, never_due_row, revalue
from venire.scheduling.kernel.verdicts import believe, decide_row, depart, let_go_row
from venire.tools.arrays import Bools, Ints

#: How many labelers must have come, and of how many one may have come again.
CAME, ONE_IN = 20, 20

#: The least slots of silence, and how often the longest one so far.
SILENCE: Final = 100
TIMES: Final = 10


class Visits:
    """When labelers came, as far as the log tells.

    >>> visits = Visits()
    >>> from venire.model import Label
    >>> for n in range(30):
    ...     visits.note([Observed(n, Label("post", f"worker-{n}", 0), False)], {f"worker-{n}": n})
    >>> visits.patience(60), visits.patience(130)
    (None, 100)
    """

    def __init__(self) -> None:
        self.labelled = np.empty(0, np.int64)  # the slot of the last label of each labeler, or -1
        self.came = self.again = self.last = self.longest = 0

    def note(self, events: Iterable[Event], number: Mapping[LabelerId, int]) -> None:
        for event in events:
            if not isinstance(event, Observed | Assigned | Joined):
                continue
            self.longest = max(self.longest, event.slot - self.last)
            self.last = event.slot
            if isinstance(event, Observed):
                self._label(number[event.label.labeler], event.slot)
            elif isinstance(event, Assigned) and event.asked is None:
                self.again += len(event.assignments)  # they are called, and need not come

    def _label(self, m: int, slot: int) -> None:
        if m >= len(self.labelled):
            more = np.full(max(m + 1, 2 * len(self.labelled)) - len(self.labelled), -1)
            self.labelled = np.concatenate([self.labelled, more])
        before = self.labelled[m]
        self.came += int(before < 0)
        self.again += int(0 <= before < slot)
        self.labelled[m] = slot

    def patience(self, slot: int) -> int | None:
        """How long an item waits, if nobody is expected any more; None: somebody is."""
        most = max(SILENCE, TIMES * self.longest)
        over = self.came >= CAME and self.again * ONE_IN <= self.came
        return most if over and slot - self.last >= most else None

    # state

    def state(self) -> list[int]:
        return [self.came, self.again, self.last, self.longest]

    def restore(self, counts: Iterable[int], labelled: NDArray[Any]) -> None:
        self.came, self.again, self.last, self.longest = counts
        self.labelled = labelled.astype(np.int64)


T = TypeVar("T")

_CPYTHON: Final = platform.python_implementation() == "CPython"

if _CPYTHON:
    _untrack = ctypes.pythonapi.PyObject_GC_UnTrack
    _untrack.argtypes, _untrack.restype = [ctypes.py_object], None


def untracked(thing: T) -> T:
    """The same object, no longer tracked by the collector; it must be in no cycle.

    >>> from venire import Item
    >>> gc.is_tracked(untracked(Item("post-1")))
    False
    """
    if _CPYTHON and gc.is_tracked(thing):
        _untrack(thing)
    return thing


#: Where a row is filed: links that may differ between equal states.
FILING = (
    "child", "sibling", "before", "shelf", "settled", "later", "sooner", "place", "paid", "stand",
)  # fmt: skip

#: Queues shorter than this are never tidied.
LEAST_ROWS = 1024


class Queue:
    """The arrays of a stream, the policy at work on them, and what is believed of the labelers."""

    def __init__(self, capacity: Sequence[int], classes: int, policy: Policy, c: float) -> None:
        self.desk: Desk = allocate(64, 256, len(capacity), classes, 8, 64, per_row=())
        self.c = c
        self.costs: NDArray[np.float64] | None = None
        self.policy = policy
        self.belief: Belief | None = None
        self.capacity = np.array(capacity, np.int64)
        self.prices = np.zeros(len(capacity))
        self.use(policy)

    def use(self, policy: Policy) -> None:
        """Put a policy to work, from the next `refresh` on; see `put_to_work` for its memory."""
        self.desk = put_to_work(self.desk, policy, self.policy)
        self.policy = policy
        self.kernels: Kernels = policy.kernels()
        self.stale = True

    def believe(self, belief: Belief | None) -> None:
        """Believe this, from the next `refresh` on."""
        self.belief = belief
        self.stale = True

    def refresh(self, slot: int) -> None:
        """File every row again if policy, panel or belief changed."""
        if self.stale:
            self.desk.panel["capacity"] = self.capacity
            self.desk.panel["price"] = self.prices
            believe(self.desk, self.belief, self.c, self.costs)
            refile_all(self.desk, self.kernels, slot)
            self.stale = False

    # labelers

    def add_labeler(self) -> int:
        """Make room for one more labeler; it is away until it gets a capacity."""
        n = len(self.desk.panel)
        panel = np.zeros(n + 1, LABELER)
        panel[:n] = self.desk.panel
        panel["edge"][n] = -1
        self.desk = self.desk._replace(
            panel=panel,
            order=np.arange(n + 1, dtype=np.int32),
            votes=np.zeros((n + 1, *self.desk.votes.shape[1:])),
            pairs=np.zeros((n + 1, *self.desk.pairs.shape[1:])),
        )
        self.capacity = np.append(self.capacity, 0)
        self.prices = np.append(self.prices, 0.0)
        self.stale = True
        return n

    def set_capacity(self, labeler: int, capacity: int) -> None:
        self.capacity[labeler] = capacity
        self.stale = True

    def hear_tones(self) -> None:
        """From now on answers may have a tone, which is in what they say."""
        labelers, answers, classes = self.desk.votes.shape
        if answers == classes:
            self.desk = self.desk._replace(votes=np.zeros((labelers, N_TONES * classes, classes)))
            self.stale = True

    def charge(self, prices: NDArray[np.float64]) -> None:
        """What a label of each labeler costs from now on, in slots of delay."""
        self.stale |= not np.array_equal(prices, self.prices)
        self.prices = prices

    def add_group(self, members: Iterable[int]) -> int:
        chosen = list(members)
        self._make_room_for_edges(len(chosen))
        if self.desk.meta[GROUPS] == len(self.desk.groups):
            self.desk = self.desk._replace(groups=_doubled(self.desk.groups, -1))
        return add_group(self.desk, chosen)

    def join_group(self, group: int, labeler: int) -> None:
        self._make_room_for_edges(1)
        add_edge(self.desk, group, labeler)
        self.stale = True

    def _make_room_for_edges(self, more: int) -> None:
        while self.desk.meta[EDGES] + more > len(self.desk.edges):
            self.desk = self.desk._replace(edges=_doubled(self.desk.edges))

    # items

    def add_row(self, weight: float, group: int, excluded: Iterable[int], slot: int) -> int:
        if self.desk.meta[ROWS] == len(self.desk.rows):
            self._make_room_for_rows()
        row = int(self.desk.meta[ROWS])
        self.desk.meta[ROWS] += 1
        r = self.desk.rows[row]
        r["weight"], r["group"], r["state"] = weight, group, OUTSTANDING
        r["arrival"] = r["last"] = slot
        for m in excluded:
            self.link(row, m, slot, BARRED)
        self.kernels.enter(self.desk, row, slot)
        return row

    def bar(self, row: int, labeler: int, slot: int) -> None:
        self.link(row, labeler, slot, BARRED)
        self.stale = True

    def in_group(self, row: int, labeler: int) -> bool:
        group, edges = self.desk.rows["group"][row], self.desk.edges
        e = self.desk.groups["edge"][group]
        while e >= 0 and edges["labeler"][e] != labeler:
            e = edges["of_group"][e]
        return bool(group == 0 or e >= 0)

    def outstanding(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.desk.rows["state"][: self.desk.meta[ROWS]] == OUTSTANDING)

    def in_flight(self) -> list[tuple[int, int]]:
        held = self.desk.touches[: self.desk.meta[TOUCHES]]
        held = held[held["said"] == PENDING]
        return list(zip(held["row"].tolist(), held["labeler"].tolist(), strict=True))

    # a slot

    def serve(self, slot: int, asked: Sequence[int] | None = None, ahead: int = 0) -> range:
        """Hand out work to everyone, or one item to each who asked; the touches made.

        Everyone has the room that is left of its capacity in this slot; those who asked have
        the room that is left beside their labels in flight, and `ahead` more.
        """
        panel = self.desk.panel
        if asked is None:
            return self.serve_room(slot, panel["capacity"] - panel["load"])
        wanted = np.bincount(np.asarray(asked, np.int64), minlength=len(panel))
        room = panel["capacity"] + ahead * (panel["capacity"] > 0) - panel["inflight"]
        return self.serve_room(slot, np.minimum(wanted, room))

    def serve_room(self, slot: int, room: NDArray[np.int64]) -> range:
        """Hand out at most this much to each labeler."""
        panel, load, gauges = self.desk.panel, self.desk.panel["load"].copy(), self.desk.gauges
        room = room.clip(0)  # as in the compiled run: a policy may look at the load
        most = room.clip(0, int(self.desk.meta[ROWS]))  # nobody labels a row twice
        self._make_room_for_touches(int(most.sum(dtype=np.int64)))
        first, before = int(self.desk.meta[TOUCHES]), gauges.copy()
        full = panel["capacity"] - room
        panel["load"] = full
        self.kernels.serve(self.desk, slot)
        panel["load"] = load + (panel["load"] - full)
        made = range(first, int(self.desk.meta[TOUCHES]))
        if not made:  # a call that hands out nothing leaves no trace
            gauges[:] = before
        return made

    def settle(self, slot: int) -> NDArray[np.int32]:
        """End the slot; the rows that leave, lowest first, each decided."""
        gone = np.sort(self.desk.gone[: self.kernels.settle(self.desk, slot)])
        depart(self.desk, gone)
        self.desk.panel["load"] = self.desk.panel["inflight"]
        return gone

    def withdraw(self, row: int) -> None:
        """Withdraw a row, whatever its labels say."""
        self.kernels.leave(self.desk, row)
        never_due_row(self.desk, row)
        self.desk.rows["state"][row] = GONE
        let_go_row(self.desk, row)

    # labels

    def find(self, row: int, labeler: int) -> int:
        k = int(self.desk.rows["head"][row])
        while k >= 0 and self.desk.touches["labeler"][k] != labeler:
            k = int(self.desk.touches["next"][k])
        return k

    def look_up(self, labels: Ints) -> tuple[int, int]:
        """The place of the first label to refuse, and what its labeler said before; or -1.

        BARRED instead of that: it may not label the row. There is one line for each label: row,
        labeler, class, and 0 (see scheduling/kernel/rows.py).
        """
        held = np.empty(len(labels), np.int64)
        place = int(look_up(self.desk, labels, held))
        return place, int(held[place])

    def hear(self, labels: Ints, slot: int) -> Bools:
        """Take labels that `look_up` did not refuse; which of them are new.

        Some were in flight, some were not asked for, and some are repeated.
        """
        fresh = np.empty(len(labels), np.bool_)
        self._make_room_for_touches(len(labels))
        self.kernels.hear(self.desk, labels, slot, fresh)
        return fresh

    def release(self, touch: int, slot: int, bar: bool) -> None:
        """A label in flight will not come; with `bar` the labeler does not get the row again."""
        row, labeler = int(self.desk.touches["row"][touch]), self.desk.touches["labeler"][touch]
        following = self.desk.touches["next"][touch]
        if self.desk.rows["head"][row] == touch:
            self.desk.rows["head"][row] = following
        else:
            k = int(self.desk.rows["head"][row])
            while self.desk.touches["next"][k] != touch:
                k = int(self.desk.touches["next"][k])
            self.desk.touches["next"][k] = following
        self.desk.touches[touch]["row"] = -1
        self.desk.touches[touch]["said"] = BARRED
        self.desk.panel["inflight"][labeler] -= 1
        self.desk.panel["load"][labeler] -= 1
        if bar:
            self.link(row, int(labeler), slot, BARRED)
        self.revalue(row, slot)

    def decide(self, row: int) -> tuple[int, float]:
        """What the labels of the row say now: a class (-1: none) and its confidence."""
        decide_row(self.desk, row)
        return int(self.desk.rows["verdict"][row]), float(self.desk.rows["confidence"][row])

    def labels_of(self, row: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Who has labelled the row, and what they said; the newest first."""
        touches, found = self.desk.touches, []
        k = int(self.desk.rows["head"][row])
        while k >= 0:
            if touches["said"][k] >= 0:
                found.append((int(touches["labeler"][k]), int(touches["said"][k])))
            k = int(touches["next"][k])
        return tuple(m for m, _ in found), tuple(said for _, said in found)

    def columns(self) -> Iterator[NDArray[np.generic]]:
        """Everything that defines the state, column by column; not how rows happen to be filed.

        The verdict of a row that has not left is not part of it: reading it writes it.
        """
        desk = self.desk
        rows, touches = desk.rows[: desk.meta[ROWS]], desk.touches[: desk.meta[TOUCHES]]
        known = ("verdict", "confidence")
        for name in known:
            yield np.where(rows["state"] == OUTSTANDING, 0, rows[name])
        for records, passing in (
            (rows, FILING + known),
            (touches, ()),
            (desk.panel, ("mark", "pointer")),
        ):
            for name in records.dtype.names or ():
                if name not in passing:
                    yield records[name]
        yield desk.pool[: desk.meta[POOLED]]
        yield desk.gauges

    def give(self, row: int, labeler: int, slot: int, gain: float) -> range:
        """Give the row to a labeler, who must not have it yet; the touch made."""
        touch, panel = int(self.desk.meta[TOUCHES]), self.desk.panel
        self.link(row, labeler, slot, PENDING)
        self.desk.touches["gain"][touch] = gain
        panel["inflight"][labeler] += 1
        panel["load"][labeler] += 1
        self.revalue(row, slot)
        return range(touch, touch + 1)

    def link(self, row: int, labeler: int, slot: int, said: int) -> None:
        """Note that the labeler has touched the row: PENDING, BARRED, or the class it said."""
        self._make_room_for_touches(1)
        link(self.desk, row, labeler, slot, said)

    def revalue(self, row: int, slot: int) -> None:
        """File the row by what its labels are worth now."""
        if self.desk.rows["state"][row] != OUTSTANDING:
            return
        self.kernels.leave(self.desk, row)
        revalue(self.desk, row)
        self.kernels.enter(self.desk, row, slot)

    # room

    def _make_room_for_touches(self, more: int) -> None:
        needed = self.desk.meta[TOUCHES] + more
        if needed > len(self.desk.touches):
            self.desk = grow_touches(self.desk, max(2 * len(self.desk.touches), int(needed)))

    def _make_room_for_rows(self) -> None:
        """Double the room; every row stays filed."""
        desk = self.desk
        old, own = len(desk.rows), self.policy.per_row
        fresh = allocate(2 * old, 0, 0, per_row=own)
        fresh.rows[:old], fresh.pool[:old] = desk.rows, desk.pool
        fresh.shelves[: len(desk.shelves)] = desk.shelves
        for name in own:
            getattr(fresh, name)[: len(getattr(desk, name))] = getattr(desk, name)
        # the new shelves are linked among themselves: hang the old free list behind them
        fresh.shelves["next"][-1] = desk.meta[FREE_SHELF]
        desk.meta[FREE_SHELF] = len(desk.shelves)
        self.desk = desk._replace(**_by_rows(fresh))

    def tidy(self, groups: Iterable[int]) -> tuple[NDArray[np.int64], dict[int, int]] | None:
        """Drop the rows of items that have left, if that is at least half of all.

        `groups` are kept even if no row is in them. Returns the old numbers of the rows that
        stay, and the new numbers of their groups.
        """
        rows, touches = self.desk.rows[: self.desk.meta[ROWS]], self.desk.touches
        stay = self.outstanding()
        if len(rows) < LEAST_ROWS or 2 * len(stay) > len(rows):
            return None
        kept = np.flatnonzero(np.isin(touches["row"][: self.desk.meta[TOUCHES]], stay))
        room = max(LEAST_ROWS, 2 * len(stay))
        fresh = allocate(room, 2 * len(kept) + 256, 0, per_row=self.policy.per_row)
        fresh.rows[: len(stay)] = rows[stay]
        fresh.touches[: len(kept)] = touches[kept]
        number = np.full(len(touches) + 1, -1, np.int32)
        number[kept] = np.arange(len(kept))
        fresh.rows["head"][: len(stay)] = number[rows["head"][stay]]
        fresh.touches["row"][: len(kept)] = np.searchsorted(stay, touches["row"][kept])
        fresh.touches["next"][: len(kept)] = number[touches["next"][kept]]
        pooled = self.desk.pool[: self.desk.meta[POOLED]]
        fresh.pool[: len(pooled)] = np.searchsorted(stay, pooled)
        self.desk.meta[ROWS], self.desk.meta[TOUCHES] = len(stay), len(kept)
        self.desk = self.desk._replace(touches=fresh.touches, **_by_rows(fresh))
        self.stale = True
        return stay, self._tidy_groups([0, *groups])

    def _tidy_groups(self, kept: list[int]) -> dict[int, int]:
        """Keep these groups, and those that some row is in; the new number of each."""
        desk = self.desk
        rows, edges = desk.rows[: desk.meta[ROWS]], desk.edges[: desk.meta[EDGES]]
        used = np.unique(np.append(rows["group"], kept))
        rows["group"] = np.searchsorted(used, rows["group"])
        members = [edges["labeler"][edges["group"] == g] for g in used[1:]]
        desk.panel["edge"] = desk.groups["edge"] = -1
        desk.meta[GROUPS], desk.meta[EDGES] = 1, 0
        for chosen in members:
            add_group(desk, chosen.tolist())
        return {int(g): k for k, g in enumerate(used)}


def _by_rows(desk: Desk) -> dict[str, NDArray[Any]]:
    names = ("rows", "shelves", "pool", "gone", "chosen", *PER_ROW)
    return {name: getattr(desk, name) for name in names}


def _doubled(records: NDArray[np.void], fill: int = 0) -> NDArray[np.void]:
    fresh = np.zeros(2 * len(records), records.dtype)
    for name in (records.dtype.names or ()) if fill else ():
        fresh[name] = fill
    fresh[: len(records)] = records
    return fresh
