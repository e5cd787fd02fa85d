"""Rows of the store as the values that the API returns."""

from __future__ import annotations

import json
import math
from typing import Any

from venire.model import ExitReason, NoteKind
from venire.server.admin_messages import AlarmView
from venire.server.messages import (
    ExitView,
    GoldSaid,
    GoldView,
    LabelView,
    NoteView,
    RepeatView,
    RevisionView,
    RouteView,
    view,
)
from venire.server.store import (
    AlarmRow,
    EventRow,
    GoldRow,
    ItemRow,
    LabelRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    RoutedRow,
    decode,
)


def event_body(row: EventRow) -> dict[str, Any]:
    """A row of the log as a plain object.

    >>> from venire import Item
    >>> from venire.events import Arrived
    >>> from venire.server.store import encode
    >>> [row] = encode("posts", 0, 1e9, [Arrived(3, (Item("post-1", 8),))])
    >>> event_body(row)
    {'items': ['post-1']}
    """
    events = decode([row])
    return events[0].view_of(events)


def number(value: float) -> float | None:
    """A number for JSON: None for NaN and infinities.

    >>> number(1.5), number(math.nan)
    (1.5, None)
    """
    return value if math.isfinite(value) else None


def exit_view(row: ItemRow) -> ExitView:
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
    return view(RevisionView, row)


def note_view(row: NoteRow) -> NoteView:
    return view(NoteView, row, kind=NoteKind(row.kind))


def alarm_view(row: AlarmRow) -> AlarmView:
    return view(AlarmView, row, subject=row.subject or None)


def route_view(row: RoutedRow) -> RouteView:
    return view(RouteView, row)


def repeat_view(row: RepeatRow) -> RepeatView:
    return view(RepeatView, row)


def label_view(row: LabelRow) -> LabelView:
    return view(LabelView, row)


def gold_view(row: GoldRow) -> GoldView:
    """Gold of an item, and what it corrected."""
    earlier = tuple(GoldSaid(*said) for said in json.loads(row.earlier or "[]"))
    return view(GoldView, row, earlier=earlier)
