"""Rows of the store as the values that the API returns."""

from __future__ import annotations

import json
import math
from typing import Any

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
from venire.model import ExitReason, NoteKind, Revision
from venire.server.console_messages import AlarmView
from venire.server.messages import ExitView, GoldSaid, GoldView, LabelView, NoteView, RevisionView
from venire.server.store import (
    AlarmRow,
    EventRow,
    GoldRow,
    ItemRow,
    LabelRow,
    NoteRow,
    RevisionRow,
    decode,
)
from venire.server.store.slot_parts import ClosedPart

__all__ = [
    "alarm_view",
    "event_body",
    "exit_view",
    "gold_view",
    "label_view",
    "note_view",
    "number",
    "revision_view",
]


def event_body(row: EventRow) -> dict[str, Any]:
    """A row of the log as a plain object.

    >>> from venire import Item
    >>> from venire.server.store import encode
    >>> [row] = encode("posts", 0, 1e9, [Arrived(3, (Item("post-1", 8),))])
    >>> event_body(row)
    {'items': ['post-1']}
    """
    events = decode([row])
    if isinstance(events[0], Observed):
        return {"labels": [_label(event) for event in events if isinstance(event, Observed)]}
    return _body(events[0])


def _label(event: Observed) -> dict[str, Any]:
    label = event.label
    return {
        "item": label.item,
        "labeler": label.labeler,
        "said": label.said,
        "late": event.late,
    }


def _body(event: Event) -> dict[str, Any]:
    match event:
        case Arrived(items=items):
            return {"items": [item.id for item in items]}
        case Assigned(assignments=work):
            return {
                "assignments": [
                    {"item": a.item, "labeler": a.labeler, "gain": number(a.gain)} for a in work
                ]
            }
        case Released(item=item, labeler=who, barred=barred):
            return {"item": item, "labeler": who, "barred": barred}
        case Joined(labeler=labeler):
            priced = {"price": labeler.price} if labeler.price else {}
            return {"labeler": labeler.id, "capacity": labeler.capacity, **priced}
        case Left(labeler=name):
            return {"labeler": name}
        case Closed(exits=exits, revisions=revisions):
            return {
                **({"more": True} if isinstance(event, ClosedPart) else {}),
                "exits": [
                    {
                        "item": e.item,
                        "verdict": e.verdict.label,
                        "confidence": e.verdict.confidence,
                        "labels": e.labels,
                        "reason": e.reason,
                    }
                    for e in exits
                ],
                "revisions": [_revision(r) for r in revisions],
            }
        case Revised(revision=revision):
            return _revision(revision)
        case Withdrawn(item=item):
            return {"item": item}
        case GoldGiven(item=item, label=label, corrects=wrong):
            told = {"item": item, "label": label}
            return told if wrong is None else {**told, "corrects": wrong}
        case Changed():
            kin = {} if event.families is None else {"families": dict(event.families)}
            return {"policy": event.policy, "learning": event.learning, **kin}
        case Observed():
            return _label(event)


def _revision(r: Revision) -> dict[str, Any]:
    return {
        "item": r.item,
        "before": r.before.label,
        "before_confidence": r.before.confidence,
        "verdict": r.verdict.label,
        "confidence": r.verdict.confidence,
        "labels": r.labels,
    }


def number(value: float) -> float | None:
    """A number for JSON: None for NaN and infinities.

    >>> number(1.5), number(math.nan)
    (1.5, None)
    """
    return value if math.isfinite(value) else None


def exit_view(row: ItemRow) -> ExitView:
    """The exit of an item."""
    return ExitView(
        n=row.exit_n or 0,
        item=row.id,
        verdict=row.verdict,
        confidence=row.confidence or 0.0,
        labels=row.labels or 0,
        reason=ExitReason(row.reason or ""),
        arrived_slot=row.arrived_slot,
        slot=row.exit_slot or 0,
        at=row.left_at or 0.0,
    )


def revision_view(row: RevisionRow) -> RevisionView:
    """The revision of a verdict."""
    return RevisionView(
        n=row.n,
        item=row.item,
        before=row.before,
        before_confidence=row.before_confidence,
        verdict=row.verdict,
        confidence=row.confidence,
        labels=row.labels,
        slot=row.slot,
        at=row.at,
    )


def note_view(row: NoteRow) -> NoteView:
    """A note on an item."""
    return NoteView(row.n, row.item, row.labeler, NoteKind(row.kind), row.text, row.at, row.key)


def alarm_view(row: AlarmRow) -> AlarmView:
    """An alarm that was raised or cleared."""
    return AlarmView(
        n=row.n,
        at=row.at,
        rule=row.rule,
        subject=row.subject or None,
        raised=row.raised,
        value=row.value,
        threshold=row.threshold,
        message=row.message,
    )


def label_view(row: LabelRow) -> LabelView:
    """A label of an item."""
    how = row.lead_seconds, row.source, row.key
    return LabelView(row.labeler, row.said, row.at, row.slot, bool(row.late), *how)


def gold_view(row: GoldRow) -> GoldView:
    """Gold of an item, and what it corrected."""
    earlier = tuple(GoldSaid(*said) for said in json.loads(row.earlier or "[]"))
    return GoldView(row.item, row.label, row.at, row.source, row.actor, row.key, earlier)
