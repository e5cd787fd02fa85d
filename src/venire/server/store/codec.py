"""Events as JSON, and back, to the bit.

An `EventRow` holds one event, or a run of labels that came in one slot: thousands of labels of a
bulk request are one row, with a list for each field. Floats are written as Python's `repr` does,
so that the very same number comes back; `nan` and the infinities, which JSON does not have, are
strings. The fields stand in lists, in the order of the event's own, which is what keeps a log
small; a new field goes to the end and has a default, so that older logs stay readable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, replace
from itertools import groupby
from typing import Any, Final

from venire.budget import Budget
from venire.errors import InputError, StoreError
from venire.events import (
    Arrived,
    Assigned,
    Changed,
    Closed,
    Event,
    GoldGiven,
    Joined,
    Left,
    Observed,
    Released,
    Revised,
    Withdrawn,
)
from venire.model import (
    NOBODY,
    Assignment,
    Bounds,
    Exit,
    ExitReason,
    Item,
    Label,
    Labeler,
    Revision,
    Verdict,
)
from venire.server.store.records import EventRow
from venire.server.store.slot_parts import ClosedPart

__all__ = ["decode", "encode", "kind_of"]

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def encode(stream: str, first: int, at: float, events: Sequence[Event]) -> list[EventRow]:
    """The rows of a stream's events, of which the first is number `first` of the log.

    >>> from venire import Item
    >>> [row] = encode("posts", 0, 1e9, [Arrived(3, (Item("post-1", 8),))])
    >>> row.n, row.slot, row.kind, row.body
    (0, 3, 'arrived', '[["post-1",8.0,null,[]]]')
    """
    rows: list[EventRow] = []
    n = first
    for (kind, slot), run in groupby(events, key=lambda event: (type(event), event.slot)):
        if kind is Observed:
            batch = list(run)
            body = _json(_observed(batch))
            rows.append(
                EventRow(
                    stream=stream,
                    n=n,
                    size=len(batch),
                    slot=slot,
                    at=at,
                    kind="observed",
                    body=body,
                )
            )
            n += len(batch)
            continue
        name, write, _ = _by_type(kind)
        for event in run:
            rows.append(
                EventRow(
                    stream=stream,
                    n=n,
                    size=1,
                    slot=slot,
                    at=at,
                    kind=name,
                    body=_json(write(event)),
                )
            )
            n += 1
    return rows


def decode(rows: Iterable[EventRow]) -> list[Event]:
    """The events of rows, in order.

    >>> from venire import Label
    >>> events = [Observed(3, Label("post-1", m, "spam"), late=False) for m in ("ann", "bob")]
    >>> rows = encode("posts", 7, 1e9, events)
    >>> len(rows), rows[0].size, decode(rows) == events
    (1, 2, True)
    """
    events: list[Event] = []
    for row in rows:
        body = json.loads(row.body)
        if row.kind == "observed":
            events += _read_observed(row.slot, body)
        elif row.kind in _KINDS:
            events.append(_KINDS[row.kind][2](row.slot, body))
        else:
            raise StoreError(
                f"event {row.n} of stream {row.stream!r} is of the unknown kind {row.kind!r}: "
                "a newer version wrote it, upgrade venire"
            )
    return events


def kind_of(row: EventRow) -> str:
    """The kind of the events of a row, for readers: a part of a closed slot is `closed` too.

    Its own name in the store is for older versions of venire, which would take it for the whole.

    >>> [row] = encode("posts", 0, 1e9, [ClosedPart(3, ())])
    >>> row.kind, kind_of(row)
    ('closing', 'closed')
    """
    return "closed" if row.kind == "closing" else row.kind


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _scalar(value: Any) -> Any:
    if type(value) not in _SCALARS or value != value:
        raise InputError(f"got the label {value!r}, expected a string, a number or a truth value")
    return value


# A run of labels: a list for each field, and the places of the late ones.


def _observed(events: list[Any]) -> list[Any]:
    labels = [event.label for event in events]
    said = [label.said for label in labels]
    if not set(map(type, said)) <= {str}:
        said = [_scalar(value) for value in said]
    late = [place for place, event in enumerate(events) if event.late]
    return [[label.item for label in labels], [label.labeler for label in labels], said, late]


def _read_observed(slot: int, body: list[Any]) -> list[Event]:
    items, labelers, said, late = body
    if not late:
        return [
            Observed(slot, Label(*triple), False)
            for triple in zip(items, labelers, said, strict=True)
        ]
    places = set(late)
    return [
        Observed(slot, Label(*triple), place in places)
        for place, triple in enumerate(zip(items, labelers, said, strict=True))
    ]


def _arrived(event: Arrived) -> Any:
    return [
        [item.id, item.weight, _names(item.eligible), _names(item.excluded)]
        + ([] if item.min_confidence is None else [item.min_confidence])
        for item in event.items
    ]


def _names(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _read_arrived(slot: int, body: Any) -> Arrived:
    return Arrived(
        slot,
        tuple(
            Item(id, weight, only, frozenset(barred) if barred else NOBODY, *more)
            for id, weight, only, barred, *more in body
        ),
    )


def _assigned(event: Assigned) -> Any:
    given = [[int(a.slot), a.item, a.labeler, _number(a.gain)] for a in event.assignments]
    asked = None if event.asked is None else list(event.asked)
    return [given, asked, event.ahead] if event.ahead else [given, asked]


def _read_assigned(slot: int, body: Any) -> Assigned:
    given, asked, *ahead = body
    assignments = tuple(
        Assignment(when, item, labeler, float(gain)) for when, item, labeler, gain in given
    )
    return Assigned(slot, assignments, None if asked is None else tuple(asked), *ahead)


def _released(event: Released) -> Any:
    return [event.item, event.labeler, event.barred]


def _joined(event: Joined) -> Any:
    who = event.labeler
    return [who.id, who.competence, who.capacity, *([who.price] if who.price else [])]


def _closed(event: Closed) -> Any:
    """The exits, and if there are any the revisions: then both, by name."""
    exits = [
        [
            e.item,
            int(e.arrival),
            int(e.slot),
            int(e.labels),
            *_verdict(e.verdict),
            e.reason,
        ]
        for e in event.exits
    ]
    if not event.revisions:
        return exits
    return {"exits": exits, "revisions": [_revision(r) for r in event.revisions]}


def _revision(r: Revision) -> list[Any]:
    return [r.item, int(r.slot), *_verdict(r.before), *_verdict(r.verdict), int(r.labels)]


def _read_revision(body: Any) -> Revision:
    item, when, old, was, new, sure, labels = body
    return Revision(item, when, Verdict(old, float(was)), Verdict(new, float(sure)), labels)


def _verdict(verdict: Verdict) -> list[Any]:
    return [_scalar(verdict.label), _number(verdict.confidence)]


def _read_closed(slot: int, body: Any) -> Closed:
    exits, revised = (body["exits"], body["revisions"]) if isinstance(body, dict) else (body, ())
    return Closed(
        slot,
        tuple(
            Exit(item, arrival, left, labels, Verdict(label, float(confidence)), ExitReason(reason))
            for item, arrival, left, labels, label, confidence, reason in exits
        ),
        tuple(_read_revision(one) for one in revised),
    )


def _read_part(slot: int, body: Any) -> ClosedPart:
    part = _read_closed(slot, body)
    return ClosedPart(slot, part.exits, part.revisions)


def _gold(event: GoldGiven) -> Any:
    before = None if event.before is None else _verdict(event.before)
    body = [event.item, _scalar(event.label), before, int(event.labels)]
    return body if event.corrects is None else [*body, _scalar(event.corrects)]


def _read_gold(slot: int, body: Any) -> GoldGiven:
    item, label, before, labels, *corrects = body
    was = None if before is None else Verdict(before[0], float(before[1]))
    return GoldGiven(slot, item, label, was, labels, *corrects)


def _changed(event: Changed) -> Any:
    limits = None if event.bounds is None else list(astuple(event.bounds))
    budget: Any = event.budget
    if isinstance(budget, Budget):
        budget = list(astuple(budget))
    costs = None if event.costs is None else [list(cost) for cost in event.costs]
    families = None if event.families is None else [list(pair) for pair in event.families]
    body = [event.policy, event.learning, limits, event.c, event.revisions, budget, costs, families]
    ends = 8 if families is not None else 5 if budget is None and costs is None else 7
    return body[:ends]


def _read_changed(slot: int, body: Any) -> Changed:
    policy, learning, limits, *more = body
    if len(more) > 2 and isinstance(more[2], list):
        more[2] = Budget(*more[2])
    if len(more) > 3 and more[3] is not None:
        more[3] = tuple(tuple(cost) for cost in more[3])
    if len(more) > 4 and more[4] is not None:
        more[4] = tuple(tuple(pair) for pair in more[4])
    return Changed(slot, policy, learning, None if limits is None else _bounds(limits), *more)


def _bounds(limits: list[Any]) -> Bounds:
    """Bounds as they were written; before they had six parts, there was no floor."""
    return Bounds(*limits) if len(limits) > 5 else replace(Bounds(*limits), floor=False)


#: Of each kind: the event, how it is written, and how it is read.
_KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[int, Any], Event]]] = {
    "arrived": (Arrived, _arrived, _read_arrived),
    "assigned": (Assigned, _assigned, _read_assigned),
    "released": (Released, _released, lambda slot, body: Released(slot, *body)),
    "joined": (Joined, _joined, lambda slot, body: Joined(slot, Labeler(*body))),
    "left": (Left, lambda event: event.labeler, lambda slot, body: Left(slot, body)),
    "closed": (Closed, _closed, _read_closed),
    "closing": (ClosedPart, _closed, _read_part),
    "withdrawn": (Withdrawn, lambda event: event.item, lambda slot, body: Withdrawn(slot, body)),
    "gold": (GoldGiven, _gold, _read_gold),
    "revised": (
        Revised,
        lambda event: _revision(event.revision),
        lambda slot, body: Revised(slot, _read_revision(body)),
    ),
    "changed": (Changed, _changed, _read_changed),
}


def _by_type(kind: type) -> tuple[str, Callable[[Any], Any], Callable[[int, Any], Event]]:
    for name, (event, write, read) in _KINDS.items():
        if event is kind:
            return name, write, read
    raise InputError(f"got an event of type {kind.__name__}, expected one of venire.events")
