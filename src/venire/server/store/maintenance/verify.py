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

from collections.abc import Sequence
from dataclasses import dataclass

from venire.errors import VenireError
from venire.server.store.base import Storage
from venire.server.store.maintenance.replayed import Replayed
from venire.server.store.maintenance.starting import Mark, start_of


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
