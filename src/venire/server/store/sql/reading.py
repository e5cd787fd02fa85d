"""What is read of the streams of a store: logs, items, labels, leases, and what is archived."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    and_,
    case,
    exc,
    exists,
    func,
    literal,
    or_,
    select,
)

from venire.errors import StoreDown, StoreError
from venire.model import ItemStatus, LeaseStatus, NoteKind
from venire.server.store.ownership import Ownership
from venire.server.store.record import Record
from venire.server.store.records import (
    ERASED,
    AlarmRow,
    ArchivedRow,
    CheckRow,
    Counts,
    EngineRow,
    EventRow,
    Exited,
    GoldRow,
    ItemRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    SegmentRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
)
from venire.server.store.sql import tables as t

R = TypeVar("R", bound=Record)

#: How many names go into one query.
_CHUNK = 500


#: At most how many rows; None for all.
Limit: TypeAlias = int | None

#: Item, labeler, label, slot, whether it was late, time, and how sure the labeler was.
Said: TypeAlias = tuple[str, str, str, int, bool, float, float | None]

#: What a label may have beside the class: how sure its labeler was, and why.
SAID_BESIDE: Final = ("confidence", "rationale")


def of_stream(table: Table, stream: str) -> Select[Any]:
    return select(table).where(table.c.stream == stream)


def _open(stream: str) -> tuple[ColumnElement[bool], ...]:
    return t.items.c.stream == stream, t.items.c.status == ItemStatus.OPEN


def _with_payload(payload: Any) -> Select[Any]:
    """Items with something else in the place of their payloads."""
    return select(*(payload if column.name == "payload" else column for column in t.items.c))


class Reading(Ownership, ABC):
    """The reads about streams, their logs and their items, each one a query."""

    _engine: Engine
    _held: Connection | None = None

    _driver_error: type[Exception]

    @abstractmethod
    def _translated(self, error: BaseException) -> StoreError:
        """An error of the driver as one of ours."""

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (self._driver_error, exc.DBAPIError) as error:
            raise self._translated(getattr(error, "orig", None) or error) from error
        except exc.TimeoutError as error:
            raise StoreDown("all connections to the store are in use") from error
        except UnicodeEncodeError as error:
            raise StoreError(f"got text that is not Unicode: {error.reason}") from error

    @abstractmethod
    def _hold(self) -> Connection:
        """A connection on which every read sees the same state."""

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Inside, all reads see one state, whatever is written meanwhile.

        For a tool with one thread that reads a store in use.
        """
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
        query = of_stream(column.table, stream).order_by(column)
        return self._all(row, query if after is None else query.where(column > after), limit)

    def _end_of_log(self, stream: str) -> int:
        """The number of the next event, by the last row: the others are not read."""
        events, segments = t.events.c, t.segments.c
        last = select(events.n + events.size).where(events.stream == stream)
        archived = select(func.max(segments.next_event)).where(segments.stream == stream)
        end = self._scalar(last.order_by(events.n.desc()).limit(1))
        return int(end or self._scalar(archived) or 0)

    def streams(self) -> list[StreamRow]:
        """All streams that are not deleted, by name."""
        return self._streams(t.streams.c.deleted_at.is_(None))

    def stream(self, name: str) -> StreamRow | None:
        """A stream; None if there is none, or it is deleted."""
        query = select(t.streams).where(t.streams.c.name == name, t.streams.c.deleted_at.is_(None))
        return self._first(StreamRow, query)

    def deleted_streams(self) -> list[StreamRow]:
        """Deleted streams of which rows are left, by name."""
        return self._streams(t.streams.c.deleted_at.is_not(None))

    def _streams(self, which: Any) -> list[StreamRow]:
        return self._all(StreamRow, select(t.streams).where(which).order_by(t.streams.c.name))

    def remains(self, stream: str) -> bool:
        """Whether there is any row of a stream, beside the stream itself."""
        tables = [t.metadata.tables[name] for name in t.OF_STREAMS]
        found = or_(*(exists().where(table.c.stream == stream) for table in tables))
        return bool(self._scalar(select(found)))

    def settings(self, stream: str) -> list[SettingsRow]:
        """All versions of a stream's settings, oldest first."""
        return self._after(SettingsRow, t.settings.c.version, stream)

    def events(self, stream: str, after: int = -1, limit: Limit = None) -> list[EventRow]:
        """Rows with an event above number `after`, oldest first, at most `limit` rows.

        A row holds `size` events, so the first row may begin at or before `after`.
        """
        # the row that holds event `after` may go on behind it: begin at that row
        n, size = t.events.c.n, t.events.c.size
        begin = select(func.max(n)).where(t.events.c.stream == stream, n <= after)
        behind = n >= func.coalesce(begin.scalar_subquery(), 0), n + size - 1 > after
        return self._all(EventRow, of_stream(t.events, stream).where(*behind).order_by(n), limit)

    def engines(self, stream: str) -> list[EngineRow]:
        """Which versions of the engine wrote the log, oldest first; none in an old store."""
        return self._after(EngineRow, t.engines.c.n, stream)

    def snapshot_numbers(self, stream: str) -> list[int]:
        """After how many events each snapshot was taken, ascending."""
        n = t.snapshots.c.n
        query = select(n).where(t.snapshots.c.stream == stream).order_by(n)
        with self._connection() as connection:
            return list(connection.execute(query).scalars())

    def snapshot(self, stream: str, n: int) -> SnapshotRow | None:
        """The snapshot that was taken after `n` events."""
        return self._first(SnapshotRow, of_stream(t.snapshots, stream).where(t.snapshots.c.n == n))

    def snapshots(self, stream: str) -> list[SnapshotRow]:
        found = [self.snapshot(stream, n) for n in self.snapshot_numbers(stream)]
        return [row for row in found if row is not None]

    def item(self, stream: str, id: str) -> ItemRow | None:
        """One item."""
        return self._first(ItemRow, of_stream(t.items, stream).where(t.items.c.id == id))

    def items(
        self, stream: str, status: str | None = None, after: str | None = None, limit: Limit = None
    ) -> list[ItemRow]:
        """Items in the order of their ids, from the one behind `after`."""
        query = of_stream(t.items, stream).order_by(t.items.c.id)
        if status is not None:
            query = query.where(t.items.c.status == status)
        if after is not None:
            query = query.where(t.items.c.id > after)
        return self._all(ItemRow, query, limit)

    def known_ids(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """Those of the ids that exist, with the digest of their content."""
        columns = t.items.c.id, t.items.c.digest
        return dict(self._among(columns, stream, ids))

    def exits(
        self, stream: str, after: int = 0, limit: Limit = None, payloads: bool = False
    ) -> list[ItemRow]:
        """Items that left with an `exit_n` above `after`, in that order.

        Unless `payloads` are asked for, an empty text stands in their place.
        """
        n, payload = t.items.c.exit_n, t.items.c.payload if payloads else literal("")
        query = _with_payload(payload).where(t.items.c.stream == stream, n > after)
        return self._all(ItemRow, query.order_by(n), limit)

    def recent_exits(self, stream: str, limit: int) -> list[Exited]:
        """The items that left last, the latest first, without those that were withdrawn."""
        items, labels = t.items.c, t.labels.c
        names = "id arrived_slot arrived_at exit_slot left_at verdict confidence labels reason"
        left = (
            select(items.exit_n, *(items[name] for name in names.split()))
            .where(items.stream == stream, items.status == ItemStatus.LEFT)
            .order_by(items.exit_n.desc())
            .limit(limit)
            .subquery()
        ).c
        theirs = and_(labels.stream == stream, labels.item == left.id, labels.late.is_(False))
        agreed = func.sum(case((labels.said == left.verdict, 1), else_=0))
        query = (
            select(*list(left)[1:], func.count(labels.said), agreed)
            .outerjoin(t.labels, theirs)
            .group_by(*left)
            .order_by(left.exit_n.desc())
        )
        return self._all(Exited, query)

    def revisions(self, stream: str, after: int = 0, limit: Limit = None) -> list[RevisionRow]:
        """Revisions with an `n` above `after`, in that order."""
        return self._after(RevisionRow, t.revisions.c.n, stream, after, limit)

    def revisions_of(self, stream: str, item: str) -> list[RevisionRow]:
        """The revisions of an item, the earliest first."""
        columns = t.revisions.c
        query = of_stream(t.revisions, stream).where(columns.item == item)
        return self._all(RevisionRow, query.order_by(columns.n))

    def checks(self, stream: str, after: int = 0, limit: Limit = None) -> list[CheckRow]:
        """Verdicts drawn to be audited with an `n` above `after`, in that order."""
        return self._after(CheckRow, t.checks.c.n, stream, after, limit)

    def gold(self, stream: str, after: str | None = None, limit: Limit = None) -> list[GoldRow]:
        """Gold by item, from the one behind `after`."""
        return self._after(GoldRow, t.gold.c.item, stream, after, limit)

    def gold_among(self, stream: str, items: Iterable[str]) -> list[GoldRow]:
        """The gold of some items."""
        return self._rows_among(GoldRow, t.gold.c.item, stream, items)

    def gold_of(self, stream: str, items: Iterable[str]) -> dict[str, str]:
        """Those of the items that have gold, and what it is."""
        return {row.item: row.label for row in self.gold_among(stream, items)}

    def alarms(self, stream: str, after: int = 0, limit: Limit = None) -> list[AlarmRow]:
        """Alarms raised and cleared with an `n` above `after`, in that order."""
        return self._after(AlarmRow, t.alarms.c.n, stream, after, limit)

    def labels_of(self, stream: str, item: str) -> list[LabelRow]:
        """The labels of an item, in the order of the labelers' names."""
        query = (
            of_stream(t.labels, stream).where(t.labels.c.item == item).order_by(t.labels.c.labeler)
        )
        return self._all(LabelRow, query)

    def labels_among(self, stream: str, items: Iterable[str]) -> list[LabelRow]:
        """The labels of these items, in no particular order."""
        return self._rows_among(LabelRow, t.labels.c.item, stream, items)

    def open_items(self, stream: str, most: int, chunk: int = 10_000) -> Iterator[ItemRow]:
        """All items that are open, by id, read in chunks.

        In the place of a payload of more than `most` characters stands an empty text.
        """
        items = t.items.c
        payload = case((func.length(items.payload) <= most, items.payload), else_="")
        query = _with_payload(payload).where(*_open(stream)).order_by(items.id)
        return map(ItemRow._make, self._each(query, chunk))

    def open_said(self, stream: str) -> Iterator[tuple[str, str, str]]:
        """Item, labeler and label of all labels of open items."""
        labels, here = t.labels.c, select(t.items.c.id).where(*_open(stream))
        query = select(labels.item, labels.labeler, labels.said)
        query = query.where(labels.stream == stream, labels.item.in_(here))
        yield from self._each(query, 10_000)

    def said(self, stream: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Those of the pairs (item, labeler) that have a label, and the label."""
        wanted, columns = set(pairs), t.labels.c
        rows = self._among(
            (columns.item, columns.labeler, columns.said), stream, {item for item, _ in wanted}
        )
        return {(item, who): said for item, who, said in rows if (item, who) in wanted}

    def labels(
        self, stream: str, after: tuple[str, str] | None = None, limit: Limit = None
    ) -> list[LabelRow]:
        """Labels by item and labeler, from the one behind the pair `after`."""
        columns = t.labels.c
        query = of_stream(t.labels, stream).order_by(columns.item, columns.labeler)
        if after is not None:
            item, labeler = after
            later = and_(columns.item == item, columns.labeler > labeler)
            query = query.where(columns.item >= item, or_(columns.item > item, later))
        return self._all(LabelRow, query, limit)

    def recent_labels(
        self, stream: str, since: float, labeler: str | None = None, limit: Limit = None
    ) -> list[LabelRow]:
        """Labels that came at `since` or later, newest first."""
        columns = t.labels.c
        query = of_stream(t.labels, stream).where(columns.at >= since)
        if labeler is not None:
            query = query.where(columns.labeler == labeler)
        order = columns.at.desc(), columns.item, columns.labeler
        return self._all(LabelRow, query.order_by(*order), limit)

    def repeats(self, stream: str, item: str | None = None) -> list[RepeatRow]:
        """What labelers said who were asked again, of all items or one; by item and labeler."""
        query, columns = of_stream(t.repeats, stream), t.repeats.c
        query = query if item is None else query.where(columns.item == item)
        return self._all(RepeatRow, query.order_by(columns.item, columns.labeler))

    def repeat_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """How often each labeler was asked again and answered, and how often it said the same."""
        columns = t.repeats.c
        same = func.sum(case((columns.said == columns.before, 1), else_=0))
        query = select(columns.labeler, func.count(), same).where(columns.stream == stream)
        with self._connection() as connection:
            rows = connection.execute(query.group_by(columns.labeler)).all()
        return {str(labeler): (int(number), int(same)) for labeler, number, same in rows}

    def repeatable(self, stream: str, labeler: str, slot: int, limit: int) -> list[LabelRow]:
        """Labels that the labeler gave up to a slot, the latest first, which it may repeat.

        Their items have left with a verdict and were not erased, and it did not repeat them yet.
        """
        labels, items, done = t.labels.c, t.items.c, t.repeats.c
        again = select(done.item).where(
            done.stream == stream, done.item == labels.item, done.labeler == labeler
        )
        query = (
            of_stream(t.labels, stream)
            .join(t.items, (items.stream == labels.stream) & (items.id == labels.item))
            .where(labels.labeler == labeler, labels.slot <= slot, ~again.exists())
            .where(items.status == ItemStatus.LEFT, items.digest != ERASED)
            .order_by(labels.at.desc(), labels.item)
        )
        return self._all(LabelRow, query, limit)

    def labels_since(self, stream: str, since: float, labeler: str) -> int:
        """How many labels of a labeler came at `since` or later."""
        columns = t.labels.c
        query = select(func.count()).where(
            columns.stream == stream, columns.labeler == labeler, columns.at >= since
        )
        return int(self._scalar(query) or 0)

    def notes(
        self, stream: str, after: int = 0, limit: Limit = None, item: str | None = None
    ) -> list[NoteRow]:
        """Notes of labelers with an `n` above `after`, in that order; of one item, or all."""
        query = of_stream(t.notes, stream).where(t.notes.c.n > after).order_by(t.notes.c.n)
        if item is not None:
            query = query.where(t.notes.c.item == item)
        return self._all(NoteRow, query, limit)

    def note_counts(self, stream: str) -> dict[str, dict[str, int]]:
        """For each kind of note, how many there are of each labeler who made one."""
        return dict(self._tallies(stream, *NoteKind))

    def labeler_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """For each labeler with a label: how many there are, and how many of them were late."""
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
        """Those of the pairs (item, labeler) that have or had a lease."""
        wanted, columns = set(pairs), t.leases.c
        rows = self._among((columns.item, columns.labeler), stream, {item for item, _ in wanted})
        return {(item, labeler) for item, labeler in rows} & wanted

    def lease(self, token_hash: str) -> LeaseRow | None:
        """One lease."""
        return self._first(LeaseRow, select(t.leases).where(t.leases.c.token_hash == token_hash))

    def leases(
        self, stream: str, status: str | None = LeaseStatus.OPEN, since: float | None = None
    ) -> list[LeaseRow]:
        """Leases by the time they were given, from `since` on."""
        query = of_stream(t.leases, stream).order_by(t.leases.c.given_at, t.leases.c.token_hash)
        if status is not None:
            query = query.where(t.leases.c.status == status)
        if since is not None:
            query = query.where(t.leases.c.given_at >= since)
        return self._all(LeaseRow, query)

    def counts(self, stream: str) -> Counts:
        """How many rows of each kind a stream has."""

        def number(table: Table, what: Any, *where: Any) -> Any:
            return select(what).where(table.c.stream == stream, *where).scalar_subquery()

        gone = t.segments.c
        query = select(
            number(t.leases, func.count(), t.leases.c.status == LeaseStatus.OPEN),
            number(t.items, func.coalesce(func.max(t.items.c.exit_n), 0)),
            number(t.revisions, func.coalesce(func.max(t.revisions.c.n), 0)),
            number(t.notes, func.coalesce(func.max(t.notes.c.n), 0)),
            *(
                number(t.segments, func.coalesce(func.max(last), 0))
                for last in (gone.exits, gone.revisions, gone.notes)
            ),
        )
        with self._connection() as connection:
            leases, *last = connection.execute(query).one()
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
        """How many items are open, by stream; streams without any may be left out."""
        columns = t.tallies.c
        query = select(columns.stream, columns.number)
        query = query.where(columns.kind == "items", columns.name == ItemStatus.OPEN)
        with self._connection() as connection:
            return {row.stream: row.number for row in connection.execute(query)}

    # what is archived, and what belongs to items that may be

    def leases_among(self, stream: str, items: Iterable[str]) -> list[LeaseRow]:
        """The leases of these items, in no particular order."""
        return self._rows_among(LeaseRow, t.leases.c.item, stream, items)

    def notes_among(self, stream: str, items: Iterable[str]) -> list[NoteRow]:
        """The notes on these items, in no particular order."""
        return self._rows_among(NoteRow, t.notes.c.item, stream, items)

    def segments(self, stream: str) -> list[SegmentRow]:
        """The parts of the history that are archived or deleted, oldest first."""
        return self._after(SegmentRow, t.segments.c.n, stream)

    def archived(self, stream: str, ids: Iterable[str]) -> dict[str, ArchivedRow]:
        """Those of the ids whose items are in a segment, and no longer in the store."""
        found = self._rows_among(ArchivedRow, t.archived.c.id, stream, ids)
        return {row.id: row for row in found}

    def archived_after(
        self, stream: str, after: str | None = None, limit: Limit = None
    ) -> list[ArchivedRow]:
        """Archived items in the order of their ids, from the one behind `after`."""
        return self._after(ArchivedRow, t.archived.c.id, stream, after, limit)

    def said_in_time(self, stream: str, since: float | None = None) -> Iterator[Said]:
        """What was said, in the order of time, from `since` on; read as it is asked for."""
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
        """All leases by the time they were given, from `since` on; read as they are asked for."""
        given = t.leases.c.given_at
        query = of_stream(t.leases, stream).order_by(given, t.leases.c.token_hash)
        if since is not None:
            query = query.where(given >= since)
        return map(LeaseRow._make, self._each(query, 5_000))

    def stray_items(self, stream: str) -> list[ItemRow]:
        """Items that are not open and have no `exit_n`: there should be none."""
        items = t.items.c
        query = of_stream(t.items, stream).where(items.exit_n.is_(None))
        return self._all(ItemRow, query.where(items.status != ItemStatus.OPEN).order_by(items.id))
