"""Is the store what its log says? Everything is computed again from the log, and compared.

The first snapshot of a stream (of nothing) and its events are all that is believed. A fresh
engine does again what the events say, and every decision must come out the same, unless another
version of the engine made it (see `writers`); then the next version goes on from the state with
which it began. What that leaves behind is then held against the tables: the items and how they
left, the labels, the leases, and the other snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from venire.engine import Scheduler
from venire.errors import ReplayError, StoreError, VenireError
from venire.model import Arrived, Closed, Event, Observed, Withdrawn
from venire.storage.base import Storage
from venire.storage.codec import decode
from venire.storage.rows import ItemRow, SnapshotRow
from venire.storage.writers import Writers

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """What was looked at, and every difference that was found."""

    stream: str
    events: int = 0
    items: int = 0
    exits: int = 0
    labels: int = 0
    leases: int = 0
    snapshots: int = 0
    taken: int = 0  # events of another version of the engine, with decisions as it made them
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether log and tables agree."""
        return not self.differences


@dataclass
class _Seen:
    """What the log says: of each item its slot of arrival and how it left, and all labels."""

    arrived: dict[str, int] = field(default_factory=dict)
    exits: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    labels: dict[tuple[str, str], tuple[str, int, bool]] = field(default_factory=dict)
    events: int = 0
    taken: int = 0

    def note(self, event: Event) -> None:
        self.events += 1
        match event:
            case Arrived():
                self.arrived.update((item.id, event.slot) for item in event.items)
            case Observed():
                label = event.label
                said = (str(label.said), event.slot, event.late)
                self.labels[label.item, label.labeler] = said
            case Closed():
                for e in event.exits:
                    verdict = None if e.verdict.label is None else str(e.verdict.label)
                    how = (e.slot, verdict, e.verdict.confidence, e.labels, e.reason)
                    self.exits[e.item] = ("left", len(self.exits) + 1, *how)
            case Withdrawn():
                number = len(self.exits) + 1
                self.exits[event.item] = ("withdrawn", number, event.slot, None, 0.0)


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
            engine, differences = _replay(storage, stream, snapshots, seen)
        except VenireError as error:
            return Verification(stream, seen.events, differences=(str(error),))
        differences += _items(storage, stream, seen)
        differences += _labels(storage, stream, seen)
        differences += _leases(storage, stream, engine, seen)
        counts = storage.counts(stream)
        return Verification(
            stream,
            events=seen.events,
            items=len(seen.arrived),
            exits=len(seen.exits),
            labels=counts.labels,
            leases=len(storage.leases(stream, None)),
            snapshots=len(snapshots),
            taken=seen.taken,
            differences=tuple(differences),
        )


def _replay(
    storage: Storage, stream: str, snapshots: list[SnapshotRow], seen: _Seen
) -> tuple[Scheduler, list[str]]:
    """The engine after the last event, and the snapshots that it does not agree with."""
    if not snapshots or snapshots[0].n != 0:
        raise StoreError("there is no snapshot of the beginning to start from")
    writers = Writers.of(storage, stream, strict=True)
    while True:
        vars(seen).update(vars(_Seen()))
        try:
            return _replay_once(storage, stream, snapshots, seen, writers)
        except ReplayError as error:
            writers.blame(seen.events, error)


def _replay_once(
    storage: Storage, stream: str, snapshots: list[SnapshotRow], seen: _Seen, writers: Writers
) -> tuple[Scheduler, list[str]]:
    """The same; `ReplayError` where an event comes out otherwise, which `seen` then counts to."""
    engine = Scheduler.restore(snapshots[0].body)
    later = list(reversed(snapshots[1:]))
    differences: list[str] = []
    taken = False  # whether the state is another than that of whoever wrote the log
    for row in storage.all_events(stream):
        if row.n != seen.events:
            raise StoreError(f"the log goes on with event {row.n}, expected {seen.events}")
        for event in decode([row]):
            while later and later[-1].n == seen.events:
                snapshot = later.pop()
                if not taken:
                    differences += _snapshot(engine, snapshot)
                elif writers.begins(snapshot.n):
                    engine, taken = Scheduler.restore(snapshot.body), False
            obeys = writers.obeys(seen.events)
            seen.taken += obeys
            taken = taken or obeys
            try:
                engine.follow([event], obeys)
            except VenireError as error:
                raise ReplayError(f"event {seen.events}: {error}") from error
            engine.drain()
            seen.note(event)
    for snapshot in reversed(later):
        if snapshot.n != seen.events:
            differences.append(f"snapshot {snapshot.n} is ahead of the log ({seen.events} events)")
        elif not taken:
            differences += _snapshot(engine, snapshot)
    return engine, differences


def _snapshot(engine: Scheduler, snapshot: SnapshotRow) -> list[str]:
    try:
        kept = Scheduler.restore(snapshot.body)
    except VenireError as error:
        return [f"snapshot {snapshot.n} cannot be read: {error}"]
    if kept.slot >= engine.slot:
        engine.advance(kept.slot)  # slots without exits leave no event
    if engine.drain() or kept.fingerprint() != engine.fingerprint():
        return [f"snapshot {snapshot.n} is another state than the log gives"]
    return []


def _items(storage: Storage, stream: str, seen: _Seen) -> Iterator[str]:
    missing = dict(seen.arrived)
    for row in storage.all_items(stream):
        slot = missing.pop(row.id, None)
        if slot is None:
            yield f"item {row.id!r} is in the table but not in the log"
        elif slot != row.arrived_slot:
            yield f"item {row.id!r} arrived in slot {row.arrived_slot}, the log says {slot}"
        expected = seen.exits.get(row.id, ("open",))
        found = _how(row)[: len(expected)]
        if found != expected:
            yield f"item {row.id!r} is {found}, the log says {expected}"
    for id in missing:
        yield f"item {id!r} is in the log but not in the table"


def _how(row: ItemRow) -> tuple[Any, ...]:
    how = row.exit_slot, row.verdict, row.confidence, row.labels, row.reason
    return row.status, row.exit_n, *how


def _labels(storage: Storage, stream: str, seen: _Seen) -> Iterator[str]:
    missing = dict(seen.labels)
    for row in storage.all_labels(stream):
        name = f"the label of {row.item!r} by {row.labeler!r}"
        expected = missing.pop((row.item, row.labeler), None)
        if expected is None:
            # The engine forgets items that left long ago; a label for one is kept all the same.
            if not row.late or row.item not in seen.exits:
                yield f"{name} is in the table but not in the log"
        elif expected != (row.said, row.slot, row.late):
            yield f"{name} is {(row.said, row.slot, row.late)}, the log says {expected}"
    for item, labeler in missing:
        yield f"the label of {item!r} by {labeler!r} is in the log but not in the table"


def _leases(storage: Storage, stream: str, engine: Scheduler, seen: _Seen) -> Iterator[str]:
    """Work that is out has an open lease, and a lease that is done has its label."""
    pairs = [(row.item, row.labeler) for row in storage.leases(stream)]
    held, out = set(pairs), set(engine.in_flight)
    for item, labeler in sorted(out - held):
        yield f"{labeler!r} has item {item!r} by the log, but there is no open lease"
    for item, labeler in sorted(held - out):
        if item not in seen.exits:
            yield f"{labeler!r} has an open lease of item {item!r}, but not by the log"
    if len(pairs) != len(held):
        yield "a labeler has two open leases of one item"
    done = [(row.item, row.labeler) for row in storage.leases(stream, "done")]
    there = storage.said(stream, done)
    for item, labeler in done:
        if (item, labeler) not in there:
            yield f"the lease of item {item!r} by {labeler!r} is done, but there is no label"
