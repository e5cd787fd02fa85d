"""How far the next segment of a stream goes; its rows out of the store, and back into it.

A segment ends at a snapshot, so that the log can be replayed from there without it. What is still
to be sent to a webhook stays, and so does what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from venire.errors import FileError, StateError, StoreError
from venire.events import Closed, GoldGiven, Revised, Withdrawn
from venire.server.store import changes as c
from venire.server.store.contents import is_in
from venire.server.store.history.files import (
    PRIVATE,
    TABLES,
    Secret,
    SegmentFiles,
    SegmentWriter,
    chained,
    texts_of,
)
from venire.server.store.log import decode
from venire.server.store.record import Record
from venire.server.store.records import ERASED, EventRow, ItemRow, SegmentRow

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage

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
    first, exits, revisions = 0, 0, 0
    if before:
        first, exits, revisions = before[-1].next_event, before[-1].exits, before[-1].revisions
    ends = {n for n in numbers if n > first}
    if not keep.anything or not ends or first not in numbers:
        return None
    counts, found = storage.counts(stream), None
    limits = [storage.first_pending(stream, kind) for kind in ("exit", "revision")]
    for row in storage.all_events(stream, first - 1):
        check()
        left, revised = _counted(row)
        exits, revisions, end = exits + left, revisions + revised, row.n + row.size
        if end not in ends:
            continue
        too_far = found is not None and end - first > MAX_EVENTS
        allowed = keep.allows(row.at, counts.exits - exits)
        if too_far or not allowed or not _sent(exits, revisions, limits):
            break
        found = end, row.at, exits, revisions
    if found is None:
        return None
    n = before[-1].n + 1 if before else 1
    next_event, ended_at, exits, revisions = found
    return SegmentRow(
        stream=stream,
        n=n,
        at=at,
        first_event=first,
        next_event=next_event,
        ended_at=ended_at,
        slot=_last_slot(storage, stream, counts.events),
        exits=exits,
        revisions=revisions,
        notes=counts.notes,
        name=f"{n:06}",
        digest="",
    )


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


def _sent(exits: int, revisions: int, pending: list[int | None]) -> bool:
    """Whether nothing up to there is still to be sent to a webhook."""
    last = exits, revisions
    return all(first is None or n < first for n, first in zip(last, pending, strict=True))


def _last_slot(storage: Storage, stream: str, events: int) -> int:
    """The slot of the last event: what comes later comes in this slot or after it."""
    rows = storage.events(stream, events - 2, 1)
    return rows[-1].slot if rows else 0


#: Items and rows to read, or to put back, at once.
_CHUNK: Final = 500


@dataclass(frozen=True)
class Steps:
    """How much is dropped in one transaction."""

    items: int = 100
    events: int = 1_000


#: While a server answers others; while nobody waits.
SMALL: Final = Steps()
LARGE: Final = Steps(items=2_000, events=20_000)


def write_segment(
    storage: Storage,
    segment: SegmentRow,
    archive: Path | None,
    check: Callable[[], None] = lambda: None,
) -> SegmentRow:
    """Write the files of a segment, or none if it is only deleted; the segment with its digest.

    `check` is called now and then, and may raise.
    """
    before = [row for row in storage.segments(segment.stream) if row.n < segment.n]
    previous = before[-1].digest if before else ""
    if archive is None:
        unnamed = segment._replace(name="")
        return unnamed._replace(digest=chained(unnamed, previous, {}))
    with SegmentWriter(archive, segment) as writer:
        _write_log(storage, segment, writer, check)
        after, upto = before[-1].exits if before else 0, segment.exits
        while rows := _left(storage, segment, after):
            check()
            after = rows[-1].exit_n or upto
            _write_items(storage, segment, rows, writer)
        return writer.finish(previous)


def _write_log(
    storage: Storage, segment: SegmentRow, writer: SegmentWriter, check: Callable[[], None]
) -> None:
    stream, first, end = segment.stream, segment.first_event, segment.next_event
    for event in storage.all_events(stream, first - 1):
        check()
        if event.n >= end:
            break
        writer.add("events", [event])
    for n in storage.snapshot_numbers(stream):
        snapshot = storage.snapshot(stream, n) if n < end else None
        writer.add("snapshots", [] if snapshot is None else [snapshot])
    rows = storage.revisions(stream, 0, _CHUNK)
    while rows and rows[0].n <= segment.revisions:
        writer.add("revisions", [row for row in rows if row.n <= segment.revisions])
        rows = storage.revisions(stream, rows[-1].n, _CHUNK)


def _left(storage: Storage, segment: SegmentRow, after: int) -> list[ItemRow]:
    """The next items of the segment, by exit number."""
    rows = storage.exits(segment.stream, after, _CHUNK, True)
    return [row for row in rows if row.exit_n is not None and row.exit_n <= segment.exits]


def _write_items(
    storage: Storage, segment: SegmentRow, rows: list[ItemRow], writer: SegmentWriter
) -> None:
    stream, ids = segment.stream, [row.id for row in rows]
    writer.add("items", rows)
    labels, leases = storage.labels_among(stream, ids), storage.leases_among(stream, ids)
    notes = storage.notes_among(stream, ids)
    writer.add("labels", sorted(row for row in labels if is_in(segment, row)))
    writer.add("leases", sorted(row for row in leases if is_in(segment, row)))
    writer.add("notes", sorted(row for row in notes if is_in(segment, row)))


def registering(storage: Storage, segment: SegmentRow) -> list[c.Change]:
    """The changes by which the store knows of a segment; its last snapshot stays from now on."""
    snapshot = storage.snapshot(segment.stream, segment.next_event)
    if snapshot is None:
        raise StateError(f"snapshot {segment.next_event} was removed meanwhile: archive again")
    return [c.Insert([segment]), c.Insert([snapshot])]


def drops(
    storage: Storage, stream: str, archive: Path | None, steps: Steps = SMALL
) -> Iterator[c.DropHistory]:
    """The transactions that drop what the last segment has; each must be made before the next.

    A payload that was erased since the files were written is erased in them first.
    """
    segment = next(iter(storage.segments(stream)[-1:]), None)
    if segment is None:
        return
    files = None if archive is None or not segment.name else SegmentFiles(archive, segment)
    events = exits = revisions = 0
    kept_names: set[str] | None = None
    while rows := storage.exits(stream, exits, steps.items):
        mine = [row for row in rows if row.exit_n is not None and row.exit_n <= segment.exits]
        if not mine:
            break
        erased = [row.id for row in mine if row.digest == ERASED] if files is not None else []
        if files is not None and erased:
            kept_names = files.names("item") if kept_names is None else kept_names
            _erase_too(files, kept_names.intersection(erased))
        exits = mine[-1].exit_n or 0
        yield c.DropHistory(segment, events, exits, revisions)
    while revised := storage.revisions(stream, revisions, steps.events):
        if revised[0].n > segment.revisions:
            break
        revisions = revised[-1].n
        yield c.DropHistory(segment, events, exits, revisions)
    while log := storage.events(stream, -1, 1):
        if log[0].n >= segment.next_event:
            break
        events = max(events, log[0].n) + steps.events
        yield c.DropHistory(segment, events, exits, revisions)
    if storage.snapshot_numbers(stream)[0] < segment.next_event:
        yield c.DropHistory(segment, segment.next_event, exits, revisions)


def _erase_too(files: SegmentFiles, ids: set[str]) -> None:
    """Erase in the files what is erased in the store."""
    if ids:
        texts = [name for id in ids for name in texts_of(files, id)]
        files.erase([*(("item", id) for id in ids), *texts])


def archive_stream(
    storage: Storage,
    stream: str,
    archive: Path | None,
    keep: Keep,
    at: float,
    steps: Steps = LARGE,
    tell: Callable[[str], None] = lambda _: None,
) -> list[SegmentRow]:
    """Archive (or delete, without a folder) all that need not be kept; the new segments.

    For a store that no server uses. `tell` is told of each step.
    """
    _finish(storage, stream, archive, steps, tell)
    made = []
    while (segment := next_segment(storage, stream, keep, at)) is not None:
        segment = write_segment(storage, segment, archive)
        tell(f"wrote segment {segment.n}")
        storage.write(registering(storage, segment))
        tell(f"registered segment {segment.n}")
        _finish(storage, stream, archive, steps, tell)
        made.append(segment)
    return made


def _finish(
    storage: Storage,
    stream: str,
    archive: Path | None,
    steps: Steps,
    tell: Callable[[str], None],
) -> None:
    last = next(iter(storage.segments(stream)[-1:]), None)
    for change in drops(storage, stream, archive, steps):
        if last is not None and last.name and archive is None:
            raise StateError(f"segment {last.n} of {stream!r} is in an archive: name its folder")
        storage.write([change])
        tell(f"dropped up to exit {change.exits}, event {change.events}")


def restore_segment(
    storage: Storage, stream: str, archive: Path, tell: Callable[[str], None] = lambda _: None
) -> SegmentRow | None:
    """Put the rows of the last segment back into the store; None if there is none.

    Its files stay where they are.
    """
    segments = storage.segments(stream)
    if not segments:
        return None
    segment, previous = segments[-1], segments[-2].digest if len(segments) > 1 else ""
    if not segment.name:
        raise StoreError(f"segment {segment.n} of {stream!r} was deleted, and cannot be restored")
    files = SegmentFiles(archive, segment)
    faults = files.faults(previous)
    if faults:
        raise FileError(files.folder, None, f"cannot be restored: {'; '.join(faults)}")
    secrets = {(row.kind, row.name): row for piece in files.secrets() for row in piece}
    for table in TABLES:
        for piece in files.rows(table):
            for start in range(0, len(piece), _CHUNK):
                some = [_whole(table, row, secrets) for row in piece[start : start + _CHUNK]]
                storage.write([c.PutBack(some)])
                tell(f"put back {len(some)} rows of {table}")
    storage.write([c.RemoveSegment(stream, segment.n)])
    tell(f"restored segment {segment.n}")
    return segment


def _whole(table: str, row: Record, secrets: Mapping[tuple[str, str], Secret]) -> Record:
    private = PRIVATE.get(table)
    if private is None:
        return row
    whole: Record = private.whole(row, secrets.get((private.kind, private.name(row))))
    return whole
