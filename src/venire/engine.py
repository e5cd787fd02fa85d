"""The engine: one state machine, four verbs, no clock and no I/O.

    arrive(items)     items enter
    assign()          who labels what in this slot
    observe(labels)   labels come back
    close()           end of the slot: learn, decide who leaves, slot += 1

and, because labelers are people and programs: `release` (a label will not come), `join` and
`leave`. Every call that changes anything appends one event to the log. The state is a fold over
that log: a fresh scheduler that replays it is in the same state, to the bit.

Labels in flight. An item that was given to a labeler is valued as if the label will come, and
revalued if it does not; it does not leave before it comes or is released. A labeler is busy
until then. A label counts from the slot in which it comes. A label for an item that has left
is late: it goes into the log, and into learning while that goes on, but changes no verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from venire.errors import InputError, ReplayError, StateError
from venire.model import (
    Arrived,
    Assigned,
    Assignment,
    Closed,
    Event,
    Exit,
    Item,
    ItemId,
    Joined,
    Label,
    Labeler,
    LabelerId,
    Left,
    Observed,
    Released,
    Verdict,
)
from venire.scheduling.base import Belief, Learner, Learning, Policy
from venire.scheduling.beliefs import check_c
from venire.scheduling.clerk import Clerk
from venire.scheduling.desk import BARRED, COUNTER, PENDING, REASONS
from venire.scheduling.greedy import Greedy

__all__ = ["Scheduler"]


class Scheduler:
    """Draws labelers for the items of a stream, slot by slot.

    Parameters
    ----------
    panel
        The labelers, by name or as `Labeler`.
    classes
        What a label may say. In a tie the later class wins.
    policy
        Who labels what; Algorithm 1 (`Greedy`) by default.
    learning
        How the competences come to be known. Without it every labeler must have one.
    c
        The constant of the accuracy proxy.

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
    ) -> None:
        for what, given in (("panel", panel), ("classes", classes)):
            if isinstance(given, str):
                raise InputError(f"got {what}={given!r}, expected a list of names")
        check_c(c)
        self.classes = tuple(classes)
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise InputError(
                f"got the classes {list(classes)}, expected at least two, all distinct"
            )
        self.policy, self.learning, self.c = policy or Greedy(), learning, c
        self.slot = 0
        self.log: list[Event] = []
        self._code = {name: k for k, name in enumerate(self.classes)}
        self._items: list[Item] = []
        self._row: dict[ItemId, int] = {}
        self._serials: list[int] = []  # of each row: the number under which it is learned from
        self._left: dict[ItemId, int] = {}
        self._heard: list[tuple[int, int, int]] = []  # labels since competences were learned
        self._late: dict[tuple[ItemId, LabelerId], Hashable] = {}
        self._events = 0
        self._groups: dict[frozenset[LabelerId] | None, int] = {None: 0}
        self._labelers = [who if isinstance(who, Labeler) else Labeler(who) for who in panel]
        self._number = {who.id: m for m, who in enumerate(self._labelers)}
        if not self._labelers:
            raise InputError("the panel is empty, expected at least one labeler")
        if len(self._number) < len(self._labelers):
            twice = next(w.id for m, w in enumerate(self._labelers) if self._number[w.id] != m)
            raise InputError(f"labeler {twice!r} is on the panel twice, expected distinct names")
        self._learner: Learner | None = None
        if learning is not None:
            said = [who.competence for who in self._labelers]
            self._learner = learning.begin(said, len(self.classes))
        capacity = [who.capacity for who in self._labelers]
        self._clerk = Clerk(capacity, len(self.classes), self._active(), c)
        self._believe()
        self._clerk.refresh(self.slot)

    # the four verbs

    def arrive(self, items: Item | Iterable[Item]) -> None:
        """Items enter; they are outstanding until they leave."""
        batch = (items,) if isinstance(items, Item) else tuple(items)
        seen: set[ItemId] = set()
        for item in batch:
            if item.id in self._row or item.id in self._left or item.id in seen:
                raise InputError(f"item {item.id!r} has arrived before, expected a new id")
            seen.add(item.id)
        for item in batch:
            excluded = [self._number[name] for name in item.excluded if name in self._number]
            group = self._group(item.eligible)
            row = self._clerk.add_row(item.weight, group, sorted(excluded), self.slot)
            self._items.append(item)
            self._serials.append(len(self._left) + len(self._row))
            self._row[item.id] = row
        if batch:
            self._write(Arrived(self.slot, batch))

    def assign(self, asked: Iterable[LabelerId] | None = None) -> tuple[Assignment, ...]:
        """Hand out work for this slot; a second call hands out what became possible since.

        With `asked`, only these labelers get any: those who pull their work when they are free.
        """
        names = None if asked is None else tuple(asked)
        numbers = None if names is None else [self._known(name) for name in names]
        made = self._clerk.serve(self.slot, numbers)
        touches = self._clerk.desk.touches
        work = tuple(
            Assignment(
                self.slot,
                self._items[touches["row"][k]].id,
                self._labelers[touches["labeler"][k]].id,
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
        said: dict[tuple[ItemId, LabelerId], Hashable] = {}
        for label in batch:
            self._check(label)
            if said.setdefault((label.item, label.labeler), label.said) != label.said:
                raise self._changed(label, said[label.item, label.labeler])
        for label in batch:
            self._record(label)

    def close(self) -> tuple[Exit, ...]:
        """End the slot: decide who leaves, learn if it is time, and go on to the next slot."""
        exits = tuple(self._exit(row) for row in self._clerk.settle(self.slot))
        self._write(Closed(self.slot, exits))
        self._learn()
        self.slot += 1
        self._tidy()
        if self._active() != self._clerk.policy:
            self._clerk.use(self._active())
        self._clerk.refresh(self.slot)
        return exits

    # labelers come and go, and labels do not come

    def release(self, item: ItemId, labeler: LabelerId, bar: bool = False) -> None:
        """A label will not come: a lease ended, or the labeler gave the work back.

        With `bar` the labeler does not get the item again.
        """
        touch = self._touch(item, labeler)
        if touch < 0 or self._clerk.desk.touches["said"][touch] != PENDING:
            raise StateError(
                f"labeler {labeler!r} holds no open assignment of item {item!r}: nothing to release"
            )
        self._clerk.release(touch, self.slot, bar)
        self._write(Released(self.slot, item, labeler, bar))

    def join(self, labeler: Labeler | LabelerId) -> None:
        """A labeler comes, or comes back with its capacity as now given.

        A competence given now replaces the one known before; what was learned stays.
        """
        who = labeler if isinstance(labeler, Labeler) else Labeler(labeler)
        if who.id in self._number and self._clerk.capacity[self._number[who.id]] > 0:
            raise StateError(f"labeler {who.id!r} is on the panel already")
        if self.learning is None and who.competence is None and who.id not in self._number:
            raise self._no_competence(who.id)
        if self._learner is not None and who.id not in self._number:
            self._learner.join(who.competence)
        self._seat(who)
        self._believe()
        self._clerk.refresh(self.slot)
        self._write(Joined(self.slot, who))

    def leave(self, labeler: LabelerId) -> None:
        """A labeler goes: no more work for it. Labels in flight may still come.

        It may come back, so an item that only it could still improve waits while that is worth
        its delay (Algorithm 1), or while it has no label at all (policies with an overlap).
        """
        m = self._known(labeler)
        if self._clerk.capacity[m] == 0:
            raise StateError(f"labeler {labeler!r} has left already")
        self._clerk.set_capacity(m, 0)
        self._clerk.refresh(self.slot)
        self._write(Left(self.slot, labeler))

    # replay

    def replay(self, log: Iterable[Event]) -> Scheduler:
        """Do again what a log says happened, and check that it comes out the same."""
        if self._events:
            raise StateError("only a fresh scheduler can replay a log: this one has its own")
        for number, event in enumerate(log, start=1):
            self._redo(event)
            if self._events != number or not _same(self.log[-1], event):
                gave = self.log[-1] if self._events == number else "nothing"
                raise ReplayError(f"the log says {event}, but replaying it gave {gave}")
        return self

    def drain(self) -> list[Event]:
        """Hand over the log so far and forget it, as a server does that keeps it elsewhere."""
        taken, self.log = self.log, []
        return taken

    def _write(self, event: Event) -> None:
        self.log.append(event)
        self._events += 1

    def _redo(self, event: Event) -> None:
        match event:
            case Arrived():
                self.arrive(event.items)
            case Assigned():
                self.assign(event.asked)
            case Observed():
                self.observe(event.label)
            case Released():
                self.release(event.item, event.labeler, event.barred)
            case Joined():
                self.join(event.labeler)
            case Left():
                self.leave(event.labeler)
            case Closed():
                self.close()

    def fingerprint(self) -> str:
        """A digest of the whole state; equal for equal logs."""
        names = (
            self.slot,
            self._labelers,
            [(i.id, i.weight, sorted(i.eligible or ()), sorted(i.excluded)) for i in self._items],
            sorted(self._left),
            sorted(self._late),
            self._heard,
        )
        digest = hashlib.sha256(repr(names).encode())
        for column in self._clerk.columns():
            digest.update(np.ascontiguousarray(column).tobytes())
        learned = {} if self._learner is None else self._learner.state()
        for name in sorted(learned):
            digest.update(np.ascontiguousarray(learned[name]).tobytes())
        return digest.hexdigest()

    # reading

    @property
    def outstanding(self) -> tuple[ItemId, ...]:
        """The items that have not left, the earliest arrival first."""
        return tuple(self._items[row].id for row in self._clerk.outstanding())

    @property
    def competences(self) -> dict[LabelerId, float] | None:
        """What is believed of each labeler; None while nothing is known."""
        if self._clerk.belief is None:
            return None
        known = self._clerk.belief.competences.tolist()
        return {who.id: p for who, p in zip(self._labelers, known, strict=True)}

    @property
    def in_flight(self) -> tuple[tuple[ItemId, LabelerId], ...]:
        """The assignments whose labels have not come, the earliest first."""
        return tuple(
            (self._items[row].id, self._labelers[m].id) for row, m in self._clerk.in_flight()
        )

    @property
    def counters(self) -> dict[str, int]:
        """What the policy counted since the scheduler began, by name; empty for most."""
        return self.policy.counters(self._clerk.desk.meta[COUNTER:])

    def verdict(self, item: ItemId) -> Verdict:
        """What the labels of an outstanding item say so far."""
        if item not in self._row or item in self._left:
            raise InputError(f"item {item!r} is not outstanding: it has left, or never arrived")
        return self._verdict(*self._clerk.decide(self._row[item]))

    # how

    def _seat(self, who: Labeler) -> None:
        if who.id in self._number:
            m = self._number[who.id]
            before = self._labelers[m]
            kept = before.competence if who.competence is None else who.competence
            self._labelers[m] = Labeler(who.id, kept, who.capacity)
        else:
            m = self._number[who.id] = self._clerk.add_labeler()
            self._labelers.append(who)
            for names, group in self._groups.items():
                if names is not None and who.id in names:
                    self._clerk.join_group(group, m)
            for row in self._clerk.outstanding():
                if who.id in self._items[row].excluded:
                    self._clerk.bar(int(row), m, self.slot)
        self._clerk.set_capacity(m, who.capacity)

    def _believe(self) -> None:
        """Known competences, or those learned."""
        if self._learner is not None:
            self._clerk.believe(self._learner.belief)
            return
        missing = next((who.id for who in self._labelers if who.competence is None), None)
        if missing is not None:
            raise self._no_competence(missing)
        known = np.array([who.competence for who in self._labelers], np.float64)
        self._clerk.believe(Belief(known))

    def _no_competence(self, name: LabelerId) -> InputError:
        return InputError(
            f"labeler {name!r} has no competence: give Labeler({name!r}, competence=...), "
            "or let the scheduler learn it with learning=LearnThenServe(45)"
        )

    def _group(self, eligible: frozenset[LabelerId] | None) -> int:
        if eligible not in self._groups and eligible is not None:
            members = sorted(self._number[name] for name in eligible if name in self._number)
            self._groups[eligible] = self._clerk.add_group(members)
        return self._groups[eligible]

    def _active(self) -> Policy:
        return (self.learning.phase(self.slot) if self.learning else None) or self.policy

    def _known(self, labeler: LabelerId) -> int:
        if labeler not in self._number:
            raise InputError(f"labeler {labeler!r} is not on the panel: join first")
        return self._number[labeler]

    def _touch(self, item: ItemId, labeler: LabelerId) -> int:
        m = self._known(labeler)
        return self._clerk.find(self._row[item], m) if item in self._row else -1

    def _check(self, label: Label) -> None:
        """Refuse a label that cannot be."""
        m = self._known(label.labeler)
        try:
            known = label.said in self._code
        except TypeError:
            known = False
        if not known:
            raise InputError(
                f"labeler {label.labeler!r} said {label.said!r} of item {label.item!r}, "
                f"expected one of {list(self.classes)}"
            )
        if label.item in self._left:
            before = self._late.get((label.item, label.labeler), label.said)
            if before != label.said:
                raise self._changed(label, before)
        elif label.item not in self._row:
            raise InputError(f"item {label.item!r} never arrived: call arrive first")
        else:
            self._check_touch(self._row[label.item], m, label)

    def _check_touch(self, row: int, m: int, label: Label) -> None:
        touch = self._clerk.find(row, m)
        held = self._clerk.desk.touches["said"][touch] if touch >= 0 else PENDING
        if touch < 0 and not self._clerk.in_group(row, m):
            held = BARRED
        if held == BARRED:
            raise StateError(f"labeler {label.labeler!r} may not label item {label.item!r}")
        if held >= 0 and held != self._code[label.said]:
            raise self._changed(label, self.classes[held])

    def _changed(self, label: Label, before: Hashable) -> StateError:
        return StateError(
            f"labeler {label.labeler!r} said {before!r} of item {label.item!r} before and "
            f"{label.said!r} now: a label cannot be changed"
        )

    def _record(self, label: Label) -> None:
        """Write a label down that passed `_check`; one that is there already changes nothing."""
        late, m, said = label.item in self._left, *self._codes(label)
        if late:
            if (label.item, label.labeler) in self._late:
                return
            self._late[label.item, label.labeler] = label.said
            serial = self._left[label.item]
        else:
            row = self._row[label.item]
            serial, touch = self._serials[row], self._clerk.find(row, m)
            if touch < 0:
                self._clerk.volunteer(row, m, said, self.slot)
            elif self._clerk.desk.touches["said"][touch] == PENDING:
                self._clerk.observe(touch, said, self.slot)
            else:
                return
        if self._learns():
            self._heard.append((serial, m, said))
        self._write(Observed(self.slot, label, late))

    def _codes(self, label: Label) -> tuple[int, int]:
        return self._number[label.labeler], self._code[label.said]

    def _exit(self, row: int) -> Exit:
        item, r = self._items[row], self._clerk.desk.rows[row]
        verdict = self._verdict(int(r["verdict"]), float(r["confidence"]))
        self._left[item.id] = self._serials[row]
        del self._row[item.id]
        reason = REASONS[r["reason"]]
        return Exit(item.id, int(r["arrival"]), self.slot, int(r["labels"]), verdict, reason)

    def _verdict(self, code: int, confidence: float) -> Verdict:
        return Verdict(self.classes[code] if code >= 0 else None, confidence)

    def _learns(self) -> bool:
        """Labels are kept only while there is something to learn."""
        return self.learning is not None and self.learning.next_refresh(self.slot) is not None

    def _learn(self) -> None:
        if self._learner is None or self.learning is None:
            return
        if self.learning.next_refresh(self.slot) == self.slot:
            heard = np.array(self._heard, np.int64).reshape(-1, 3)
            self._learner.learn(heard[:, 0], heard[:, 1], heard[:, 2])
            self._heard = []
            self._believe()

    def _tidy(self) -> None:
        tidied = self._clerk.tidy()
        if tidied is not None:
            stay, groups = tidied
            self._items = [self._items[row] for row in stay]
            self._serials = [self._serials[row] for row in stay]
            self._row = {item.id: row for row, item in enumerate(self._items)}
            self._groups = {n: groups[g] for n, g in self._groups.items() if g in groups}


def _same(a: Event, b: Event) -> bool:
    """Equal, where a gain that is not known equals another that is not."""
    if isinstance(a, Assigned) and isinstance(b, Assigned):
        pairs = zip(a.assignments, b.assignments, strict=False)
        return len(a.assignments) == len(b.assignments) and all(
            x == replace(y, gain=x.gain) and (x.gain == y.gain or x.gain != x.gain)
            for x, y in pairs
        )
    return a == b
