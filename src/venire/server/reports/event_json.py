"""Rows of the store as the values that the API returns."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache
from typing import Any, TypeVar

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
from venire.server.store.record import Record

V = TypeVar("V")


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
    return _view(RevisionView, row)


def note_view(row: NoteRow) -> NoteView:
    return _view(NoteView, row, kind=NoteKind(row.kind))


def alarm_view(row: AlarmRow) -> AlarmView:
    return _view(AlarmView, row, subject=row.subject or None)


def route_view(row: RoutedRow) -> RouteView:
    """Where a verdict sent an item."""
    return _view(RouteView, row)


def repeat_view(row: RepeatRow) -> RepeatView:
    """What somebody said who was asked again."""
    return _view(RepeatView, row)


def label_view(row: LabelRow) -> LabelView:
    return _view(LabelView, row)


def gold_view(row: GoldRow) -> GoldView:
    """Gold of an item, and what it corrected."""
    earlier = tuple(GoldSaid(*said) for said in json.loads(row.earlier or "[]"))
    return _view(GoldView, row, earlier=earlier)


def _view(view: type[V], row: Record, /, **other: Any) -> V:
    """What a view shows of a row: the columns of the same names, but for what is given."""
    names: tuple[str, ...] = _shown(view)  # type: ignore[arg-type] # classes are hashable
    shown = {name: getattr(row, name) for name in names if name not in other}
    return view(**shown, **other)


@cache
def _shown(view: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(view))
