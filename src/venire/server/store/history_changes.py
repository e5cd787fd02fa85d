"""What can be written about archived history; see `changes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from venire.server.store.segment_rows import ArchivedRow, SegmentRow

__all__ = [
    "AddArchived",
    "AddSegment",
    "DropHistory",
    "EraseArchived",
    "PutBack",
    "RemoveSegment",
    "Restorable",
]

#: The tables from which rows are archived, in the order in which they are put back.
Restorable: TypeAlias = Literal[
    "events", "snapshots", "items", "labels", "leases", "notes", "revisions"
]


@dataclass(frozen=True, slots=True)
class AddSegment:
    """A part of the history is archived: from here on its rows may be dropped."""

    row: SegmentRow


@dataclass(frozen=True, slots=True)
class AddArchived:
    """Items that are in a segment, when a backup is restored."""

    rows: Sequence[ArchivedRow]


@dataclass(frozen=True, slots=True)
class DropHistory:
    """Drop rows that the segment has: events below `events`, exits and revisions up to a number.

    Of the items that go, their ids stay (see `ArchivedRow`), and so do leases that are open, labels
    that came since and gold. Counts stay as they are. The same again changes nothing.
    """

    segment: SegmentRow
    events: int
    exits: int
    revisions: int


@dataclass(frozen=True, slots=True)
class PutBack:
    """Rows of a segment are in their table again; those that are there already stay."""

    table: Restorable
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class RemoveSegment:
    """A segment is restored: all of its rows are back."""

    stream: str
    n: int


@dataclass(frozen=True, slots=True)
class EraseArchived:
    """The payload of an archived item was erased: forget the digest of its content."""

    stream: str
    item: str
