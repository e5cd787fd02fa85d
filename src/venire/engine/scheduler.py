"""The engine: one state machine, four verbs, no clock and no I/O.

    arrive(items)     items enter
    assign()          who labels what in this slot
    observe(labels)   labels come back
    close()           end of the slot: learn, decide who leaves, slot += 1

and, because labelers are people and programs: `release` (a label will not come), `join` and
`leave`; because streams are run by people: `withdraw` an item, `change` the settings. Every call
that changes anything appends one event to the log. The state is a fold over that log: a fresh
scheduler that replays it is in the same state, to the bit.

Labels in flight. An item that was given to a labeler is valued as if the label will come, and
revalued if it does not; it does not leave before it comes or is released. A labeler is busy
until then. A label counts from the slot in which it comes. A label for an item that has left
is late: it goes into the log, and into learning while that goes on, but changes no verdict.

A live clock. `advance(slot)` closes all slots before this one and writes down only those in
which something left, so that time in which nothing happens costs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from venire.engine.bounded_queue import BoundedClerk
from venire.engine.departed import Departed, Kept
from venire.engine.registry import Roll, changed
from venire.engine.replaying import follow
from venire.engine.settings import Panel
from venire.engine.snapshot import Captured, capture, unpack
from venire.errors import StateError
from venire.model import (
    Arrived,
    Assigned,
    Assignment,
    Bounds,
    Closed,
    Event,
    Exit,
    Item,
    ItemId,
    Label,
    Labeler,
    LabelerId,
    Observed,
    Released,
    Revision,
    Withdrawn,
)
from venire.scheduling.algorithm1.verdicts import check_c
from venire.scheduling.base import Learning, Policy
from venire.scheduling.policies.lookahead.policy import LookAhead
from venire.scheduling.state.desk import PENDING, REASONS

__all__ = ["Scheduler"]


#: After so many slots in which nothing was outstanding, the next ones are skipped.
QUIET: Final = 1000


class Scheduler(Panel):
    """Draws labelers for the items of a stream, slot by slot.

    Parameters
    ----------
    panel
        The labelers, by name or as `Labeler`.
    classes
        What a label may say. In a tie the later class wins.
    policy
        Who labels what; `LookAhead` by default, which earns the most over the regimes of
        `venire compare` (docs/policies.md).
    learning
        How the competences come to be known. Without it every labeler must have one.
    c
        The constant of the accuracy proxy.
    bounds
        What holds for every item, whatever the policy thinks of it.
    remember
        Of how many items that have left the ids are kept, for late labels; None: of all.
    revisions
        Whenever competences are learned anew, the verdicts of the last so many items that left
        are looked at again; those whose label is another now are in the log, as `revisions` of
        the slot's `Closed`. 0: what an item left with is never looked at again.

    Examples
    --------
    >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
    >>> s.arrive([Item("post-1", weight=2), Item("post-2", weight=1.5)])
    >>> for a in s.assign():
    ...     s.observe(Label(a.item, a.labeler, "spam"))
    >>> for e in s.close():
    ...     print(e.item, e.verdict.label, round(e.verdict.confidence, 3), e.reason)
    post-1 spam 0.9 no_gain
    post-2 spam 0.8 no_gain
    """

    def __init__(
        self,
        panel: Sequence[Labeler | LabelerId],
        classes: Sequence[Hashable],
        policy: Policy | None = None,
        learning: Learning | None = None,
        c: float = 1.0,
        bounds: Bounds | None = None,
        remember: int | None = None,
        revisions: int = 0,
    ) -> None:
        policy, bounds = policy or LookAhead(), bounds or Bounds()
        self._begin(panel, classes, policy, learning, c, bounds, remember, revisions)
        self._believe()
        self._books.refresh(self.slot)

    def _begin(
        self,
        panel: Sequence[Labeler | LabelerId],
        classes: Sequence[Hashable],
        policy: Policy,
        learning: Learning | None,
        c: float,
        bounds: Bounds,
        remember: int | None,
        revisions: int,
    ) -> None:
        check_c(c)
        self._departed = Departed(revisions)
        self._roll = Roll(panel, classes, remember)
        self.policy, self.learning, self.c = policy, learning, c
        self.slot = 0
        self.log: list[Event] = []
        self._events = 0
        self._quiet = 0  # slots since something was outstanding
        self._heard: list[tuple[int, int, int]] = []  # labels since competences were learned
        self._learner = self._new_learner()
        capacity = [who.capacity for who in self._roll.labelers]
        self._books = BoundedClerk(capacity, len(self.classes), self._active(), c, bounds)

    # the four verbs

    def arrive(self, items: Item | Iterable[Item]) -> None:
        """Items enter; they are outstanding until they leave."""
        batch = (items,) if isinstance(items, Item) else tuple(items)
        self._roll.check_new(batch)
        self._quiet = 0 if batch else self._quiet
        number = self._roll.number
        for item in batch:
            excluded = sorted(number[name] for name in item.excluded if name in number)
            group = self._group(item.eligible)
            self._roll.add(item, self._clerk.add_row(item.weight, group, excluded, self.slot))
        if batch:
            self._write(Arrived(self.slot, batch))

    def assign(self, asked: Iterable[LabelerId] | None = None) -> tuple[Assignment, ...]:
        """Hand out work for this slot; a second call hands out what became possible since.

        With `asked`, these labelers get at most one item each: those who pull their work when
        they are free. Their capacity is then how many they may hold at once.

        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.arrive([Item("post-1", weight=8), Item("post-2", weight=9)])
        >>> [(a.item, a.labeler) for a in s.assign(asked=["bob"])]
        [('post-2', 'bob')]
        """
        names = None if asked is None else tuple(asked)
        numbers = None if names is None else [self._roll.known(name) for name in names]
        made = self._clerk.serve(self.slot, numbers)
        touches = self._clerk.desk.touches
        work = tuple(
            Assignment(
                self.slot,
                self._roll.items[touches["row"][k]].id,
                self._roll.labelers[touches["labeler"][k]].id,
                float(touches["gain"][k]),
            )
            for k in made
        )
        if work:
            self._write(Assigned(self.slot, work, names))
        return work

    def observe(self, labels: Label | Iterable[Label]) -> None:
        """Labels come back, all of them or, if one is wrong, none.

        The same label again changes nothing; another one by the same labeler is an error. What
        was said of an item before it left is not remembered after that.
        """
        batch = (labels,) if isinstance(labels, Label) else tuple(labels)
        roll, slot = self._roll, self.slot
        codes = roll.coded(batch)
        heard = [code for code in codes if code[0] >= 0]
        fresh = iter(self._hear(batch, heard) if heard else ())
        new = [
            (label, code)
            for label, code in zip(batch, codes, strict=True)
            if (next(fresh) if code[0] >= 0 else roll.note_late(label))
        ]
        if self._learns():
            self._heard += [
                (roll.serials[row] if row >= 0 else roll.left[label.item], m, said)
                for label, (row, m, said, _) in new
            ]
        for label, (row, m, said, _) in new:
            if row < 0:
                self._departed.late(label.item, m, said)
        self._write(*[Observed(slot, label, row < 0) for label, (row, _, _, _) in new])

    def close(self) -> tuple[Exit, ...]:
        """End the slot: decide who leaves, learn if it is time, and go on to the next slot."""
        exits, revisions = self._settle(), self._learn()
        self._write(Closed(self.slot, exits, revisions))
        self._next_slot()
        return exits

    def advance(self, slot: int) -> tuple[Exit, ...]:
        """Close every slot before this one, and write down those in which something left.

        Or in which a verdict was revised.

        A thousand slots in which nothing was outstanding are closed one by one, since a policy
        may learn from them that little arrives; the rest of such a time is skipped.

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.advance(1_000_000_000)
        ()
        """
        left: list[Exit] = []
        while self.slot < slot:
            if self._skips_to(slot):
                continue
            exits, revisions = self._settle(), self._learn()
            if exits or revisions:
                self._write(Closed(self.slot, exits, revisions))
                left += exits
            self._next_slot()
        return tuple(left)

    def _skips_to(self, slot: int) -> bool:
        """Skip slots in which nothing can happen, if there are any before this one."""
        if self._roll.row or self._quiet < QUIET:
            return False
        until = self.learning.next_refresh(self.slot) if self.learning else None
        until = slot if until is None else min(slot, until)
        if until <= self.slot:
            return False
        self.slot = until
        self._use_active()
        return True

    # labels that do not come, and items that go

    def release(self, item: ItemId, labeler: LabelerId, bar: bool = False) -> None:
        """A label will not come: a lease ended, or the labeler gave the work back.

        With `bar` the labeler does not get the item again.
        """
        m = self._roll.known(labeler)
        touch = self._clerk.find(self._roll.row[item], m) if item in self._roll.row else -1
        if touch < 0 or self._clerk.desk.touches["said"][touch] != PENDING:
            raise StateError(
                f"labeler {labeler!r} holds no open assignment of item {item!r}: nothing to release"
            )
        self._clerk.release(touch, self.slot, bar)
        self._write(Released(self.slot, item, labeler, bar))

    def withdraw(self, item: ItemId) -> None:
        """Take an item out, without a verdict; nobody waits for its labels in flight."""
        row = self._roll.outstanding(item)
        self._clerk.withdraw(row)
        self._roll.strike(row)
        self._write(Withdrawn(self.slot, item))

    # replay and snapshots

    def replay(self, log: Iterable[Event]) -> Scheduler:
        """Do again what a log says happened, and check that it comes out the same."""
        if self._events:
            raise StateError("only a fresh scheduler can replay a log: this one has its own")
        return self.follow(log)

    def follow(self, log: Iterable[Event], obey: bool = False) -> Scheduler:
        """`replay` from here on: the events that a scheduler in this state wrote next.

        With `obey`, decisions are taken from the log instead of made again, for a log that
        another version of the engine wrote (see `obeying`).

        >>> from venire import FixedOverlap, Greedy
        >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
        >>> one, other = (Scheduler(panel, ["spam", "ok"], p) for p in (Greedy(), FixedOverlap(1)))
        >>> one.arrive([Item("post-1", 20), Item("post-2", 30)])
        >>> [(a.item, a.labeler) for a in one.assign()]
        [('post-2', 'ann'), ('post-1', 'bob')]
        >>> other.follow(one.log, obey=True).in_flight == one.in_flight
        True
        """
        follow(self, log, obey)
        return self

    def snapshot(self) -> bytes:
        """All of the state but the log, for `restore`.

        It can keep what venire exports; a policy, way of learning or estimator of your own is
        refused, and the log is what to keep then.
        """
        return self.capture().pack()

    def capture(self) -> Captured:
        """A copy of the state, which a thread can `pack` while this one goes on."""
        return capture(self)

    @staticmethod
    def restore(snapshot: bytes) -> Scheduler:
        """The scheduler that `snapshot` packed, to the bit; its log begins there.

        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1", weight=8))
        >>> Scheduler.restore(s.snapshot()).fingerprint() == s.fingerprint()
        True
        """
        return unpack(snapshot)

    def dissolve(self) -> None:
        """Let go of all names, bit by bit; the scheduler is of no use after that."""
        self._roll.dissolve()

    def drain(self) -> list[Event]:
        """Hand over the log so far and forget it, as a server does that keeps it elsewhere."""
        taken, self.log = self.log, []
        return taken

    # how

    def _group(self, eligible: frozenset[LabelerId] | None) -> int:
        roll = self._roll
        if eligible not in roll.groups and eligible is not None:
            members = sorted(roll.number[name] for name in eligible if name in roll.number)
            roll.add_group(eligible, self._clerk.add_group(members))
        return roll.groups[eligible]

    def _hear(self, batch: Sequence[Label], heard: list[tuple[int, int, int, int]]) -> list[bool]:
        """Hand the labels of outstanding items on, if all of them can be; which are new."""
        labels = np.array(heard, np.int64)
        place, held = self._clerk.look_up(labels)
        if place >= 0:
            here = [label for label in batch if label.item in self._roll.row]
            label = here[place]
            if held >= 0:
                raise changed(label, self.classes[held])
            raise StateError(f"labeler {label.labeler!r} may not label item {label.item!r}")
        fresh: list[bool] = self._clerk.hear(labels, self.slot).tolist()
        return fresh

    def _settle(self) -> tuple[Exit, ...]:
        return tuple(self._exit(int(row)) for row in self._clerk.settle(self.slot))

    def _exit(self, row: int) -> Exit:
        item, r = self._roll.strike(row), self._clerk.desk.rows[row]
        verdict = self._verdict(int(r["verdict"]), float(r["confidence"]))
        if self._departed.most:
            labels = self._clerk.labels_of(row)
            self._departed.add(item.id, Kept(*labels, int(r["verdict"]), verdict.confidence))
        reason = REASONS[r["reason"]]
        return Exit(item.id, int(r["arrival"]), self.slot, int(r["labels"]), verdict, reason)

    def _next_slot(self) -> None:
        self.slot += 1
        self._quiet = 0 if self._roll.row else self._quiet + 1
        tidied = self._books.tidy()
        if tidied is not None:
            self._roll.keep(tidied[0].tolist(), tidied[1])
        self._use_active()

    def _use_active(self) -> None:
        if self._active() != self._books.policy:
            self._books.use(self._active())
        self._books.refresh(self.slot)

    def _learns(self) -> bool:
        """Labels are kept only while there is something to learn."""
        return self.learning is not None and self.learning.next_refresh(self.slot) is not None

    def _learn(self) -> tuple[Revision, ...]:
        """Learn if it is time; the verdicts of items that have left that are others by that."""
        return self._revise() if self._learned() else ()

    def _learned(self) -> bool:
        """Learn if it is time; whether it was."""
        if self._learner is None or self.learning is None:
            return False
        if self.learning.next_refresh(self.slot) != self.slot:
            return False
        heard = np.array(self._heard, np.int64).reshape(-1, 3)
        self._learner.learn(heard[:, 0], heard[:, 1], heard[:, 2])
        self._heard = []
        self._believe()
        return True
