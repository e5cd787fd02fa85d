"""What the stores in SQLite and PostgreSQL share: reading what is archived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from sqlalchemy import select

from venire.model import ItemStatus
from venire.server.store.history_reads import Said
from venire.server.store.rows import ArchivedRow, ItemRow, LeaseRow, NoteRow, SegmentRow
from venire.server.store.sql import queries as q
from venire.server.store.sql import tables as t
from venire.server.store.sql.reading import SqlReading

__all__ = ["SqlHistory"]


class SqlHistory(SqlReading):
    """The reads about history, each one a query."""

    def leases_among(self, stream: str, items: Iterable[str]) -> list[LeaseRow]:
        """The leases of some items."""
        columns = (t.leases.c.item, *t.leases.c)
        return [LeaseRow._make(row[1:]) for row in self._among(columns, stream, items)]

    def notes_among(self, stream: str, items: Iterable[str]) -> list[NoteRow]:
        """The notes on some items."""
        columns = (t.notes.c.item, *t.notes.c)
        return [NoteRow._make(row[1:]) for row in self._among(columns, stream, items)]

    def segments(self, stream: str) -> list[SegmentRow]:
        """The archived parts of the history."""
        return self._all(SegmentRow, q.of_stream(t.segments, stream).order_by(t.segments.c.n))

    def archived(self, stream: str, ids: Iterable[str]) -> dict[str, ArchivedRow]:
        """Which of the ids are archived."""
        columns = (t.archived.c.id, *t.archived.c)
        found = (ArchivedRow._make(row[1:]) for row in self._among(columns, stream, ids))
        return {row.id: row for row in found}

    def archived_after(
        self, stream: str, after: str | None = None, limit: int | None = None
    ) -> list[ArchivedRow]:
        """Archived items by id."""
        query = q.of_stream(t.archived, stream).order_by(t.archived.c.id)
        if after is not None:
            query = query.where(t.archived.c.id > after)
        return self._all(ArchivedRow, query, limit)

    def said_in_time(self, stream: str, since: float | None = None) -> Iterator[Said]:
        """What was said, in the order of time."""
        labels = t.labels.c
        columns = labels.item, labels.labeler, labels.said, labels.slot, labels.late, labels.at
        query = select(*columns).where(labels.stream == stream).order_by(labels.at)
        if since is not None:
            query = query.where(labels.at >= since)
        return map(tuple, self._each(query, 5_000))

    def leases_in_time(self, stream: str, since: float | None = None) -> Iterator[LeaseRow]:
        """All leases by time."""
        given, token = t.leases.c.given_at, t.leases.c.token_hash
        query = q.of_stream(t.leases, stream).order_by(given, token)
        if since is not None:
            query = query.where(given >= since)
        return map(LeaseRow._make, self._each(query, 5_000))

    def stray_items(self, stream: str) -> list[ItemRow]:
        """Items that are not open and have no `exit_n`."""
        items = t.items.c
        query = q.of_stream(t.items, stream).where(items.exit_n.is_(None))
        return self._all(ItemRow, query.where(items.status != ItemStatus.OPEN).order_by(items.id))

    def first_pending(self, stream: str, kind: str = "exit") -> int | None:
        """What is to be sent first, by number."""
        return cast("int | None", self._scalar(q.first_pending(stream, kind)))
