"""A log done again by a fresh engine, from its start or from a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from venire.engine import Scheduler
from venire.engine.snapshot import is_older
from venire.errors import ReplayError, StoreError, VenireError
from venire.events import Event
from venire.server.store.base import Storage
from venire.server.store.codec import SlotParts, decode
from venire.server.store.maintenance.compared import Compared
from venire.server.store.maintenance.marks import Mark, start_of
from venire.server.store.provenance import Writers
from venire.server.store.records import EventRow, SnapshotRow


class Replayed:
    """The log of a stream from `start` on, done again and compared with the tables.

    `seen` is what it said, `marks` are the snapshots with which it agrees.
    """

    def __init__(self, storage: Storage, stream: str, start: Mark) -> None:
        self._storage, self._stream, self._start = storage, stream, start
        first = storage.snapshot(stream, start.n)
        strict = first is None or not is_older(first.body)
        self._writers = Writers.of(storage, stream, strict)
        self._numbers = [n for n in storage.snapshot_numbers(stream) if n >= start.n]
        self._slowly: set[int] = set()  # runs of labels to be done one by one
        self._size = 1  # of the run that is being done
        self.events = start.n
        self.seen: Compared | None = None
        self.marks: list[Mark] = []

    def run(self) -> Compared:
        """Do it; a log that cannot be replayed is a `ReplayError`, or another `VenireError`."""
        while True:
            try:
                return self._once()
            except ReplayError as error:
                if self._size > 1:  # which of them it is shows if they are done one by one
                    self._slowly.add(self.events)
                else:
                    self._writers.blame(self.events, error)

    def _once(self) -> Compared:
        """The same once; `ReplayError` at an event that comes out differently: see `events`."""
        start, writers = self._start, self._writers
        if not self._numbers or self._numbers[0] != start.n:
            raise StoreError(f"there is no snapshot of the start ({start.n} events) to replay from")
        engine = _restored(self._snapshot(start.n))
        items = [engine.item(id) for id in engine.outstanding] if start.n else []
        seen = self.seen = Compared(self._storage, self._stream, start, items)
        self.events, self.marks = start.n, []
        later, parts = self._numbers[:0:-1], SlotParts()
        taken = False  # whether the state may differ from that of the engine that wrote the log
        for row in self._storage.all_events(self._stream, start.n - 1):
            if row.n != self.events:
                raise StoreError(f"the log continues with event {row.n}, expected {self.events}")
            for run in self._runs(_decoded(row)):
                while later and later[-1] == self.events:
                    snapshot = self._snapshot(later.pop())
                    if not taken:
                        self._compare(engine, snapshot, seen)
                    elif writers.begins(snapshot.n):
                        engine, taken = _restored(snapshot), False
                obeys = writers.obeys(self.events)
                seen.taken += len(run) if obeys else 0
                taken = taken or obeys
                try:
                    with _naming(f"event {self.events}"):
                        engine.follow(parts.whole(run), obeys)
                except StoreError as error:
                    raise ReplayError(str(error)) from error
                engine.drain()
                seen.tell(run, row.at)
                self.events = seen.events
        self._size = 1
        self._finish(engine, later, taken, seen)
        parts.finish(engine, writers.obeys(seen.events))  # the server was ended within a slot
        return seen

    def _finish(self, engine: Scheduler, later: list[int], taken: bool, seen: Compared) -> None:
        """The snapshots behind the last event, and the tables."""
        for n in reversed(later):
            if n != seen.events:
                what = f"snapshot {n} is ahead of the log ({seen.events} events)"
                seen.differences.append(what)
            elif not taken:
                self._compare(engine, self._snapshot(n), seen)
        seen.finish(set(engine.in_flight))

    def _runs(self, events: list[Event]) -> Iterator[list[Event]]:
        """The events of a row, as many at once as possible: a run of labels, up to a snapshot."""
        first, end = self.events, self.events + len(events)
        cuts = {first, end}
        if len(events) > 1:
            edges = self._writers.edges().union(self._numbers)
            if any(first <= n < end for n in self._slowly):
                edges = edges.union(range(first, end))
            cuts |= {int(n) for n in edges if first < n < end}
        for a, b in pairwise(sorted(cuts)):
            self._size = b - a
            yield events[a - first : b - first]

    def _snapshot(self, n: int) -> SnapshotRow:
        snapshot = self._storage.snapshot(self._stream, n)
        if snapshot is None:
            raise StoreError(f"snapshot {n} is gone")
        return snapshot

    def _compare(self, engine: Scheduler, snapshot: SnapshotRow, seen: Compared) -> None:
        """Whether a snapshot is the state that the log gives."""
        try:
            kept = _restored(snapshot)
        except StoreError as error:
            seen.differences.append(str(error))
            return
        if kept.slot >= engine.slot:
            engine.advance(kept.slot)  # slots without exits leave no event
        if engine.drain() or kept.fingerprint() != engine.fingerprint():
            what = f"snapshot {snapshot.n} differs from the state that the log gives"
            seen.differences.append(what)
        else:
            self.marks.append(seen.mark(snapshot))


@contextmanager
def _naming(what: str) -> Iterator[Any]:
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

    >>> from venire.server.store import Insert, open_storage
    >>> from venire.server.store import Insert, SnapshotRow, StreamRow
    >>> from venire import Labeler, Scheduler
    >>> engine = Scheduler([Labeler("ann", 0.9)], ["spam", "ok"])
    >>> first = SnapshotRow(stream="posts", n=0, at=0.0, body=engine.snapshot())
    >>> storage = open_storage("memory:")
    >>> storage.write([Insert([StreamRow(name="posts", created_at=0.0)]), Insert([first])])
    >>> verify(storage, "posts").ok
    True
    """
    with storage.frozen():
        segments = storage.segments(stream)
        start = start_of(storage, stream, segments, marks)
        replay = Replayed(storage, stream, start)
        try:
            seen = replay.run()
        except VenireError as error:
            return Verification(stream, replay.events, differences=(str(error),), start=start.n)
        return Verification(
            stream,
            events=seen.events,
            items=seen.items,
            exits=seen.exits,
            revisions=seen.revisions,
            labels=storage.counts(stream).labels,
            leases=seen.leases,
            snapshots=len(storage.snapshot_numbers(stream)),
            gold=len(seen.gold),
            taken=seen.taken,
            differences=tuple(seen.differences),
            start=start.n,
            archived=segments[-1].next_event if segments else 0,
            marks=() if seen.differences else (start, *replay.marks),
        )
