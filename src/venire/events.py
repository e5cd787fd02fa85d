"""What can happen to a scheduler: the events that make its log.

Each verb of `Scheduler` that changes anything appends one of these, and the state is a fold over
them. All are frozen values, and all say in which slot they happened.

A kind of event is one class: its fields, its name in logs (`kind`), how it is written as JSON
(`body`) and read back (`read`), how a scheduler does it again (`redo`), and how it is shown in the
API and in server-sent events (`view`). Bodies are lists in the order of the fields, which keeps a
log small. A new field goes to the end and has a default, so that older logs stay readable. Floats
are written as Python's `repr` does, so that the very same number comes back; `nan` and the
infinities, which JSON does not have, are strings.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from venire.errors import InputError
from venire.model import (
    NOBODY,
    Assignment,
    Bounds,
    Budget,
    Exit,
    ExitReason,
    Item,
    ItemId,
    Label,
    Labeler,
    LabelerId,
    Revision,
    Verdict,
)

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})

_kinds: Final[dict[str, type[Event]]] = {}

#: Every kind of event by its name in a log.
KINDS: Final = MappingProxyType(_kinds)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a slot; what it was is said by the subclass."""

    slot: int

    #: Its name in a log.
    kind: ClassVar[str] = ""

    #: Its name for readers, if that is another.
    shown_as: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        _kinds[cls.kind] = cls

    def body(self) -> Any:
        """What is kept in the log beside slot and kind, as JSON: one field, or a list of them."""
        values = [getattr(self, name) for name in self.names()]
        return values if len(values) > 1 else values[0]

    @classmethod
    def read(cls, slot: int, body: Any) -> Event:
        """The event of a body."""
        return cls(slot, *(body if len(cls.names()) > 1 else [body]))

    @classmethod
    def names(cls) -> list[str]:
        """Its fields, but the slot."""
        return [field.name for field in fields(cls)[1:]]

    @classmethod
    def body_of(cls, run: Sequence[Any]) -> list[tuple[int, Any]]:
        """The bodies of a run of such events in one slot, and how many events each has."""
        return [(1, event.body()) for event in run]

    @classmethod
    def read_all(cls, slot: int, body: Any) -> Sequence[Event]:
        """The events of a body."""
        return [cls.read(slot, body)]

    def redo(self, engine: Any) -> None:
        """Call the verb of a `Scheduler` again that made it."""
        raise NotImplementedError

    def view(self) -> dict[str, Any]:
        """What readers of the API see of it."""
        return {name: getattr(self, name) for name in self.names()}

    @classmethod
    def view_of(cls, run: Sequence[Any]) -> dict[str, Any]:
        """What readers see of the events of one body."""
        return dict(run[0].view())


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _scalar(value: Any) -> Any:
    if type(value) not in _SCALARS or value != value:
        raise InputError(f"got the label {value!r}, expected a string, a number or a truth value")
    return value


def _names(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _verdict(verdict: Verdict) -> list[Any]:
    return [_scalar(verdict.label), _number(verdict.confidence)]


def _revision(r: Revision) -> list[Any]:
    return [r.item, int(r.slot), *_verdict(r.before), *_verdict(r.verdict), int(r.labels)]


def _read_revision(body: Any) -> Revision:
    item, when, old, was, new, sure, labels = body
    return Revision(item, when, Verdict(old, float(was)), Verdict(new, float(sure)), labels)


def _view_of_revision(r: Revision) -> dict[str, Any]:
    return {
        "item": r.item,
        "before": r.before.label,
        "before_confidence": r.before.confidence,
        "verdict": r.verdict.label,
        "confidence": r.verdict.confidence,
        "labels": r.labels,
    }


@dataclass(frozen=True, slots=True)
class Arrived(Event):
    """Items entered."""

    kind: ClassVar[str] = "arrived"

    items: tuple[Item, ...]

    def body(self) -> Any:
        return [
            [item.id, item.weight, _names(item.eligible), _names(item.excluded)]
            + ([] if item.min_confidence is None else [item.min_confidence])
            for item in self.items
        ]

    @classmethod
    def read(cls, slot: int, body: Any) -> Arrived:
        made = (
            Item(id, weight, only, frozenset(barred) if barred else NOBODY, *more)
            for id, weight, only, barred, *more in body
        )
        return cls(slot, tuple(made))

    def redo(self, engine: Any) -> None:
        engine.arrive(self.items)

    def view(self) -> dict[str, Any]:
        return {"items": [item.id for item in self.items]}


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """Work was handed out, to everyone (`asked` is None) or to those who asked for it.

    Those who asked may hold `ahead` items more than their capacity.
    """

    kind: ClassVar[str] = "assigned"

    assignments: tuple[Assignment, ...]
    asked: tuple[LabelerId, ...] | None = None
    ahead: int = 0

    def body(self) -> Any:
        given = [[int(a.slot), a.item, a.labeler, _number(a.gain)] for a in self.assignments]
        asked = None if self.asked is None else list(self.asked)
        return [given, asked, self.ahead] if self.ahead else [given, asked]

    @classmethod
    def read(cls, slot: int, body: Any) -> Assigned:
        given, asked, *ahead = body
        assignments = tuple(
            Assignment(when, item, labeler, float(gain)) for when, item, labeler, gain in given
        )
        return cls(slot, assignments, None if asked is None else tuple(asked), *ahead)

    def redo(self, engine: Any) -> None:
        engine.assign(self.asked, self.ahead)

    def view(self) -> dict[str, Any]:
        given = [
            {"item": a.item, "labeler": a.labeler, "gain": _finite(a.gain)}
            for a in self.assignments
        ]
        return {"assignments": given}


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """A label came back; `late` says that its item had already left."""

    kind: ClassVar[str] = "observed"

    label: Label
    late: bool

    @classmethod
    def body_of(cls, run: Sequence[Observed]) -> list[tuple[int, Any]]:
        """One body for a run of labels: a list for each field, and the places of the late ones.

        A list of confidences is at the end if there are any.
        """
        labels = [event.label for event in run]
        said = [label.said for label in labels]
        if not set(map(type, said)) <= {str}:
            said = [_scalar(value) for value in said]
        late = [place for place, event in enumerate(run) if event.late]
        whose = [label.labeler for label in labels]
        sure = [label.confidence for label in labels]
        more = [] if not any(c is not None for c in sure) else [sure]
        return [(len(run), [[label.item for label in labels], whose, said, late, *more])]

    @classmethod
    def read_all(cls, slot: int, body: Any) -> Sequence[Event]:
        items, labelers, said, late, *sure = body
        fields = zip(items, labelers, said, *sure, strict=True)
        if not late:
            return [cls(slot, Label(*each), False) for each in fields]
        places = set(late)
        return [cls(slot, Label(*each), k in places) for k, each in enumerate(fields)]

    def redo(self, engine: Any) -> None:
        engine.observe(self.label)

    def view(self) -> dict[str, Any]:
        told = self.label
        said = {"item": told.item, "labeler": told.labeler, "said": told.said, "late": self.late}
        return said if told.confidence is None else said | {"confidence": told.confidence}

    @classmethod
    def view_of(cls, run: Sequence[Observed]) -> dict[str, Any]:
        return {"labels": [event.view() for event in run]}


@dataclass(frozen=True, slots=True)
class Released(Event):
    """A label will not come: the lease ended, or the labeler gave the work back.

    `barred` says that the labeler is not to get the item again.
    """

    kind: ClassVar[str] = "released"

    item: ItemId
    labeler: LabelerId
    barred: bool = False

    def redo(self, engine: Any) -> None:
        engine.release(self.item, self.labeler, self.barred)


@dataclass(frozen=True, slots=True)
class Joined(Event):
    """A labeler joined the panel, or came back."""

    kind: ClassVar[str] = "joined"

    labeler: Labeler

    def body(self) -> Any:
        who = self.labeler
        return [who.id, who.competence, who.capacity, *([who.price] if who.price else [])]

    @classmethod
    def read(cls, slot: int, body: Any) -> Joined:
        return cls(slot, Labeler(*body))

    def redo(self, engine: Any) -> None:
        engine.join(self.labeler)

    def view(self) -> dict[str, Any]:
        who = self.labeler
        priced = {"price": who.price} if who.price else {}
        return {"labeler": who.id, "capacity": who.capacity, **priced}


@dataclass(frozen=True, slots=True)
class Left(Event):
    """A labeler left the panel; labels in flight may still come."""

    kind: ClassVar[str] = "left"

    labeler: LabelerId

    def redo(self, engine: Any) -> None:
        engine.leave(self.labeler)


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """A slot ended: the items that left, and the revised verdicts of items that had left."""

    kind: ClassVar[str] = "closed"

    exits: tuple[Exit, ...]
    revisions: tuple[Revision, ...] = ()

    def body(self) -> Any:
        """The exits; if there are revisions, both by name."""
        exits = [
            [e.item, int(e.arrival), int(e.slot), int(e.labels), *_verdict(e.verdict), e.reason]
            for e in self.exits
        ]
        if not self.revisions:
            return exits
        return {"exits": exits, "revisions": [_revision(r) for r in self.revisions]}

    @classmethod
    def read(cls, slot: int, body: Any) -> Closed:
        both = body if isinstance(body, dict) else {"exits": body, "revisions": ()}
        exits = tuple(
            Exit(item, arrival, left, labels, Verdict(label, float(confidence)), ExitReason(reason))
            for item, arrival, left, labels, label, confidence, reason in both["exits"]
        )
        return cls(slot, exits, tuple(map(_read_revision, both["revisions"])))

    def redo(self, engine: Any) -> None:
        engine.close()

    def view(self) -> dict[str, Any]:
        exits = [
            {
                "item": e.item,
                "verdict": e.verdict.label,
                "confidence": e.verdict.confidence,
                "labels": e.labels,
                "reason": e.reason,
            }
            for e in self.exits
        ]
        return {"exits": exits, "revisions": [_view_of_revision(r) for r in self.revisions]}


@dataclass(frozen=True, slots=True)
class ClosedPart(Closed):
    """Some of the exits and revisions of a slot; the next event has more of them.

    A store cuts a large slot into parts: see `server.store.slot_parts`. Its own kind is for older
    versions of venire, which would take it for the whole.
    """

    kind: ClassVar[str] = "closing"
    shown_as: ClassVar[str] = "closed"

    more: Literal[True] = True

    def view(self) -> dict[str, Any]:
        return {"more": True, **Closed.view(self)}


@dataclass(frozen=True, slots=True)
class Withdrawn(Event):
    """An item was withdrawn, without a verdict."""

    kind: ClassVar[str] = "withdrawn"

    item: ItemId

    def redo(self, engine: Any) -> None:
        engine.withdraw(self.item)


@dataclass(frozen=True, slots=True)
class Sufficed(Event):
    """One labeler's word was enough: the item leaves with that class at the end of the slot."""

    kind: ClassVar[str] = "leave_on"

    item: ItemId
    labeler: LabelerId
    said: Hashable

    def body(self) -> Any:
        return [self.item, self.labeler, _scalar(self.said)]

    def redo(self, engine: Any) -> None:
        engine.suffice(self.item, self.labeler, self.said)


@dataclass(frozen=True, slots=True)
class GoldGiven(Event):
    """Somebody who is trusted said what the class of an item is.

    `before` is the verdict that it had left with, or was revised to; None while it is open, or
    where that is not known. `labels` is how many labels that was by. `corrects` is what was said
    to be its class before, if that was wrong.
    """

    kind: ClassVar[str] = "gold"

    item: ItemId
    label: Hashable
    before: Verdict | None = None
    labels: int = 0
    corrects: Hashable | None = None

    @property
    def revision(self) -> Revision | None:
        """The revision of the verdict, if it was another."""
        if self.before is None or self.before.label == self.label:
            return None
        return Revision(self.item, self.slot, self.before, Verdict(self.label, 1.0), self.labels)

    def body(self) -> Any:
        before = None if self.before is None else _verdict(self.before)
        body = [self.item, _scalar(self.label), before, int(self.labels)]
        return body if self.corrects is None else [*body, _scalar(self.corrects)]

    @classmethod
    def read(cls, slot: int, body: Any) -> GoldGiven:
        item, label, before, labels, *corrects = body
        was = None if before is None else Verdict(before[0], float(before[1]))
        return cls(slot, item, label, was, labels, *corrects)

    def redo(self, engine: Any) -> None:
        how = self.item, self.label, self.before, self.labels
        engine.gold(*how, corrects=self.corrects, warn=False)

    def view(self) -> dict[str, Any]:
        told = {"item": self.item, "label": self.label}
        return told if self.corrects is None else {**told, "corrects": self.corrects}


@dataclass(frozen=True, slots=True)
class Revised(Event):
    """An item that has left was decided again, apart from its own labels."""

    kind: ClassVar[str] = "revised"

    revision: Revision

    def body(self) -> Any:
        return _revision(self.revision)

    @classmethod
    def read(cls, slot: int, body: Any) -> Revised:
        return cls(slot, _read_revision(body))

    def redo(self, engine: Any) -> None:
        r = self.revision
        engine.revise(r.item, r.verdict, r.before, r.labels)

    def view(self) -> dict[str, Any]:
        return _view_of_revision(self.revision)


@dataclass(frozen=True, slots=True)
class Routed(Event):
    """The verdict of an item that left sent it elsewhere; nothing here changes by that.

    `to` says what the `target` is, `stream` or `webhook`; `fault` why it did not get there.
    """

    kind: ClassVar[str] = "routed"

    item: ItemId
    to: str
    target: str
    fault: str | None = None

    def redo(self, engine: Any) -> None:
        engine.route(self.item, self.to, self.target, self.fault)

    def view(self) -> dict[str, Any]:
        told = {"item": self.item, self.to: self.target}
        return told if self.fault is None else told | {"fault": self.fault}


@dataclass(frozen=True, slots=True)
class AskedAgain(Event):
    """A labeler was given an item that it had labelled before; that is paid as a label is."""

    kind: ClassVar[str] = "asked_again"

    item: ItemId
    labeler: LabelerId

    def redo(self, engine: Any) -> None:
        engine.ask_again(self.item, self.labeler)


@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """A labeler who was asked again answered; no label, and no verdict changes by that."""

    kind: ClassVar[str] = "repeated"

    item: ItemId
    labeler: LabelerId
    before: Hashable
    said: Hashable

    def body(self) -> Any:
        return [self.item, self.labeler, _scalar(self.before), _scalar(self.said)]

    def redo(self, engine: Any) -> None:
        engine.repeat(self.item, self.labeler, self.before, self.said)


@dataclass(frozen=True, slots=True)
class Changed(Event):
    """Settings changed; None: as before. Names are as `--policy` and `--learning` take them.

    A budget of "none" says that it ended.
    `costs` are what errors cost: truth, verdict, cost. `families` are those who may share errors,
    each with the name of its family.
    """

    kind: ClassVar[str] = "changed"

    policy: str | None = None
    learning: str | None = None
    bounds: Bounds | None = None
    c: float | None = None
    revisions: int | None = None
    budget: Budget | Literal["none"] | None = None
    costs: tuple[tuple[Hashable, Hashable, float], ...] | None = None
    families: tuple[tuple[Hashable, Hashable], ...] | None = None

    def body(self) -> Any:
        limits = None if self.bounds is None else list(astuple(self.bounds))
        budget: Any = self.budget
        if isinstance(budget, Budget):
            budget = list(astuple(budget))
        costs = None if self.costs is None else [list(cost) for cost in self.costs]
        families = None if self.families is None else [list(pair) for pair in self.families]
        body = [self.policy, self.learning, limits, self.c, self.revisions, budget, costs, families]
        ends = 8 if families is not None else 5 if budget is None and costs is None else 7
        return body[:ends]

    @classmethod
    def read(cls, slot: int, body: Any) -> Changed:
        """The event of a body; before bounds had six parts, there was no floor."""
        policy, learning, limits, *more = body
        if len(more) > 2 and isinstance(more[2], list):
            more[2] = Budget(*more[2])
        for place in (3, 4):
            if len(more) > place and more[place] is not None:
                more[place] = tuple(map(tuple, more[place]))
        bounds = None if limits is None else Bounds(*limits)
        if bounds is not None and len(limits) < 6:
            bounds = replace(bounds, floor=False)
        return cls(slot, policy, learning, bounds, *more)

    def redo(self, engine: Any) -> None:
        costs = None if self.costs is None else {(t, v): x for t, v, x in self.costs}
        families = None if self.families is None else dict(self.families)
        how = self.policy, self.learning, self.bounds, self.c, self.revisions, self.budget
        engine.change(*how, costs=costs, families=families)

    def view(self) -> dict[str, Any]:
        kin = {} if self.families is None else {"families": dict(self.families)}
        return {"policy": self.policy, "learning": self.learning, **kin}
