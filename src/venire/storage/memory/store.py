"""A store in dictionaries: for tests, for trying things out, and as the plain reference.

It keeps what a database keeps and refuses what a database refuses, but nothing is on disk. A
failed `write` is undone step by step.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from venire.errors import StoreDown, StoreError
from venire.model import ItemStatus, LeaseStatus
from venire.storage import changes as c
from venire.storage.memory.webhooks import MemoryHooks
from venire.storage.rows import (
    AuditRow,
    Counts,
    DeliveryRow,
    EngineRow,
    EventRow,
    Exited,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    RevisionRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.storage.snapshot_retention import superfluous

__all__ = ["MemoryStorage"]

R = TypeVar("R")
_MISSING: Any = object()


class MemoryStorage(MemoryHooks):
    """A store that lives as long as its process.

    >>> from venire.storage import AddKey, KeyRow
    >>> storage = MemoryStorage()
    >>> storage.write([AddKey(KeyRow("k1", "5e88...", "admin", None, "first", created_at=0.0))])
    >>> [key.role for key in storage.keys()]
    ['admin']
    """

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._lock = threading.RLock()
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self._closed = False
        self._streams: dict[str, StreamRow] = {}
        self._settings: dict[tuple[str, int], SettingsRow] = {}
        self._logs: dict[str, dict[int, EventRow]] = {}
        self._ends: dict[str, int] = {}
        self._items: dict[str, dict[str, ItemRow]] = {}
        self._exits: dict[str, dict[int, str]] = {}
        self._revisions: dict[str, dict[int, RevisionRow]] = {}
        self._labels: dict[str, dict[tuple[str, str], LabelRow]] = {}
        self._leases: dict[str, LeaseRow] = {}
        self._snapshots: dict[tuple[str, int], SnapshotRow] = {}
        self._engines: dict[tuple[str, int], EngineRow] = {}
        self._keys: dict[str, KeyRow] = {}
        self._webhooks: dict[str, WebhookRow] = {}
        self._deliveries: dict[tuple[str, str, int], DeliveryRow] = {}
        self._meta: dict[str, str] = {}
        self._audit: dict[int, AuditRow] = {}

    # to write

    def write(self, changes: Sequence[c.Change]) -> None:
        """Make the changes as one transaction."""
        with self._lock:
            self.ping()
            self._undo.clear()
            try:
                for change in changes:
                    _APPLY[type(change)](self, change)
            except BaseException:
                for table, key, old in reversed(self._undo):
                    if old is _MISSING:
                        del table[key]
                    else:
                        table[key] = old
                raise

    def ping(self) -> None:
        """Return unless it is closed."""
        if self._closed:
            raise StoreDown("the store is closed")

    def close(self) -> None:
        """Nothing can be written from here on; what is there can still be read."""
        self._closed = True

    def _put(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        self._undo.append((table, key, table.get(key, _MISSING)))
        table[key] = row

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        self._undo.append((table, key, table[key]))
        del table[key]

    def _new(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        if key in table:
            raise StoreError(f"there is a row under {key!r} already, got {row!r}")
        self._put(table, key, row)

    def _of(self, tables: dict[str, dict[Any, Any]], stream: str) -> dict[Any, Any]:
        if stream not in self._streams:
            raise StoreError(f"there is no stream {stream!r} in the store")
        return tables.setdefault(stream, {})

    def _rows_of(self, stream: str) -> Iterator[tuple[dict[Any, Any], Any]]:
        for table in (self._logs, self._items, self._exits, self._revisions, self._labels):
            mine: dict[Any, Any] = table.get(stream, {})
            yield from ((mine, key) for key in mine)
        for rows in (self._settings, self._snapshots, self._engines, self._leases, self._deliveries,
                     self._webhooks):  # fmt: skip
            named: dict[Any, Any] = rows
            yield from ((named, key) for key, row in named.items() if row.stream == stream)

    def _add_stream(self, change: c.AddStream) -> None:
        self._new(self._streams, change.row.name, change.row)

    def _set_status(self, change: c.SetStatus) -> None:
        if change.stream not in self._streams:
            raise StoreError(f"there is no stream {change.stream!r} in the store")
        row = self._streams[change.stream]
        self._put(self._streams, change.stream, row._replace(status=change.status))

    def _add_settings(self, change: c.AddSettings) -> None:
        self._of({}, change.row.stream)
        self._new(self._settings, (change.row.stream, change.row.version), change.row)

    def _add_events(self, change: c.AddEvents) -> None:
        for row in change.rows:
            log = self._of(self._logs, row.stream)
            end = self._ends.get(row.stream, 0)
            if row.n != end:
                raise StoreError(f"got event {row.n} of stream {row.stream!r}, expected {end}")
            self._new(log, row.n, row)
            self._put(self._ends, row.stream, row.n + row.size)

    def _add_items(self, change: c.AddItems) -> None:
        for row in change.rows:
            self._new(self._of(self._items, row.stream), row.id, row)

    def _leave_items(self, change: c.LeaveItems) -> None:
        for row in change.rows:
            items = self._of(self._items, row.stream)
            old = items.get(row.id)
            if old is None or old.status != ItemStatus.OPEN:
                raise StoreError(f"item {row.id!r} of stream {row.stream!r} is not open")
            self._put(items, row.id, old._replace(**row._asdict()))
            self._new(self._of(self._exits, row.stream), row.exit_n, row.id)

    def _add_revisions(self, change: c.AddRevisions) -> None:
        for row in change.rows:
            self._new(self._of(self._revisions, row.stream), row.n, row)

    def _add_labels(self, change: c.AddLabels) -> None:
        for row in change.rows:
            self._new(self._of(self._labels, row.stream), (row.item, row.labeler), row)

    def _add_leases(self, change: c.AddLeases) -> None:
        for row in change.rows:
            self._of({}, row.stream)
            self._new(self._leases, row.token_hash, row)

    def _end_leases(self, change: c.EndLeases) -> None:
        for end in change.rows:
            old = self._leases.get(end.token_hash)
            if old is None:
                raise StoreError(f"there is no lease {end.token_hash!r}")
            row = old._replace(
                status=end.status, ended_at=end.ended_at, answer=end.answer, ended_key=end.key
            )
            self._put(self._leases, end.token_hash, row)

    def _renew_lease(self, change: c.RenewLease) -> None:
        old = self._leases.get(change.token_hash)
        if old is not None:
            self._put(self._leases, change.token_hash, old._replace(ttl=change.ttl))

    def _save_snapshot(self, change: c.SaveSnapshot) -> None:
        row = change.row
        self._of({}, row.stream)
        self._put(self._snapshots, (row.stream, row.n), row)
        began = {n for stream, n in self._engines if stream == row.stream}
        for n in superfluous(self.snapshot_numbers(row.stream), began):
            self._drop(self._snapshots, (row.stream, n))

    def _add_engine(self, change: c.AddEngine) -> None:
        row = change.row
        self._of({}, row.stream)
        self._put(self._engines, (row.stream, row.n), row)

    def _set_meta(self, change: c.SetMeta) -> None:
        self._put(self._meta, change.key, change.value)

    # to read

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold the lock."""
        with self._lock:
            yield

    def streams(self) -> list[StreamRow]:
        """All streams."""
        with self._lock:
            return sorted(row for row in self._streams.values() if row.deleted_at is None)

    def settings(self, stream: str) -> list[SettingsRow]:
        """All versions of the settings."""
        return self._sorted(self._settings, lambda row: row.stream == stream)

    def events(self, stream: str, after: int = -1, limit: int | None = None) -> list[EventRow]:
        """A part of the log."""
        log = self._logs.get(stream, {})
        return self._sorted(log, lambda row: row.n + row.size - 1 > after)[:limit]

    def engines(self, stream: str) -> list[EngineRow]:
        """Versions of the engine."""
        return self._sorted(self._engines, lambda row: row.stream == stream)

    def snapshot_numbers(self, stream: str) -> list[int]:
        """The numbers of all snapshots."""
        with self._lock:
            return sorted(n for name, n in self._snapshots if name == stream)

    def snapshot(self, stream: str, n: int) -> SnapshotRow | None:
        """One snapshot."""
        return self._snapshots.get((stream, n))

    def item(self, stream: str, id: str) -> ItemRow | None:
        """One item."""
        return self._items.get(stream, {}).get(id)

    def items(
        self,
        stream: str,
        status: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[ItemRow]:
        """Items by id."""

        def wanted(row: ItemRow) -> bool:
            return (status is None or row.status == status) and (after is None or row.id > after)

        return self._sorted(self._items.get(stream, {}), wanted)[:limit]

    def known_ids(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """Which of the ids are there."""
        items = self._items.get(stream, {})
        return {id: items[id].digest for id in ids if id in items}

    def exits(self, stream: str, after: int = 0, limit: int | None = None) -> list[ItemRow]:
        """Items that left, in that order."""
        with self._lock:
            numbers = self._exits.get(stream, {})
            wanted = sorted(n for n in numbers if n > after)[:limit]
            return [self._items[stream][numbers[n]]._replace(payload="") for n in wanted]

    def recent_exits(self, stream: str, limit: int) -> list[Exited]:
        """Items that left, the latest first."""
        with self._lock:
            left = [row for row in reversed(self.exits(stream)) if row.status == ItemStatus.LEFT][
                :limit
            ]
            said: dict[str, list[str]] = {row.id: [] for row in left}
            for label in self._labels.get(stream, {}).values():
                if label.item in said and not label.late:
                    said[label.item].append(label.said)
            return [_exited(row, said[row.id]) for row in left]

    def revisions(self, stream: str, after: int = 0, limit: int | None = None) -> list[RevisionRow]:
        """Revisions, in that order."""
        return self._sorted(self._revisions.get(stream, {}), lambda row: row.n > after)[:limit]

    def revisions_of(self, stream: str, item: str) -> list[RevisionRow]:
        """The revisions of an item."""
        return self._sorted(self._revisions.get(stream, {}), lambda row: row.item == item)

    def labels_of(self, stream: str, item: str) -> list[LabelRow]:
        """The labels of an item."""
        return self._sorted(self._labels.get(stream, {}), lambda row: row.item == item)

    def said(self, stream: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """What was said, where anything was."""
        labels = self._labels.get(stream, {})
        return {pair: labels[pair].said for pair in pairs if pair in labels}

    def labels(
        self, stream: str, after: tuple[str, str] | None = None, limit: int | None = None
    ) -> list[LabelRow]:
        """Labels by item and labeler."""
        found = self._sorted(
            self._labels.get(stream, {}),
            lambda row: after is None or (row.item, row.labeler) > after,
        )
        return found[:limit]

    def recent_labels(
        self, stream: str, since: float, labeler: str | None = None, limit: int | None = None
    ) -> list[LabelRow]:
        """Labels by time."""
        found = self._sorted(
            self._labels.get(stream, {}),
            lambda row: row.at >= since and labeler in (None, row.labeler),
        )
        return sorted(found, key=lambda row: row.at, reverse=True)[:limit]

    def labeler_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """Labels, and late labels, by labeler."""
        rows = self._sorted(self._labels.get(stream, {}), lambda row: True)
        total, late = Counter(r.labeler for r in rows), Counter(r.labeler for r in rows if r.late)
        return {name: (total[name], late[name]) for name in sorted(total)}

    def lease(self, token_hash: str) -> LeaseRow | None:
        """One lease."""
        return self._leases.get(token_hash)

    def leases(self, stream: str, status: str | None = LeaseStatus.OPEN) -> list[LeaseRow]:
        """Leases by time."""
        found = self._sorted(
            self._leases, lambda row: row.stream == stream and status in (None, row.status)
        )
        return sorted(found, key=lambda row: (row.given_at, row.token_hash))

    def counts(self, stream: str) -> Counts:
        """How many rows of each kind a stream has."""
        with self._lock:
            items = Counter(row.status for row in self._items.get(stream, {}).values())
            late = Counter(row.late for row in self._labels.get(stream, {}).values())
            leases = len(self.leases(stream))
            return Counts(
                open=items[ItemStatus.OPEN],
                left=items[ItemStatus.LEFT],
                withdrawn=items[ItemStatus.WITHDRAWN],
                labels=late.total(),
                late=late[True],
                leases=leases,
                events=self._ends.get(stream, 0),
                exits=max(self._exits.get(stream, {}), default=0),
                revisions=max(self._revisions.get(stream, {}), default=0),
            )

    def meta(self, key: str) -> str | None:
        """A named value."""
        return self._meta.get(key)

    def _sorted(self, table: dict[Any, R], wanted: Callable[[R], bool]) -> list[R]:
        """The wanted rows, by their keys."""
        with self._lock:
            return [table[key] for key in sorted(table) if wanted(table[key])]


def _exited(row: ItemRow, said: list[str]) -> Exited:
    return Exited(
        row.id,
        row.arrived_slot,
        row.arrived_at,
        row.exit_slot or 0,
        row.left_at or 0.0,
        row.verdict,
        row.confidence or 0.0,
        row.labels or 0,
        row.reason or "",
        len(said),
        sum(label == row.verdict for label in said),
    )


def _method(kind: type) -> Any:
    """The method that makes a change: `_add_stream` makes AddStream."""
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__)
    return getattr(MemoryStorage, name)


_APPLY: dict[type, Callable[[MemoryStorage, Any], None]] = {
    kind: _method(kind) for kind in c.Change.__args__
}
