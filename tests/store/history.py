"""A store in dictionaries: reading what is archived."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tests.store.tables import Tables
from venire.model import DeliveryStatus, ItemStatus
from venire.server.store.records import (
    UNSETTLED,
    ArchivedRow,
    ItemRow,
    LeaseRow,
    NoteRow,
    SegmentRow,
    StreamRow,
)
from venire.server.store.sql.reading import SAID_BESIDE, Said
from venire.server.store.sql.storage import Storage

__all__ = ["MemoryHistory"]

R = TypeVar("R")


class MemoryHistory(Storage):
    """The reads about history, and those that a database has quicker ones for."""

    tables: Tables
    _lock: threading.RLock
    _hold = _transaction = _many = _translated = None  # type: ignore[assignment] # of databases

    def stream(self, name: str) -> StreamRow | None:
        """A stream; None if there is none, or it is deleted."""
        return next((row for row in self.streams() if row.name == name), None)

    def open_items(self, stream: str, most: int, chunk: int = 10_000) -> Iterator[ItemRow]:
        """All items that are open, by id; a payload of more than `most` characters is empty."""
        for row in self.items(stream, ItemStatus.OPEN):
            yield row if len(row.payload) <= most else row._replace(payload="")

    def open_said(self, stream: str) -> Iterator[tuple[str, str, str]]:
        """Item, labeler and label of all labels of open items."""
        for item in self.open_items(stream, 0):
            for row in self.labels_of(stream, item.id):
                yield row.item, row.labeler, row.said

    def delivery_counts(self, webhook: str) -> dict[str, int]:
        """How many deliveries to a webhook are pending, and how many are dead."""
        return {status: len(self.deliveries(webhook, status)) for status in UNSETTLED}

    def leases_among(self, stream: str, items: Iterable[str]) -> list[LeaseRow]:
        """The leases of some items."""
        wanted = set(items)
        return [row for row in self.leases(stream, None) if row.item in wanted]

    def notes_among(self, stream: str, items: Iterable[str]) -> list[NoteRow]:
        """The notes on some items."""
        wanted = set(items)
        return self._sorted(self.tables.notes.get(stream, {}), lambda row: row.item in wanted)

    def segments(self, stream: str) -> list[SegmentRow]:
        """The archived parts of the history."""
        return self._sorted(self.tables.segments.get(stream, {}), lambda row: True)

    def archived(self, stream: str, ids: Iterable[str]) -> dict[str, ArchivedRow]:
        """Which of the ids are archived."""
        kept = self.tables.archived.get(stream, {})
        return {id: kept[id] for id in ids if id in kept}

    def archived_after(
        self, stream: str, after: str | None = None, limit: int | None = None
    ) -> list[ArchivedRow]:
        """Archived items by id."""
        kept = self.tables.archived.get(stream, {})
        return self._sorted(kept, lambda row: after is None or row.id > after)[:limit]

    def said_in_time(self, stream: str, since: float | None = None) -> Iterator[Said]:
        """What was said, in the order of time."""
        rows = self.recent_labels(stream, -math.inf if since is None else since)
        return (
            (x.item, x.labeler, x.said, x.slot, x.late, x.at, x.confidence) for x in reversed(rows)
        )

    def said_beside(self, stream: str) -> tuple[str, ...]:
        """Which of the columns have a value."""
        rows = self.labels(stream)
        return tuple(
            name for name in SAID_BESIDE if any(getattr(x, name) is not None for x in rows)
        )

    def leases_in_time(self, stream: str, since: float | None = None) -> Iterator[LeaseRow]:
        """All leases by time."""
        return iter(self.leases(stream, None, since))

    def stray_items(self, stream: str) -> list[ItemRow]:
        """Items that are not open and have no `exit_n`."""
        rows = self.items(stream)
        return [row for row in rows if row.exit_n is None and row.status != ItemStatus.OPEN]

    def first_pending(self, stream: str, kind: str = "exit") -> int | None:
        """The lowest number of an exit (or revision) that is still to be sent to a webhook."""
        hooks = [hook.id for hook in self.webhooks(stream)]
        pending = [row for id in hooks for row in self.deliveries(id, DeliveryStatus.PENDING)]
        return min((row.exit_n for row in pending if row.kind == kind), default=None)

    def _dropped(self, stream: str, kind: str) -> Counter[str]:
        """How many rows of a kind are archived, by name."""
        found = self.tables.dropped.items()
        return Counter({key[2]: n for key, n in found if n and key[:2] == (stream, kind)})

    def _sorted(self, table: dict[Any, R], wanted: Callable[[R], bool]) -> list[R]:
        """The wanted rows, by their keys."""
        with self._lock:
            return [table[key] for key in sorted(table) if wanted(table[key])]
