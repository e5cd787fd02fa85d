"""A log replayed by a fresh engine, from its start or from a snapshot, against the tables.

Up to where the log of a stream was checked is kept with the store, as marks. Besides, what the
audit trail says was erased or deleted is to be gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venire.engine import Scheduler
from venire.engine.snapshot import is_older
from venire.errors import ReplayError, StoreError, VenireError
from venire.events import Event
from venire.server.store.changes import VERIFIED, SetMeta
from venire.server.store.log import SlotParts, Writers, decode
from venire.server.store.maintenance.compared import Compared, Mark
from venire.server.store.records import ERASED, EventRow, SegmentRow, SnapshotRow

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage


def read_marks(storage: Storage, stream: str) -> list[Mark]:
    """The marks of earlier verifications.

    >>> from venire.server.store import open_storage
    >>> storage = open_storage("memory:")
    >>> save_marks(storage, "posts", [Mark(7, 2, 0, 5.5, "abc")])
    >>> read_marks(storage, "posts")
    [Mark(n=7, exits=2, revisions=0, at=5.5, digest='abc')]
    """
    with suppress(ValueError, TypeError):
        return [Mark(*row) for row in json.loads(storage.meta(f"{VERIFIED}{stream}") or "[]")]
    return []


def save_marks(storage: Storage, stream: str, marks: Sequence[Mark]) -> None:
    """Keep those marks that have a snapshot; beside earlier ones whose snapshots are still there.

    A store that cannot be written to is checked from the same place the next time.
    """
    there = set(storage.snapshot_numbers(stream))
    known = {mark.n: mark for mark in read_marks(storage, stream) if mark.n in there}
    known.update((mark.n, mark) for mark in marks if mark.digest)
    if marks:
        kept = json.dumps([known[n] for n in sorted(known)])
        with suppress(StoreError):
            storage.write([SetMeta(f"{VERIFIED}{stream}", kept)])


def _digest_of(snapshot: SnapshotRow) -> str:
    return hashlib.sha256(snapshot.body).hexdigest()


def start_of(
    storage: Storage, stream: str, segments: list[SegmentRow], marks: Sequence[Mark]
) -> Mark:
    """Where to begin: after what is archived, at the last mark whose snapshot is the same."""
    start = Mark()
    if segments:
        last = segments[-1]
        start = Mark(last.next_event, last.exits, last.revisions, last.ended_at)
    for mark in sorted(marks, reverse=True):
        snapshot = storage.snapshot(stream, mark.n) if mark.n >= start.n else None
        if snapshot is not None and _digest_of(snapshot) == mark.digest:
            return max(start, mark)
    return start


class Replayed:
    """The log of a stream from `start` on, done again and compared with the tables.

    `seen` is what it said, `marks` are the snapshots with which it agrees.
    """

    def __init__(self, storage: Storage, stream: str, start: Mark) -> None:
        self._storage, self._stream, self._start = storage, stream, start
        first = storage.snapshot(stream, start.n)
        strict = first is None or not is_older(first.body)
        self._writers = Writers(storage.engines(stream), strict)
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
            self.marks.append(seen.reached._replace(digest=_digest_of(snapshot)))


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
        items, exits, revisions, leases = seen.counts
        return Verification(
            stream,
            events=seen.events,
            items=items,
            exits=exits,
            revisions=revisions,
            labels=storage.counts(stream).labels,
            leases=leases,
            snapshots=len(storage.snapshot_numbers(stream)),
            gold=len(seen.gold),
            taken=seen.taken,
            differences=tuple(seen.differences),
            start=start.n,
            archived=segments[-1].next_event if segments else 0,
            marks=() if seen.differences else (start, *replay.marks),
        )


_CHUNK = 1 << 24


@dataclass(frozen=True)
class Deletion:
    """A stream that was deleted, when and by whom, and whether nothing of it is left."""

    stream: str
    at: float
    actor: str
    ok: bool


def deletions(storage: Storage) -> list[Deletion]:
    """The streams that were deleted and not created again, in that order.

    >>> from venire.server.store import AuditRow, Insert, open_storage
    >>> storage = open_storage("memory:")
    >>> entry = AuditRow.load([0, 5.0, "me", None, "stream.delete", "posts"])
    >>> storage.write([Insert([entry])])
    >>> deletions(storage)
    [Deletion(stream='posts', at=5.0, actor='me', ok=True)]
    """
    found: dict[str, tuple[float, str]] = {}
    for row in storage.all_audit():
        if row.stream is not None and row.action == "stream.create":
            found.pop(row.stream, None)
        elif row.stream is not None and row.action == "stream.delete":
            found[row.stream] = row.at, row.actor
    there = {row.name for row in (*storage.streams(), *storage.deleted_streams())}
    return [
        Deletion(name, at, actor, name not in there and not storage.remains(name))
        for name, (at, actor) in found.items()
    ]


def not_erased(storage: Storage, stream: str) -> list[str]:
    """What is left of a stream although the audit trail says that it was erased.

    >>> from venire.server.store import open_storage
    >>> not_erased(open_storage("memory:"), "posts")
    []
    """
    erased: dict[str, None] = {}
    for row in storage.all_audit(stream):
        if row.action == "item.erase" and row.subject is not None:
            erased[row.subject] = None
        elif row.action == "stream.create":  # one of the same name was deleted before
            erased.clear()
    left = []
    for item in erased:
        kept = storage.item(stream, item)
        if kept is not None and (kept.digest != ERASED or kept.payload != "null"):
            left.append(f"the payload of item {item!r} is there, though it was erased")
        if any(label.rationale is not None for label in storage.labels_of(stream, item)):
            left.append(f"the reasons of labels of item {item!r} are there, though it was erased")
    return left


def found_in(store: Path, text: str) -> list[Path]:
    """The files of a SQLite store in which a text is found: the file, its logs, its old versions.

    Call it in a process that has not opened the store: closing a file that SQLite has open lets go
    of the locks on it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "venire.db")
    ...     _ = path.write_text("what somebody said")
    ...     len(found_in(path, "somebody")), len(found_in(path, "nobody"))
    (1, 0)
    """
    beside = sorted(store.parent.glob(f"{store.name}?*"))
    return [path for path in (store, *beside) if path.is_file() and _holds(path, _forms(text))]


def _forms(text: str) -> Sequence[bytes]:
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    return sorted({text.encode(), inside.encode()})


def _holds(path: Path, forms: Sequence[bytes]) -> bool:
    longest = max(map(len, forms))
    return any(any(form in part for form in forms) for part in _parts(path, longest))


def _parts(path: Path, overlap: int) -> Iterator[bytes]:
    """A file in pieces that overlap, so that nothing is missed in between."""
    with open(path, "rb") as file:
        tail = b""
        while chunk := file.read(_CHUNK):
            yield tail + chunk
            tail = (tail + chunk)[-overlap:]
