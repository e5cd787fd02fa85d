"""A log done again by a fresh engine, from its start or from a snapshot: what it says happened."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from venire.engine import Scheduler
from venire.errors import ReplayError, StoreError, VenireError
from venire.events import Arrived, Assigned, Closed, Event, GoldGiven, Observed, Revised, Withdrawn
from venire.model import ExitReason, Item, ItemStatus, Revision, Verdict
from venire.storage.base import Storage
from venire.storage.codec import decode
from venire.storage.provenance import Writers
from venire.storage.rows import EventRow, SnapshotRow
from venire.storage.slot_parts import SlotParts

__all__ = ["Mark", "Pair", "Replayed", "Seen", "digest_of_snapshot", "replayed"]

#: The names of an item and of a labeler who has it.
Pair: TypeAlias = tuple[str, str]


class Mark(NamedTuple):
    """A snapshot with which a log agreed: what was before it need not be done again.

    It is after `n` events, `exits` exits and `revisions` revisions, the last of them at `at`;
    `digest` is the SHA-256 of the snapshot.
    """

    n: int = 0
    exits: int = 0
    revisions: int = 0
    at: float = -math.inf
    digest: str = ""


def digest_of_snapshot(snapshot: SnapshotRow) -> str:
    """The SHA-256 of a snapshot."""
    return hashlib.sha256(snapshot.body).hexdigest()


@dataclass
class Seen:
    """What the log says: how each item came and left, what was handed out, and all labels.

    It begins at `start`, when the items in `open` had come and not left. `labelled` counts the
    labels since, of each item that has not left.
    """

    start: Mark = field(default_factory=Mark)
    open: dict[str, Item] = field(default_factory=dict)
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
        """Note what an event says."""
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
                labels = None if event.item in self.open else self.labelled[event.item]
                said = None, 0.0, labels, ExitReason.WITHDRAWN
                self._left(event.item, ItemStatus.WITHDRAWN, event.slot, at, *said)

    def mark(self, at: float, snapshot: SnapshotRow) -> Mark:
        """How far it is, with the snapshot that was taken here."""
        exits = self.start.exits + len(self.exits)
        revisions = self.start.revisions + len(self.revisions)
        return Mark(self.events, exits, revisions, at, digest_of_snapshot(snapshot))

    def has_left(self, item: str) -> bool:
        """Whether an item has left by the end; before the start there were others."""
        known = item in self.arrived or item in self.open or not self.start.n
        return item in self.exits or not known

    def _revised(self, r: Revision) -> None:
        what = (*_said(r.before), *_said(r.verdict), r.labels)
        self.revisions.append(
            (self.start.revisions + len(self.revisions) + 1, r.item, r.slot, *what)
        )

    def _left(self, item: str, status: str, *how: Any) -> None:
        self.labelled.pop(item, None)
        self.exits[item] = (status, self.start.exits + len(self.exits) + 1, *how)


def _said(verdict: Verdict) -> tuple[str | None, float]:
    return None if verdict.label is None else str(verdict.label), verdict.confidence


@dataclass
class Replayed:
    """The work that is out after the last event, what does not agree, and the marks that do."""

    out: set[Pair] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


def replayed(storage: Storage, stream: str, snapshots: list[SnapshotRow], seen: Seen) -> Replayed:
    """Do the events from `seen.start` on again; what they say is noted in `seen`."""
    start = seen.start
    snapshots = [row for row in snapshots if row.n >= start.n]
    if not snapshots or snapshots[0].n != start.n:
        raise StoreError(f"there is no snapshot of the start ({start.n} events) to replay from")
    writers = Writers.of(storage, stream, strict=True)
    while True:
        vars(seen).update(vars(Seen(start, events=start.n)))
        try:
            return _replay_once(storage, stream, snapshots, seen, writers)
        except ReplayError as error:
            writers.blame(seen.events, error)


def _replay_once(
    storage: Storage, stream: str, snapshots: list[SnapshotRow], seen: Seen, writers: Writers
) -> Replayed:
    """The same once; `ReplayError` at an event that comes out differently: `seen` counts to it."""
    engine, found = _restored(snapshots[0]), Replayed()
    if seen.start.n:
        seen.open = {str(id): engine.item(id) for id in engine.outstanding}
    later, at = list(reversed(snapshots[1:])), seen.start.at
    parts = SlotParts()
    taken = False  # whether the state may differ from that of the engine that wrote the log
    for row in storage.all_events(stream, seen.start.n - 1):
        if row.n != seen.events:
            raise StoreError(f"the log continues with event {row.n}, expected {seen.events}")
        for event in _decoded(row):
            while later and later[-1].n == seen.events:
                snapshot = later.pop()
                if not taken:
                    _compare(engine, snapshot, seen.mark(at, snapshot), found)
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
            at = row.at
    for snapshot in reversed(later):
        if snapshot.n != seen.events:
            found.differences.append(
                f"snapshot {snapshot.n} is ahead of the log ({seen.events} events)"
            )
        elif not taken:
            _compare(engine, snapshot, seen.mark(at, snapshot), found)
    found.out = set(engine.in_flight)
    parts.finish(engine, writers.obeys(seen.events))  # the server was ended while it wrote a slot
    return found


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


def _compare(engine: Scheduler, snapshot: SnapshotRow, mark: Mark, found: Replayed) -> None:
    """Whether a snapshot is the state that the log gives."""
    try:
        kept = _restored(snapshot)
    except StoreError as error:
        found.differences.append(str(error))
        return
    if kept.slot >= engine.slot:
        engine.advance(kept.slot)  # slots without exits leave no event
    if engine.drain() or kept.fingerprint() != engine.fingerprint():
        found.differences.append(f"snapshot {snapshot.n} differs from the state that the log gives")
    else:
        found.marks.append(mark)
