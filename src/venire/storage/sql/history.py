"""What the stores in SQLite and PostgreSQL share: reading what is archived."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from venire.storage.rows import ArchivedRow, LeaseRow, NoteRow, SegmentRow
from venire.storage.sql import queries as q
from venire.storage.sql import tables as t
from venire.storage.sql.reading import SqlReading

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

    def first_pending(self, stream: str, kind: str = "exit") -> int | None:
        """What is to be sent first, by number."""
        return cast("int | None", self._scalar(q.first_pending(stream, kind)))
