"""What the stores in SQLite and PostgreSQL share: reading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, cast

from sqlalchemy import Column, Connection, Engine, Select, case, func, select

from venire.model import DeliveryStatus, ItemStatus, LeaseStatus, NoteKind
from venire.server.store.base import SAID_BESIDE, Limit, Said, Storage
from venire.server.store.record import Record
from venire.server.store.records import (
    ERASED,
    UNSETTLED,
    AlarmRow,
    ArchivedRow,
    AuditRow,
    CheckRow,
    Counts,
    DeliveryRow,
    EngineRow,
    EventRow,
    Exited,
    GoldRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    SegmentRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.server.store.sql import queries as q
from venire.server.store.sql import tables as t

R = TypeVar("R", bound=Record)

#: How many names go into one query.
_CHUNK = 500


class SqlReading(Storage):
    """The reads of a store, each one a query."""

    _engine: Engine
    _held: Connection | None = None

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Turn the driver's errors into ours."""

    @abstractmethod
    def _hold(self) -> Connection:
        """A connection on which every read sees the same state."""

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with self._errors():
            held = self._held = self._hold()
        try:
            yield
        finally:
            self._held = None
            held.rollback()
            held.close()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        if self._held is not None:
            with self._errors():
                yield self._held
            return
        with self._errors(), self._engine.connect() as connection:
            yield connection

    def _all(self, row: type[R], query: Select[Any], limit: Limit = None) -> list[R]:
        with self._connection() as connection:
            return list(map(row._make, connection.execute(query.limit(limit))))

    def _first(self, row: type[R], query: Select[Any]) -> R | None:
        found = self._all(row, query, 1)
        return found[0] if found else None

    def _scalar(self, query: Select[Any]) -> Any:
        """The first value of an answer; None if there is none."""
        with self._connection() as connection:
            return connection.execute(query).scalar()

    def _each(self, query: Select[Any], chunk: int) -> Iterator[Any]:
        """The rows of an answer as they are read."""
        with self._connection() as connection:
            yield from connection.execute(query, execution_options={"yield_per": chunk})

    def _among(
        self, columns: tuple[Column[Any], ...], stream: str, names: Iterable[str]
    ) -> Iterator[Any]:
        """These columns of a stream's rows whose first column is one of the names."""
        of, listed = columns[0].table.c.stream == stream, list(names)
        for start in range(0, len(listed), _CHUNK):
            some = columns[0].in_(listed[start : start + _CHUNK])
            with self._connection() as connection:
                yield from connection.execute(select(*columns).where(of, some)).all()

    def _rows_among(
        self, row: type[R], column: Column[Any], stream: str, names: Iterable[str]
    ) -> list[R]:
        """The rows of a stream in which the column is one of the names."""
        found = self._among((column, *column.table.c), stream, names)
        return [row._make(values[1:]) for values in found]

    def _after(
        self,
        row: type[R],
        column: Column[Any],
        stream: str,
        after: str | int | None = None,
        limit: Limit = None,
    ) -> list[R]:
        """The rows of a stream in the order of a column, those after a value of it."""
        query = q.of_stream(column.table, stream).order_by(column)
        return self._all(row, query if after is None else query.where(column > after), limit)

    def _end_of_log(self, stream: str) -> int:
        """The number of the next event."""
        end = self._scalar(q.end_of_log(stream))
        return int(end or self._scalar(q.end_of_archive(stream)) or 0)

    def streams(self) -> list[StreamRow]:
        return self._streams(t.streams.c.deleted_at.is_(None))

    def stream(self, name: str) -> StreamRow | None:
        query = select(t.streams).where(t.streams.c.name == name, t.streams.c.deleted_at.is_(None))
        return self._first(StreamRow, query)

    def deleted_streams(self) -> list[StreamRow]:
        return self._streams(t.streams.c.deleted_at.is_not(None))

    def _streams(self, which: Any) -> list[StreamRow]:
        return self._all(StreamRow, select(t.streams).where(which).order_by(t.streams.c.name))

    def remains(self, stream: str) -> bool:
        return bool(self._scalar(q.remains(stream)))

    def settings(self, stream: str) -> list[SettingsRow]:
        return self._after(SettingsRow, t.settings.c.version, stream)

    def events(self, stream: str, after: int = -1, limit: Limit = None) -> list[EventRow]:
        return self._all(EventRow, q.events(stream, after), limit)

    def engines(self, stream: str) -> list[EngineRow]:
        return self._after(EngineRow, t.engines.c.n, stream)

    def snapshot_numbers(self, stream: str) -> list[int]:
        n = t.snapshots.c.n
        query = select(n).where(t.snapshots.c.stream == stream).order_by(n)
        with self._connection() as connection:
            return list(connection.execute(query).scalars())

    def snapshot(self, stream: str, n: int) -> SnapshotRow | None:
        return self._first(
            SnapshotRow, q.of_stream(t.snapshots, stream).where(t.snapshots.c.n == n)
        )

    def item(self, stream: str, id: str) -> ItemRow | None:
        return self._first(ItemRow, q.of_stream(t.items, stream).where(t.items.c.id == id))

    def items(
        self, stream: str, status: str | None = None, after: str | None = None, limit: Limit = None
    ) -> list[ItemRow]:
        query = q.of_stream(t.items, stream).order_by(t.items.c.id)
        if status is not None:
            query = query.where(t.items.c.status == status)
        if after is not None:
            query = query.where(t.items.c.id > after)
        return self._all(ItemRow, query, limit)

    def known_ids(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        columns = t.items.c.id, t.items.c.digest
        return dict(self._among(columns, stream, ids))

    def exits(
        self, stream: str, after: int = 0, limit: Limit = None, payloads: bool = False
    ) -> list[ItemRow]:
        return self._all(ItemRow, q.exits(stream, after, payloads), limit)

    def recent_exits(self, stream: str, limit: int) -> list[Exited]:
        return self._all(Exited, q.recent_exits(stream, limit))

    def revisions(self, stream: str, after: int = 0, limit: Limit = None) -> list[RevisionRow]:
        return self._after(RevisionRow, t.revisions.c.n, stream, after, limit)

    def revisions_of(self, stream: str, item: str) -> list[RevisionRow]:
        columns = t.revisions.c
        query = q.of_stream(t.revisions, stream).where(columns.item == item)
        return self._all(RevisionRow, query.order_by(columns.n))

    def checks(self, stream: str, after: int = 0, limit: Limit = None) -> list[CheckRow]:
        return self._after(CheckRow, t.checks.c.n, stream, after, limit)

    def gold(self, stream: str, after: str | None = None, limit: Limit = None) -> list[GoldRow]:
        return self._after(GoldRow, t.gold.c.item, stream, after, limit)

    def gold_among(self, stream: str, items: Iterable[str]) -> list[GoldRow]:
        return self._rows_among(GoldRow, t.gold.c.item, stream, items)

    def alarms(self, stream: str, after: int = 0, limit: Limit = None) -> list[AlarmRow]:
        return self._after(AlarmRow, t.alarms.c.n, stream, after, limit)

    def labels_of(self, stream: str, item: str) -> list[LabelRow]:
        query = (
            q.of_stream(t.labels, stream)
            .where(t.labels.c.item == item)
            .order_by(t.labels.c.labeler)
        )
        return self._all(LabelRow, query)

    def labels_among(self, stream: str, items: Iterable[str]) -> list[LabelRow]:
        return self._rows_among(LabelRow, t.labels.c.item, stream, items)

    def open_items(self, stream: str, most: int, chunk: int = 10_000) -> Iterator[ItemRow]:
        return map(ItemRow._make, self._each(q.open_items(stream, most), chunk))

    def open_said(self, stream: str) -> Iterator[tuple[str, str, str]]:
        yield from self._each(q.open_said(stream), 10_000)

    def said(self, stream: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        wanted, columns = set(pairs), t.labels.c
        rows = self._among(
            (columns.item, columns.labeler, columns.said), stream, {item for item, _ in wanted}
        )
        return {(item, who): said for item, who, said in rows if (item, who) in wanted}

    def labels(
        self, stream: str, after: tuple[str, str] | None = None, limit: Limit = None
    ) -> list[LabelRow]:
        return self._all(LabelRow, q.labels_after(stream, after), limit)

    def recent_labels(
        self, stream: str, since: float, labeler: str | None = None, limit: Limit = None
    ) -> list[LabelRow]:
        columns = t.labels.c
        query = q.of_stream(t.labels, stream).where(columns.at >= since)
        if labeler is not None:
            query = query.where(columns.labeler == labeler)
        order = columns.at.desc(), columns.item, columns.labeler
        return self._all(LabelRow, query.order_by(*order), limit)

    def repeats(self, stream: str, item: str | None = None) -> list[RepeatRow]:
        query, columns = q.of_stream(t.repeats, stream), t.repeats.c
        query = query if item is None else query.where(columns.item == item)
        return self._all(RepeatRow, query.order_by(columns.item, columns.labeler))

    def repeat_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        columns = t.repeats.c
        same = func.sum(case((columns.said == columns.before, 1), else_=0))
        query = select(columns.labeler, func.count(), same).where(columns.stream == stream)
        with self._connection() as connection:
            rows = connection.execute(query.group_by(columns.labeler)).all()
        return {str(labeler): (int(number), int(same)) for labeler, number, same in rows}

    def repeatable(self, stream: str, labeler: str, slot: int, limit: int) -> list[LabelRow]:
        labels, items, done = t.labels.c, t.items.c, t.repeats.c
        again = select(done.item).where(
            done.stream == stream, done.item == labels.item, done.labeler == labeler
        )
        query = (
            q.of_stream(t.labels, stream)
            .join(t.items, (items.stream == labels.stream) & (items.id == labels.item))
            .where(labels.labeler == labeler, labels.slot <= slot, ~again.exists())
            .where(items.status == ItemStatus.LEFT, items.digest != ERASED)
            .order_by(labels.at.desc(), labels.item)
        )
        return self._all(LabelRow, query, limit)

    def labels_since(self, stream: str, since: float, labeler: str) -> int:
        columns = t.labels.c
        query = select(func.count()).where(
            columns.stream == stream, columns.labeler == labeler, columns.at >= since
        )
        return int(self._scalar(query) or 0)

    def notes(
        self, stream: str, after: int = 0, limit: Limit = None, item: str | None = None
    ) -> list[NoteRow]:
        query = q.of_stream(t.notes, stream).where(t.notes.c.n > after).order_by(t.notes.c.n)
        if item is not None:
            query = query.where(t.notes.c.item == item)
        return self._all(NoteRow, query, limit)

    def note_counts(self, stream: str) -> dict[str, dict[str, int]]:
        return dict(self._tallies(stream, *NoteKind))

    def labeler_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        found = self._tallies(stream, "labels", "late")
        late = found["late"]
        return {name: (number, late.get(name, 0)) for name, number in found["labels"].items()}

    def _tallies(self, stream: str, *kinds: str) -> dict[str, dict[str, int]]:
        """The tallies of some kinds, in one query: a start asks for many."""
        columns, found = t.tallies.c, {kind: dict[str, int]() for kind in kinds}
        query = select(columns.kind, columns.name, columns.number).order_by(columns.name)
        query = query.where(columns.stream == stream, columns.kind.in_(kinds))
        with self._connection() as connection:
            for kind, name, number in connection.execute(query):
                found[kind][name] = number
        return found

    def given(self, stream: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        wanted, columns = set(pairs), t.leases.c
        rows = self._among((columns.item, columns.labeler), stream, {item for item, _ in wanted})
        return {(item, labeler) for item, labeler in rows} & wanted

    def lease(self, token_hash: str) -> LeaseRow | None:
        return self._first(LeaseRow, select(t.leases).where(t.leases.c.token_hash == token_hash))

    def leases(
        self, stream: str, status: str | None = LeaseStatus.OPEN, since: float | None = None
    ) -> list[LeaseRow]:
        query = q.of_stream(t.leases, stream).order_by(t.leases.c.given_at, t.leases.c.token_hash)
        if status is not None:
            query = query.where(t.leases.c.status == status)
        if since is not None:
            query = query.where(t.leases.c.given_at >= since)
        return self._all(LeaseRow, query)

    def counts(self, stream: str) -> Counts:
        with self._connection() as connection:
            leases, *last = connection.execute(q.counts(stream)).one()
        exits, revisions, notes = map(max, last[:3], last[3:])
        tallies = self._tallies(stream, "items", "labels", "late")
        items = tallies["items"]
        return Counts(
            open=items.get(ItemStatus.OPEN, 0),
            left=items.get(ItemStatus.LEFT, 0),
            withdrawn=items.get(ItemStatus.WITHDRAWN, 0),
            labels=sum(tallies["labels"].values()),
            late=sum(tallies["late"].values()),
            leases=leases,
            events=self._end_of_log(stream),
            exits=exits,
            revisions=revisions,
            notes=notes,
        )

    def open_counts(self) -> dict[str, int]:
        columns = t.tallies.c
        query = select(columns.stream, columns.number)
        query = query.where(columns.kind == "items", columns.name == ItemStatus.OPEN)
        with self._connection() as connection:
            return {row.stream: row.number for row in connection.execute(query)}

    def keys(self) -> list[KeyRow]:
        return self._all(KeyRow, select(t.keys).order_by(t.keys.c.created_at, t.keys.c.id))

    def audit(
        self, after: int = 0, limit: Limit = None, stream: str | None = None
    ) -> list[AuditRow]:
        query = select(t.audit) if stream is None else q.of_stream(t.audit, stream)
        query = query.where(t.audit.c.n > after).order_by(t.audit.c.n)
        return self._all(AuditRow, query, limit)

    def webhooks(self, stream: str | None = None) -> list[WebhookRow]:
        query = select(t.webhooks) if stream is None else q.of_stream(t.webhooks, stream)
        return self._all(WebhookRow, query.order_by(t.webhooks.c.created_at, t.webhooks.c.id))

    def due_deliveries(self, webhook: str, now: float, limit: Limit = None) -> list[DeliveryRow]:
        columns = t.deliveries.c
        query = select(t.deliveries).where(
            columns.webhook == webhook,
            columns.status == DeliveryStatus.PENDING,
            columns.next_at <= now,
        )
        order = columns.next_at, columns.exit_n, columns.kind
        return self._all(DeliveryRow, query.order_by(*order), limit)

    def deliveries(self, webhook: str, status: str | None = None) -> list[DeliveryRow]:
        columns = t.deliveries.c
        query = select(t.deliveries).where(columns.webhook == webhook)
        query = query.order_by(columns.kind, columns.exit_n)
        if status is not None:
            query = query.where(columns.status == status)
        return self._all(DeliveryRow, query)

    def delivery_counts(self, webhook: str) -> dict[str, int]:
        columns = t.deliveries.c
        query = select(func.count()).where(columns.webhook == webhook)
        # one by one: the index is by status too
        return {
            status: int(self._scalar(query.where(columns.status == status)) or 0)
            for status in UNSETTLED
        }

    def meta(self, key: str) -> str | None:
        query = select(t.meta.c.value).where(t.meta.c.key == key)
        return cast("str | None", self._scalar(query))

    def metas(self, prefix: str) -> dict[str, str]:
        key, end = t.meta.c.key, prefix + chr(0x10FFFF)
        with self._connection() as connection:
            rows = connection.execute(select(key, t.meta.c.value).where(key >= prefix, key < end))
            return {row[0]: row[1] for row in rows}

    # what is archived, and what belongs to items that may be

    def leases_among(self, stream: str, items: Iterable[str]) -> list[LeaseRow]:
        return self._rows_among(LeaseRow, t.leases.c.item, stream, items)

    def notes_among(self, stream: str, items: Iterable[str]) -> list[NoteRow]:
        return self._rows_among(NoteRow, t.notes.c.item, stream, items)

    def segments(self, stream: str) -> list[SegmentRow]:
        return self._after(SegmentRow, t.segments.c.n, stream)

    def archived(self, stream: str, ids: Iterable[str]) -> dict[str, ArchivedRow]:
        found = self._rows_among(ArchivedRow, t.archived.c.id, stream, ids)
        return {row.id: row for row in found}

    def archived_after(
        self, stream: str, after: str | None = None, limit: Limit = None
    ) -> list[ArchivedRow]:
        return self._after(ArchivedRow, t.archived.c.id, stream, after, limit)

    def said_in_time(self, stream: str, since: float | None = None) -> Iterator[Said]:
        labels = t.labels.c
        columns = labels.item, labels.labeler, labels.said, labels.slot, labels.late, labels.at
        query = (
            select(*columns, labels.confidence).where(labels.stream == stream).order_by(labels.at)
        )
        if since is not None:
            query = query.where(labels.at >= since)
        return map(tuple, self._each(query, 5_000))

    def said_beside(self, stream: str) -> tuple[str, ...]:
        """Which of the columns have a value."""
        labels = t.labels.c

        def is_there(name: str) -> bool:
            query = select(labels.item).where(labels.stream == stream, labels[name].is_not(None))
            return self._scalar(query.limit(1)) is not None

        return tuple(filter(is_there, SAID_BESIDE))

    def leases_in_time(self, stream: str, since: float | None = None) -> Iterator[LeaseRow]:
        given = t.leases.c.given_at
        query = q.of_stream(t.leases, stream).order_by(given, t.leases.c.token_hash)
        if since is not None:
            query = query.where(given >= since)
        return map(LeaseRow._make, self._each(query, 5_000))

    def stray_items(self, stream: str) -> list[ItemRow]:
        items = t.items.c
        query = q.of_stream(t.items, stream).where(items.exit_n.is_(None))
        return self._all(ItemRow, query.where(items.status != ItemStatus.OPEN).order_by(items.id))

    def first_pending(self, stream: str, kind: str = "exit") -> int | None:
        return cast("int | None", self._scalar(q.first_pending(stream, kind)))
