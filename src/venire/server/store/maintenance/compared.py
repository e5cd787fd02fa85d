"""What a log says, compared with the tables while the log is read.

Memory is for the items that are open, for a window of the log, for gold, and for what differs:
not for the length of the log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast

from venire.errors import StoreDown, StoreError
from venire.events import Arrived, Assigned, Closed, Event, GoldGiven, Observed, Revised, Withdrawn
from venire.model import Item
from venire.server.store.base import Storage
from venire.server.store.maintenance.compared_items import ItemsCompared, RevisionsCompared
from venire.server.store.maintenance.compared_work import (
    LabelsCompared,
    LeasesCompared,
    Pair,
    Whereabouts,
)
from venire.server.store.maintenance.starting import Mark, digest_of_snapshot
from venire.server.store.maintenance.verify_gold import gold_differences
from venire.server.store.records import SnapshotRow

#: What was gathered is compared after this number of events, exits and leases.
WINDOW: Final = 20_000


class Compared:
    """The tables of a stream, and the events that are told one after the other.

    `differences` are those found so far, `events` how many were told, and `taken` how many of them
    are decisions of another version of the engine.
    """

    def __init__(
        self, storage: Storage, stream: str, start: Mark, items: Iterable[Item] = ()
    ) -> None:
        self._storage, self._stream, self.start = storage, stream, start
        self.differences: list[str] = []
        self.gold: dict[str, tuple[str, float]] = {}
        self.events, self.taken, self.at = start.n, 0, start.at
        self._latest, self._told = -math.inf, 0
        self._readable = True
        with self._reading():
            drawn = [row.item for row in storage.checks(stream)]
            where = Whereabouts(storage, stream, start)
            self._items = ItemsCompared(storage, stream, start, drawn)
            self._revisions = RevisionsCompared(storage, stream, start)
            self._labels = LabelsCompared(storage, stream, start, where)
            self._leases = LeasesCompared(storage, stream, start, where, drawn)
            self._items.start_with(items)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Where a table cannot be read, that is a difference, and the last one."""
        try:
            yield
        except StoreDown:
            raise
        except StoreError as error:
            self.differences.append(str(error))
            self._readable = False

    def tell(self, events: Sequence[Event], at: float) -> None:
        """These happened, at one time; several only where all are labels."""
        self.events += len(events)
        if self._told >= WINDOW and at != self.at:  # what came at one time is compared together
            self._flush()
        self.at, self._latest = at, max(self._latest, at)
        if self._readable:
            self._told += len(events)
            self._tell(events, at)

    def _tell(self, events: Sequence[Event], at: float) -> None:
        match events[0]:
            case Observed():
                observed = cast("Sequence[Observed]", events)
                self._labels.add(observed, at)
                self._items.labelled.update([x.label.item for x in observed if not x.late])
            case Arrived() as event:
                self._items.arrive(event.items, event.slot, at)
            case Assigned() as event:
                self._leases.add(event.assignments, at)
                self._told += len(event.assignments)
            case Closed() as event:
                for e in event.exits:
                    self._items.leave(e, at)
                for revision in event.revisions:
                    self._revisions.add(revision)
                self._told += len(event.exits) + len(event.revisions)
            case GoldGiven() as event:
                self.gold[event.item] = str(event.label), at
                if event.revision is not None:
                    self._revisions.add(event.revision)
            case Revised() as event:
                self._revisions.add(event.revision)
            case Withdrawn() as event:
                self._items.withdraw(event.item, event.slot, at)

    def _flush(self) -> None:
        self._told = 0
        with self._reading():
            self.differences += self._items.flush()
            self.differences += self._revisions.flush()
            self.differences += self._labels.flush(self._latest)
            self.differences += self._leases.flush(self._latest)

    def finish(self, out: set[Pair]) -> None:
        """That was all; `out` is the work that is out after it."""
        if self._readable:
            self._flush()
        if not self._readable:
            return
        with self._reading():
            left = {item: how for item, how in self._items.drawn.items() if how is not None}
            self.differences += self._items.finish()
            self.differences += self._revisions.finish()
            self.differences += gold_differences(
                self._storage, self._stream, self.gold, left, self.start.at
            )
            self.differences += self._labels.finish()
            self.differences += self._leases.finish(out)

    def mark(self, snapshot: SnapshotRow) -> Mark:
        """How far it is, with the snapshot that was taken here."""
        return Mark(
            self.events, self.start.exits + self.exits, self.start.revisions + self.revisions,
            self.at, digest_of_snapshot(snapshot),
        )  # fmt: skip

    @property
    def items(self) -> int:
        """How many items were open at the start, or came since."""
        return self._items.came if self._readable else 0

    @property
    def exits(self) -> int:
        """How many items have left since the start."""
        return self._items.exits - self.start.exits if self._readable else 0

    @property
    def revisions(self) -> int:
        """How many verdicts were revised since the start."""
        return self._revisions.count - self.start.revisions if self._readable else 0

    @property
    def leases(self) -> int:
        """How many leases there are since the start."""
        return self._leases.count if self._readable else 0
