"""How far the next segment of a stream goes: to a snapshot, before which all is old enough.

A segment ends at a snapshot, so that the log can be replayed from there without it. What is still
to be sent to a webhook stays, and so does what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from venire.events import Closed, GoldGiven, Revised, Withdrawn
from venire.server.store.base import Storage
from venire.server.store.codec import decode
from venire.server.store.records import EventRow, SegmentRow

#: Events in a segment, as far as there are snapshots.
MAX_EVENTS: Final = 1_000_000

#: The kinds of events in which items leave or are revised.
_COUNTED: Final = frozenset({"closed", "closing", "withdrawn", "gold", "revised"})


@dataclass(frozen=True)
class Keep:
    """What stays in the store: what happened at `since` or later, and the last `items` exits.

    What neither of them keeps is archived; None keeps nothing. If both are None, all stays.

    >>> Keep(items=1000).anything
    True
    """

    since: float | None = None
    items: int | None = None

    @property
    def anything(self) -> bool:
        """Whether anything may be archived."""
        return self.since is not None or self.items is not None

    def allows(self, at: float, exits_after: int) -> bool:
        """Whether what ended at `at`, and was followed by that number of exits, may go."""
        old = self.since is not None and at < self.since
        return old or (self.items is not None and exits_after >= self.items)


def next_segment(
    storage: Storage, stream: str, keep: Keep, at: float, check: Callable[[], None] = lambda: None
) -> SegmentRow | None:
    """The segment to archive next, not yet written; None if there is nothing to archive.

    `check` is called now and then, and may raise.
    """
    numbers, before = storage.snapshot_numbers(stream), storage.segments(stream)
    start = (
        before[-1]
        if before
        else SegmentRow(
            stream=stream,
            n=0,
            at=at,
            first_event=0,
            next_event=0,
            ended_at=0.0,
            slot=0,
            exits=0,
            revisions=0,
            notes=0,
            name="",
            digest="",
        )
    )
    first, ends = start.next_event, {n for n in numbers if n > start.next_event}
    if not keep.anything or not ends or first not in numbers:
        return None
    counts, found, made = storage.counts(stream), None, start
    limits = [storage.first_pending(stream, kind) for kind in ("exit", "revision")]
    exits, revisions = start.exits, start.revisions
    for row in storage.all_events(stream, first - 1):
        check()
        left, revised = _counted(row)
        exits, revisions, end = exits + left, revisions + revised, row.n + row.size
        if end not in ends:
            continue
        made = start._replace(next_event=end, ended_at=row.at, exits=exits, revisions=revisions)
        too_far = found is not None and end - first > MAX_EVENTS
        if too_far or not keep.allows(row.at, counts.exits - exits) or not _sent(made, limits):
            break
        found = made
    if found is None:
        return None
    n = start.n + 1
    return found._replace(
        n=n, at=at, first_event=first, slot=_last_slot(storage, stream, counts.events),
        notes=counts.notes, name=f"{n:06}",
    )  # fmt: skip


def _counted(row: EventRow) -> tuple[int, int]:
    """How many items leave in the events of a row, and how many verdicts are revised."""
    if row.kind not in _COUNTED:
        return 0, 0
    exits = revisions = 0
    for event in decode([row]):
        match event:
            case Closed():
                exits += len(event.exits)
                revisions += len(event.revisions)
            case GoldGiven():
                revisions += event.revision is not None
            case Revised():
                revisions += 1
            case Withdrawn():
                exits += 1
    return exits, revisions


def _sent(segment: SegmentRow, pending: list[int | None]) -> bool:
    """Whether nothing in the segment is still to be sent to a webhook."""
    last = segment.exits, segment.revisions
    return all(first is None or n < first for n, first in zip(last, pending, strict=True))


def _last_slot(storage: Storage, stream: str, events: int) -> int:
    """The slot of the last event: what comes later comes in this slot or after it."""
    rows = storage.events(stream, events - 2, 1)
    return rows[-1].slot if rows else 0
