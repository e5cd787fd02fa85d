"""Is the store what its log says? Everything is computed again from the log, and compared.

Only the first snapshot of a stream (after 0 events, or after what is archived) and its events are
trusted, and where marks of an earlier verification are given, what was before them. A fresh engine
does again what the events say, and every decision must come out the same, unless another
version of the engine made it (see `provenance`); then the next version continues from the state
with which it began. What comes out is compared with the tables: the items with their weights, who
may label them, when they came and how they left, the labels, the leases, and the other snapshots.
What the log does not hold, the payload of an item, is compared with the digest that was taken of it
when it came.

Not checked, since the log does not hold them: how long a labeler took, when a lease ended, the
settings, the notes, the keys, and the webhooks with their deliveries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from venire.errors import StoreDown, StoreError, VenireError
from venire.model import Item, ItemStatus, LeaseStatus
from venire.storage.base import Storage
from venire.storage.contents import compact, is_content_of
from venire.storage.maintenance.replayed import Mark, Pair, Seen, digest_of_snapshot, replayed
from venire.storage.maintenance.verify_gold import gold_differences
from venire.storage.rows import (
    ERASED,
    ItemRow,
    LabelRow,
    LeaseRow,
    SegmentRow,
    SettingsRow,
    SnapshotRow,
)

__all__ = ["Verification", "verify"]

#: Rows to read at once.
_CHUNK: Final = 5_000


@dataclass(frozen=True)
class Verification:
    """What was checked, and every difference that was found."""

    stream: str
    events: int = 0
    items: int = 0
    exits: int = 0
    revisions: int = 0
    labels: int = 0
    leases: int = 0
    snapshots: int = 0
    gold: int = 0
    taken: int = 0  # events of another version of the engine, with decisions as it made them
    start: int = 0  # the events before are archived, or were checked before
    archived: int = 0  # events that are not in the store
    marks: tuple[Mark, ...] = ()
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether log and tables agree."""
        return not self.differences


def verify(storage: Storage, stream: str, marks: Sequence[Mark] = ()) -> Verification:
    """Replay a stream's log, and compare the store with what comes out.

    The store may be in use: what is compared is one moment of it. What is archived is left out, and
    so is what was before the last of the `marks` whose snapshot is still the same: they are those
    of earlier verifications that found nothing.

    >>> from venire.storage import AddStream, MemoryStorage, SaveSnapshot, SnapshotRow, StreamRow
    >>> from venire import Labeler, Scheduler
    >>> engine = Scheduler([Labeler("ann", 0.9)], ["spam", "ok"])
    >>> first = SnapshotRow("posts", 0, 0.0, engine.snapshot())
    >>> storage = MemoryStorage()
    >>> storage.write([AddStream(StreamRow("posts", 0.0)), SaveSnapshot(first)])
    >>> verify(storage, "posts").ok
    True
    """
    with storage.frozen():
        snapshots, segments = storage.snapshots(stream), storage.segments(stream)
        start = _start(snapshots, segments, marks)
        seen = Seen(start, events=start.n)
        try:
            found = replayed(storage, stream, snapshots, seen)
        except VenireError as error:
            return Verification(stream, seen.events, differences=(str(error),), start=start.n)
        differences, labels, leases = found.differences, 0, 0
        try:
            labels = storage.counts(stream).labels
            differences += _items(storage, stream, seen)
            differences += _revisions(storage, stream, seen)
            differences += gold_differences(storage, stream, seen.gold, seen.exits, start.at)
            differences += _labels(storage, stream, seen)
            rows = storage.leases(stream, None, start.at if start.n else None)
            leases = len(rows)
            differences += _leases(storage, stream, rows, found.out, seen)
        except StoreDown:
            raise
        except StoreError as error:  # a table cannot be read
            differences.append(str(error))
        return Verification(
            stream,
            events=seen.events,
            items=len(seen.arrived) + len(seen.open),
            exits=len(seen.exits),
            revisions=len(seen.revisions),
            labels=labels,
            leases=leases,
            snapshots=len(snapshots),
            gold=len(seen.gold),
            taken=seen.taken,
            differences=tuple(differences),
            start=start.n,
            archived=segments[-1].next_event if segments else 0,
            marks=() if differences else (start, *found.marks),
        )


def _start(snapshots: list[SnapshotRow], segments: list[SegmentRow], marks: Sequence[Mark]) -> Mark:
    """Where to begin: after what is archived, at the last mark whose snapshot is the same."""
    last = segments[-1] if segments else None
    start = Mark()
    if last is not None:
        start = Mark(last.next_event, last.exits, last.revisions, last.ended_at)
    same = {row.n: digest_of_snapshot(row) for row in snapshots} if marks else {}
    return max([start, *(x for x in marks if x.n >= start.n and same.get(x.n) == x.digest)])


def _items(storage: Storage, stream: str, seen: Seen) -> Iterator[str]:
    missing, before = dict(seen.arrived), dict(seen.open)
    costs = {_delay_cost(row) for row in storage.settings(stream)}
    for row in _item_rows(storage, stream, seen.start):
        came, was = missing.pop(row.id, None), before.pop(row.id, None)
        if came is not None:
            yield from _arrival(row, *came, costs)
        elif was is not None:
            yield from _arrival(row, was, row.arrived_slot, row.arrived_at, costs)
        else:
            yield f"item {row.id!r} is in the table but not in the log"
        if row.digest != ERASED and not is_content_of(row):
            yield f"item {row.id!r} does not match the digest of its content"
        expected = seen.exits.get(row.id, (ItemStatus.OPEN,))
        if row.id in seen.exits and row.status == ItemStatus.WITHDRAWN and row.id in seen.open:
            expected = (*expected[:6], row.labels, *expected[7:])  # it may have had some before
        found = _how(row)[: len(expected)]
        if found != expected:
            yield f"item {row.id!r} is {found}, the log says {expected}"
    for id in (*missing, *before):
        yield f"item {id!r} is in the log but not in the table"


def _item_rows(storage: Storage, stream: str, start: Mark) -> Iterator[ItemRow]:
    """The items that were open at the start, or came since."""
    if not start.n:
        yield from storage.all_items(stream)
        return
    yield from storage.open_items(stream, sys.maxsize)
    rows = storage.exits(stream, start.exits, _CHUNK, True)
    while rows:
        yield from rows
        rows = storage.exits(stream, rows[-1].exit_n or 0, _CHUNK, True)


def _arrival(row: ItemRow, item: Item, slot: int, at: float, costs: set[float]) -> Iterator[str]:
    """How an item came; the engine was told its weight in slots of waiting (see delay_cost)."""
    if slot != row.arrived_slot:
        yield f"item {row.id!r} arrived in slot {row.arrived_slot}, the log says {slot}"
    if at != row.arrived_at:
        yield f"item {row.id!r} arrived at {row.arrived_at!r}, the log says {at!r}"
    if all(row.weight / cost != item.weight for cost in costs):
        yield f"item {row.id!r} has weight {row.weight!r}, the log says {item.weight!r}"
    if row.min_confidence != item.min_confidence:
        told = item.min_confidence
        yield f"item {row.id!r} has min_confidence {row.min_confidence}, the log says {told}"
    for name, names in (("eligible", item.eligible), ("excluded", item.excluded)):
        if getattr(row, name) != (None if names is None else compact(sorted(names))):
            yield f"item {row.id!r} has {name} {getattr(row, name)}, the log says {names}"


def _delay_cost(row: SettingsRow) -> float:
    try:
        return float(json.loads(row.body).get("settings", {}).get("delay_cost", 1.0))
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"version {row.version} of the settings cannot be read: {error}") from None


def _how(row: ItemRow) -> tuple[Any, ...]:
    how = row.exit_slot, row.left_at, row.verdict, row.confidence, row.labels, row.reason
    return row.status, row.exit_n, *how


def _revisions(storage: Storage, stream: str, seen: Seen) -> Iterator[str]:
    """The revisions in the table are those of the log, number for number."""
    expected = {row[0]: row for row in seen.revisions}
    for row in storage.all_revisions(stream, seen.start.revisions):
        said = row.before, row.before_confidence, row.verdict, row.confidence, row.labels
        found, wanted = (row.n, row.item, row.slot, *said), expected.pop(row.n, None)
        if wanted is None:
            yield f"revision {row.n} is in the table but not in the log"
        elif found != wanted:
            yield f"revision {row.n} is {found}, the log says {wanted}"
    for n in expected:
        yield f"revision {n} is in the log but not in the table"


def _labels(storage: Storage, stream: str, seen: Seen) -> Iterator[str]:
    missing = dict(seen.labels)
    for row in _label_rows(storage, stream, seen):
        name = f"the label of {row.item!r} by {row.labeler!r}"
        expected = missing.pop((row.item, row.labeler), None)
        if expected is None:
            # The engine forgets items that left long ago; a label for one is kept all the same.
            if row.at > seen.start.at and not (row.late and seen.has_left(row.item)):
                yield f"{name} is in the table but not in the log"
            continue
        found = row.said, row.slot, row.late, row.at
        if found != expected:
            yield f"{name} is {found}, the log says {expected}"
    gone = storage.archived(stream, {item for item, _ in missing}) if seen.start.n else {}
    for item, labeler in missing:
        if item not in gone:
            yield f"the label of {item!r} by {labeler!r} is in the log but not in the table"


def _label_rows(storage: Storage, stream: str, seen: Seen) -> Iterator[LabelRow]:
    """The labels of all items that the events are about; those from before the start too."""
    if not seen.start.n:
        yield from storage.all_labels(stream)
        return
    about = sorted({*seen.arrived, *seen.open, *(item for item, _ in seen.labels)})
    for first in range(0, len(about), _CHUNK):
        yield from storage.labels_among(stream, about[first : first + _CHUNK])


def _leases(
    storage: Storage, stream: str, rows: list[LeaseRow], out: set[Pair], seen: Seen
) -> Iterator[str]:
    """Work that is out has an open lease, and a lease that is done has its label."""
    drawn = {row.item for row in storage.checks(stream)}  # leased to trusted labelers, not given
    for row in rows:
        given = (row.item, row.labeler, row.given_at) in seen.given
        if row.given_at > seen.start.at and not given and row.item not in drawn:
            who = f"{row.labeler!r} has a lease of item {row.item!r}"
            yield f"{who}, given at {row.given_at!r}, which is not in the log"
    pairs = [(row.item, row.labeler) for row in storage.leases(stream)]
    held = set(pairs)
    for item, labeler in sorted(out - held):
        yield f"{labeler!r} has item {item!r} by the log, but there is no open lease"
    for item, labeler in sorted(held - out):
        if not seen.has_left(item):
            yield f"{labeler!r} has an open lease of item {item!r}, but not by the log"
    if len(pairs) != len(held):
        yield "a labeler has two open leases of one item"
    yield from _done(storage, stream, rows, drawn, seen)


def _done(
    storage: Storage, stream: str, rows: list[LeaseRow], drawn: set[str], seen: Seen
) -> Iterator[str]:
    """The leases that are done without a label."""
    done = [(row.item, row.labeler) for row in rows if row.status == LeaseStatus.DONE]
    there = storage.said(stream, done)
    bare = [pair for pair in done if pair not in there]
    golden, gone = set(seen.gold), set[str]()
    if seen.start.n:
        items = [item for item, _ in bare]
        golden, gone = set(storage.gold_of(stream, items)), set(storage.archived(stream, items))
    for item, labeler in bare:
        if item not in gone and not (item in drawn and item in golden):
            yield f"the lease of item {item!r} by {labeler!r} is done, but there is no label"
