"""The tables of a store in memory: dictionaries, and what to undo if a transaction fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from venire.errors import StoreError
from venire.server.store.record import Record
from venire.server.store.records import (
    AlarmRow,
    ArchivedRow,
    AuditRow,
    CheckRow,
    DeliveryRow,
    EngineRow,
    EventRow,
    FollowRow,
    GoldRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    RoutedRow,
    SegmentRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)

__all__ = ["Tables"]

_MISSING: Any = object()

#: Tables with a dictionary for each stream.
_BY_STREAM = frozenset(
    [
        "events",
        "items",
        "revisions",
        "checks",
        "alarms",
        "follows",
        "routed",
        "gold",
        "labels",
        "repeats",
        "notes",
        "segments",
        "archived",
    ]
)


class Tables:
    """One dictionary for each table, or one for each stream and table.

    >>> tables = Tables()
    >>> with tables.transaction():
    ...     tables.new(tables.meta, "a", "1")
    >>> try:
    ...     with tables.transaction():
    ...         tables.put(tables.meta, "a", "2")
    ...         tables.new(tables.meta, "a", "3")
    ... except StoreError:
    ...     tables.meta
    {'a': '1'}
    """

    def __init__(self) -> None:
        self.streams: dict[str, StreamRow] = {}
        self.settings: dict[tuple[str, int], SettingsRow] = {}
        self.logs: dict[str, dict[int, EventRow]] = {}
        self.ends: dict[str, int] = {}  # the number of the next event of a stream
        self.items: dict[str, dict[str, ItemRow]] = {}
        self.exits: dict[str, dict[int, str]] = {}
        self.revisions: dict[str, dict[int, RevisionRow]] = {}
        self.checks: dict[str, dict[int, CheckRow]] = {}
        self.alarms: dict[str, dict[int, AlarmRow]] = {}
        self.follows: dict[str, dict[str, FollowRow]] = {}
        self.routed: dict[str, dict[tuple[str, str, str], RoutedRow]] = {}
        self.gold: dict[str, dict[str, GoldRow]] = {}
        self.labels: dict[str, dict[tuple[str, str], LabelRow]] = {}
        self.repeats: dict[str, dict[tuple[str, str], RepeatRow]] = {}
        self.leases: dict[str, LeaseRow] = {}
        self.notes: dict[str, dict[int, NoteRow]] = {}
        self.snapshots: dict[tuple[str, int], SnapshotRow] = {}
        self.engines: dict[tuple[str, int], EngineRow] = {}
        self.segments: dict[str, dict[int, SegmentRow]] = {}
        self.archived: dict[str, dict[str, ArchivedRow]] = {}
        self.dropped: dict[tuple[str, str, str], int] = {}  # rows that are archived, by tally
        self.keys: dict[str, KeyRow] = {}
        self.webhooks: dict[str, WebhookRow] = {}
        self.deliveries: dict[tuple[str, str, int], DeliveryRow] = {}
        self.meta: dict[str, str] = {}
        self.audit: dict[int, AuditRow] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """If anything fails inside, undo what was done."""
        self._undo.clear()
        try:
            yield
        except BaseException:
            for table, key, old in reversed(self._undo):
                if old is _MISSING:
                    del table[key]
                else:
                    table[key] = old
            raise

    def put(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        """Add or replace a row."""
        self._undo.append((table, key, table.get(key, _MISSING)))
        table[key] = row

    def drop(self, table: dict[Any, Any], key: Any) -> None:
        """Delete a row."""
        self._undo.append((table, key, table[key]))
        del table[key]

    def new(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        """Add a row; `StoreError` if its key exists."""
        if key in table:
            raise StoreError(f"there is a row under {key!r} already, got {row!r}")
        self.put(table, key, row)

    def check_stream(self, stream: str) -> None:
        """`StoreError` if there is no such stream."""
        if stream not in self.streams:
            raise StoreError(f"there is no stream {stream!r} in the store")

    def of(self, tables: dict[str, dict[Any, Any]], stream: str) -> dict[Any, Any]:
        """The table of a stream, which must exist."""
        self.check_stream(stream)
        return tables.setdefault(stream, {})

    def place(self, row: Record) -> tuple[dict[Any, Any], Any]:
        """The table that a row belongs to, and its key there."""
        name, key = row.TABLE.name, tuple(getattr(row, column) for column in row.TABLE.key)
        if row.TABLE.of_stream:
            self.check_stream(row.stream)  # type: ignore[attr-defined]
        table = self.logs if name == "events" else getattr(self, name)
        if name in _BY_STREAM:
            stream, *rest = key
            table, key = self.of(table, stream), tuple(rest)
        return table, key if len(key) > 1 else key[0]

    def rows_of(self, stream: str) -> Iterator[tuple[dict[Any, Any], Any]]:
        """Every row of a stream: its table and its key."""
        for table in (self.logs, self.items, self.exits, self.revisions, self.checks, self.gold,
                      self.alarms, self.follows, self.routed, self.labels, self.repeats,
                      self.notes, self.segments, self.archived):  # fmt: skip
            mine: dict[Any, Any] = table.get(stream, {})
            yield from ((mine, key) for key in mine)
        for rows in (self.settings, self.snapshots, self.engines, self.leases, self.deliveries,
                     self.webhooks):  # fmt: skip
            named: dict[Any, Any] = rows
            yield from ((named, key) for key, row in named.items() if row.stream == stream)
