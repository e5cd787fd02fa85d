"""Is the store what its log says? Everything is computed again from the log, and compared.

Only the first snapshot of a stream (after 0 events) and its events are trusted. A fresh engine
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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from venire.engine import Scheduler
from venire.errors import ReplayError, StoreDown, StoreError, VenireError
from venire.events import (
    Arrived,
    Assigned,
    Closed,
    Event,
    GoldGiven,
    Observed,
    Revised,
    Withdrawn,
)
from venire.model import ExitReason, Item, ItemStatus, LeaseStatus, Revision, Verdict
from venire.storage.base import Storage
from venire.storage.codec import decode
from venire.storage.contents import compact, is_content_of
from venire.storage.maintenance.verify_gold import gold_differences
from venire.storage.provenance import Writers
from venire.storage.rows import ERASED, EventRow, ItemRow, LeaseRow, SettingsRow, SnapshotRow
from venire.storage.slot_parts import SlotParts

__all__ = ["Verification", "verify"]

#: The names of an item and of a labeler who has it.
Pair: TypeAlias = tuple[str, str]


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
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether log and tables agree."""
        return not self.differences


@dataclass
class _Seen:
    """What the log says: how each item came and left, what was handed out, and all labels.

    `labelled` counts the labels of each item that has not left.
    """

    arrived: dict[str, tuple[Item, int, float]] = field(default_factory=dict)
    exits: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    revisions: list[tuple[Any, ...]] = field(default_factory=list)
    labels: dict[tuple[str, str], tuple[str, int, bool, float]] = field(default_factory=dict)
    given: set[tuple[str, str, float]] = field(default_factory=set)
    labelled: Counter[str] = field(default_factory=Counter)
    gold: dict[str, tuple[str, float]] = field(default_factory=dict)
    events: int = 0
    taken: int = 0

    def note(self, event: Event, at: float) -> None:
        self.events += 1
        match event:
            case Arrived():
                self.arrived.update((item.id, (item, event.slot, at)) for item in event.items)
            case Assigned():
                self.given.update((work.item, work.labeler, at) for work in event.assignments)
            case Observed():
                label = event.label
                self.labels[label.item, label.labeler] = str(label.said), event.slot, event.late, at
                self.labelled[label.item] += not event.late
            case Closed():
                for e in event.exits:
                    how = (*_said(e.verdict), e.labels, e.reason)
                    self._left(e.item, ItemStatus.LEFT, e.slot, at, *how)
                for revision in event.revisions:
                    self._revised(revision)
            case GoldGiven():
                self.gold[event.item] = str(event.label), at
                if event.revision is not None:
                    self._revised(event.revision)
            case Revised():
                self._revised(event.revision)
            case Withdrawn():
                labels = self.labelled[event.item]
                how = None, 0.0, labels, ExitReason.WITHDRAWN
                self._left(event.item, ItemStatus.WITHDRAWN, event.slot, at, *how)

    def _revised(self, r: Revision) -> None:
        what = (*_said(r.before), *_said(r.verdict), r.labels)
        self.revisions.append((len(self.revisions) + 1, r.item, r.slot, *what))

    def _left(self, item: str, status: str, *how: Any) -> None:
        self.labelled.pop(item, None)
        self.exits[item] = (status, len(self.exits) + 1, *how)


def _said(verdict: Verdict) -> tuple[str | None, float]:
    return None if verdict.label is None else str(verdict.label), verdict.confidence


def verify(storage: Storage, stream: str) -> Verification:
    """Replay a stream's log, and compare the store with what comes out.

    The store may be in use: what is compared is one moment of it.

    >>> from venire.storage import AddStream, MemoryStorage, SaveSnapshot, SnapshotRow, StreamRow
    >>> from venire import Labeler
    >>> engine = Scheduler([Labeler("ann", 0.9)], ["spam", "ok"])
    >>> first = SnapshotRow("posts", 0, 0.0, engine.snapshot())
    >>> storage = MemoryStorage()
    >>> storage.write([AddStream(StreamRow("posts", 0.0)), SaveSnapshot(first)])
    >>> verify(storage, "posts").ok
    True
    """
    with storage.frozen():
        seen, snapshots = _Seen(), storage.snapshots(stream)
        try:
            out, differences = _replay(storage, stream, snapshots, seen)
        except VenireError as error:
            return Verification(stream, seen.events, differences=(str(error),))
        labels = leases = 0
        try:
            labels = storage.counts(stream).labels
            differences += _items(storage, stream, seen)
            differences += _revisions(storage, stream, seen)
            differences += gold_differences(storage, stream, seen.gold, seen.exits)
            differences += _labels(storage, stream, seen)
            rows = storage.leases(stream, None)
            leases = len(rows)
            differences += _leases(storage, stream, rows, out, seen)
        except StoreDown:
            raise
        except StoreError as error:  # a table cannot be read
            differences.append(str(error))
        return Verification(
            stream,
            events=seen.events,
            items=len(seen.arrived),
            exits=len(seen.exits),
            revisions=len(seen.revisions),
            labels=labels,
            leases=leases,
            snapshots=len(snapshots),
            gold=len(seen.gold),
            taken=seen.taken,
            differences=tuple(differences),
        )


def _replay(
    storage: Storage, stream: str, snapshots: list[SnapshotRow], seen: _Seen
) -> tuple[set[Pair], list[str]]:
    """The work that is out after the last event, and the snapshots that do not agree with it."""
    if not snapshots or snapshots[0].n != 0:
        raise StoreError("there is no snapshot of the start (0 events) to replay from")
    writers = Writers.of(storage, stream, strict=True)
    while True:
        vars(seen).update(vars(_Seen()))
        try:
            return _replay_once(storage, stream, snapshots, seen, writers)
        except ReplayError as error:
            writers.blame(seen.events, error)


def _replay_once(
    storage: Storage, stream: str, snapshots: list[SnapshotRow], seen: _Seen, writers: Writers
) -> tuple[set[Pair], list[str]]:
    """The same once; `ReplayError` at an event that comes out differently: `seen` counts to it."""
    engine = _restored(snapshots[0])
    later = list(reversed(snapshots[1:]))
    differences: list[str] = []
    parts = SlotParts()
    taken = False  # whether the state may differ from that of the engine that wrote the log
    for row in storage.all_events(stream):
        if row.n != seen.events:
            raise StoreError(f"the log continues with event {row.n}, expected {seen.events}")
        for event in _decoded(row):
            while later and later[-1].n == seen.events:
                snapshot = later.pop()
                if not taken:
                    differences += _snapshot(engine, snapshot)
                elif writers.begins(snapshot.n):
                    engine, taken = _restored(snapshot), False
            obeys = writers.obeys(seen.events)
            seen.taken += obeys
            taken = taken or obeys
            try:
                with _naming(f"event {seen.events}"):
                    engine.follow(parts.whole([event]), obeys)
            except StoreError as error:
                raise ReplayError(str(error)) from error
            engine.drain()
            seen.note(event, row.at)
    for snapshot in reversed(later):
        if snapshot.n != seen.events:
            differences.append(f"snapshot {snapshot.n} is ahead of the log ({seen.events} events)")
        elif not taken:
            differences += _snapshot(engine, snapshot)
    out = set(engine.in_flight)
    parts.finish(engine, writers.obeys(seen.events))  # the server was ended while it wrote a slot
    return out, differences


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Any error becomes a `StoreError` that names the place: damage makes errors of any kind."""
    try:
        yield
    except VenireError as error:
        raise StoreError(f"{what}: {error}") from error
    except Exception as error:
        raise StoreError(f"{what}: {type(error).__name__}: {error}") from error


def _decoded(row: EventRow) -> list[Event]:
    with _naming(f"event {row.n} cannot be read"):
        events = decode([row])
    if len(events) != row.size:
        raise StoreError(f"event {row.n} is {len(events)} events, its row says {row.size}")
    return events


def _restored(snapshot: SnapshotRow) -> Scheduler:
    with _naming(f"snapshot {snapshot.n} cannot be read"):
        return Scheduler.restore(snapshot.body)


def _snapshot(engine: Scheduler, snapshot: SnapshotRow) -> list[str]:
    try:
        kept = _restored(snapshot)
    except StoreError as error:
        return [str(error)]
    if kept.slot >= engine.slot:
        engine.advance(kept.slot)  # slots without exits leave no event
    if engine.drain() or kept.fingerprint() != engine.fingerprint():
        return [f"snapshot {snapshot.n} differs from the state that the log gives"]
    return []


def _items(storage: Storage, stream: str, seen: _Seen) -> Iterator[str]:
    missing = dict(seen.arrived)
    costs = {_delay_cost(row) for row in storage.settings(stream)}
    for row in storage.all_items(stream):
        came = missing.pop(row.id, None)
        if came is None:
            yield f"item {row.id!r} is in the table but not in the log"
        else:
            yield from _arrival(row, *came, costs)
        if row.digest != ERASED and not is_content_of(row):
            yield f"item {row.id!r} does not match the digest of its content"
        expected = seen.exits.get(row.id, (ItemStatus.OPEN,))
        found = _how(row)[: len(expected)]
        if found != expected:
            yield f"item {row.id!r} is {found}, the log says {expected}"
    for id in missing:
        yield f"item {id!r} is in the log but not in the table"


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


def _revisions(storage: Storage, stream: str, seen: _Seen) -> Iterator[str]:
    """The revisions in the table are those of the log, number for number."""
    expected = {row[0]: row for row in seen.revisions}
    for row in storage.all_revisions(stream):
        said = row.before, row.before_confidence, row.verdict, row.confidence, row.labels
        found, wanted = (row.n, row.item, row.slot, *said), expected.pop(row.n, None)
        if wanted is None:
            yield f"revision {row.n} is in the table but not in the log"
        elif found != wanted:
            yield f"revision {row.n} is {found}, the log says {wanted}"
    for n in expected:
        yield f"revision {n} is in the log but not in the table"


def _labels(storage: Storage, stream: str, seen: _Seen) -> Iterator[str]:
    missing = dict(seen.labels)
    for row in storage.all_labels(stream):
        name = f"the label of {row.item!r} by {row.labeler!r}"
        expected = missing.pop((row.item, row.labeler), None)
        if expected is None:
            # The engine forgets items that left long ago; a label for one is kept all the same.
            if not row.late or row.item not in seen.exits:
                yield f"{name} is in the table but not in the log"
            continue
        found = row.said, row.slot, row.late, row.at
        if found != expected:
            yield f"{name} is {found}, the log says {expected}"
    for item, labeler in missing:
        yield f"the label of {item!r} by {labeler!r} is in the log but not in the table"


def _leases(
    storage: Storage, stream: str, rows: list[LeaseRow], out: set[Pair], seen: _Seen
) -> Iterator[str]:
    """Work that is out has an open lease, and a lease that is done has its label."""
    drawn = {row.item for row in storage.checks(stream)}  # leased to trusted labelers, not given
    for row in rows:
        if (row.item, row.labeler, row.given_at) not in seen.given and row.item not in drawn:
            who = f"{row.labeler!r} has a lease of item {row.item!r}"
            yield f"{who}, given at {row.given_at!r}, which is not in the log"
    pairs = [(row.item, row.labeler) for row in rows if row.status == LeaseStatus.OPEN]
    held = set(pairs)
    for item, labeler in sorted(out - held):
        yield f"{labeler!r} has item {item!r} by the log, but there is no open lease"
    for item, labeler in sorted(held - out):
        if item not in seen.exits:
            yield f"{labeler!r} has an open lease of item {item!r}, but not by the log"
    if len(pairs) != len(held):
        yield "a labeler has two open leases of one item"
    done = [(row.item, row.labeler) for row in rows if row.status == LeaseStatus.DONE]
    there = storage.said(stream, done)
    for item, labeler in done:
        if (item, labeler) not in there and not (item in drawn and item in seen.gold):
            yield f"the lease of item {item!r} by {labeler!r} is done, but there is no label"
