"""What a store can do: one way to write, many to read.

A store is an append-only log of events for each stream, beside the tables that people query.
`write` is the only verb that changes it: all of its changes are on disk when it returns, or none
of them are. All methods block and may be called from any thread; a store has one writer at a
time, which is what `writer.Writer` is for. `sqlite` and `postgres` say what is different in each.

Errors: `StoreDown` where trying again may help (disk full, database gone, locked), `StoreError`
where it will not (a second verdict for an item, a damaged file, a newer schema).
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Self, TypeVar, cast

from sqlalchemy import ColumnElement, Select, and_, exists, func, not_, or_, select, tuple_

from venire.errors import StoreError
from venire.model import DeliveryStatus, ItemStatus
from venire.server.store import changes as c
from venire.server.store.ownership import streams_of
from venire.server.store.record import Record
from venire.server.store.records import (
    UNSETTLED,
    AlarmRow,
    ArchivedRow,
    AuditRow,
    DeliveryRow,
    EngineRow,
    EventRow,
    FollowRow,
    GoldRow,
    ItemRow,
    KeyRow,
    LabelRow,
    NoteRow,
    RevisionRow,
    RoutedRow,
    SegmentRow,
    SnapshotRow,
    WebhookRow,
)
from venire.server.store.search import EXCERPT, Doubt, Found, ItemSearch, Place
from venire.server.store.sql import tables as t
from venire.server.store.sql.reading import Limit, Reading, of_stream
from venire.server.store.sql.statements import Step, dropping, plan

#: The gap between two snapshots is at most a SHARE-th of their age, where it can be.
SHARE: Final = 4


def superfluous(numbers: Sequence[int], needed: Collection[int] = ()) -> list[int]:
    """The snapshots that may be deleted, by the number of events in each.

    To say why something happened, the log is replayed from the snapshot before it. So more are kept
    than a restart needs, but the gap between two that stay is a quarter of their age: twice as much
    history costs three snapshots more. The first, the last two and those that are `needed` stay.

    >>> superfluous(range(0, 220, 20))
    [20, 60]
    >>> superfluous(range(0, 220, 20), needed=[60])
    [40]
    """
    ordered = sorted(set(numbers))
    dropped: list[int] = []
    if len(ordered) <= 3:
        return dropped
    newest, newer = ordered[-1], ordered[-2]
    for older, n in zip(reversed(ordered[:-3]), reversed(ordered[1:-2]), strict=True):
        if n not in needed and SHARE * (newer - older) <= newest - older:
            dropped.append(n)
        else:
            newer = n
    return dropped[::-1]


_ITEMS = t.items.c
_PLACE = tuple_(_ITEMS.arrived_at, _ITEMS.id)
_LATEST = _ITEMS.arrived_at.desc(), _ITEMS.id.desc()


def _listed() -> Select[Any]:
    start = func.substr(_ITEMS.payload, 1, EXCERPT)
    return select(*(start if column is _ITEMS.payload else column for column in _ITEMS))


def _looked_at(stream: str, search: ItemSearch, before: Place | None) -> list[Any]:
    """The part of an index that the search has still to look at."""
    found: list[ColumnElement[bool]] = [_ITEMS.stream == stream]
    found += [_ITEMS[name] == value for name, value in search.leading.items()]
    if search.since is not None:
        found.append(_ITEMS.arrived_at >= search.since)
    if search.until is not None:
        found.append(_ITEMS.arrived_at < search.until)
    if before is not None:
        found.append(tuple_(*before) > _PLACE)
    if search.blind:
        found.append(or_(not_(_is_drawn(stream)), _has_gold(stream)))
    return found


def _is_drawn(stream: str) -> ColumnElement[bool]:
    return exists().where(t.checks.c.stream == stream, t.checks.c.item == _ITEMS.id)


def _has_gold(stream: str) -> ColumnElement[bool]:
    return exists().where(t.gold.c.stream == stream, t.gold.c.item == _ITEMS.id)


def _conditions(stream: str, search: ItemSearch) -> list[ColumnElement[bool]]:
    """What else must hold for each row."""
    found = [
        _ITEMS[name] == value
        for name in ("status", "verdict", "reason")
        if (value := getattr(search, name)) is not None and name not in search.leading
    ]
    if search.low is not None:
        found.append(_ITEMS.confidence >= search.low)
    if search.high is not None:
        found.append(_ITEMS.confidence <= search.high)
    if search.labeler is not None:
        said = t.labels.c
        mine = and_(said.item == _ITEMS.id, said.labeler == search.labeler)
        found.append(exists().where(said.stream == stream, mine))
    if search.text is not None:
        found.append(or_(_has(_ITEMS.id, search.text), _has(_ITEMS.payload, search.in_payload)))
    return found


def _has(column: Any, text: str) -> ColumnElement[bool]:
    """Whether a column contains a text, whatever the case of ASCII letters."""
    found: ColumnElement[bool] = column.icontains(text, autoescape=True)
    return found


R = TypeVar("R", bound=Record)

#: What a process that does not own the store may write.
_FOR_ALL = (c.RevokeKey, c.ExpireKey, c.TouchKey)


def _is_for_all(change: c.Change) -> bool:
    if isinstance(change, c.Insert):
        return all(isinstance(row, KeyRow | AuditRow) for row in change.rows)
    checked = isinstance(change, c.SetMeta) and change.key.startswith(c.VERIFIED)
    return checked or isinstance(change, _FOR_ALL)


def _inserted(changes: Sequence[c.Change], kind: type[R]) -> Iterator[R]:
    """The rows of a record that are inserted."""
    for change in changes:
        if isinstance(change, c.Insert) and change.rows and isinstance(change.rows[0], kind):
            yield from cast(Sequence[R], change.rows)


def _pages(
    read: Callable[[Any, int], list[R]], place: Callable[[R], Any], after: Any, chunk: int
) -> Iterator[R]:
    """All rows, read in chunks, each from the place of the row before."""
    rows = read(after, chunk)
    while rows:
        yield from rows
        rows = read(place(rows[-1]), chunk)


class Storage(Reading):
    """A store; see `open_storage`.

    >>> from venire.server.store import Insert, StreamRow, open_storage
    >>> with open_storage("memory:") as storage:
    ...     storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    ...     [row.name for row in storage.streams()]
    ['posts']
    """

    #: The address it was opened by, without a password.
    url: str

    owner: bool
    _write_lock: threading.RLock
    _ends: dict[str, int]  # the number of the next event of a stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def ping(self) -> None:
        """Return if the store can be written to, reconnecting if need be; else `StoreDown`."""

    def sizes(self) -> dict[str, int]:
        """Bytes, by name: of the store (`bytes`), of its journal, and free for it, if known."""
        return {}

    def scrub(self) -> bool | None:
        """Remove what was erased from the files; False if a reader prevents that for now.

        None: a database server decides by itself when it overwrites what was freed.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; closing twice is fine."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """A cursor whose statements are committed, durably, when the block ends."""

    @abstractmethod
    def _many(self, cursor: Any, step: Step) -> int:
        """Run a statement with all of its rows; how many rows of the table it touched."""

    def write(self, changes: Sequence[c.Change]) -> None:
        """Make the changes, in order, as one transaction; durable when it returns."""
        if not self.owner:
            refused = next((x for x in changes if not _is_for_all(x)), None)
            if refused is not None:
                rows = refused.rows if isinstance(refused, c.Insert) else ()
                what = rows[0].TABLE.name if rows else type(refused).__name__
                raise StoreError(f"only the server that owns the store {self.url} may write {what}")
        with self._write_lock, self._errors():
            self._check_claims(changes)
            try:
                old = self._old_snapshots(changes)
                with self._transaction() as cursor:
                    for step in (*plan(changes), *old):
                        if step.statement.table == "events":
                            self._check_numbers(step.rows)
                        self._run(cursor, step)
            except BaseException:
                self._ends.clear()
                raise
            for change in changes:
                if isinstance(change, c.DeleteStream):
                    self._ends.pop(change.stream, None)  # a new one may have its name

    def _check_claims(self, changes: Sequence[c.Change]) -> None:
        """Streams that are not claimed belong to another server."""
        if not self.shared:
            return
        other = next((name for name in streams_of(changes) if not self.holds(name)), None)
        if other is not None:
            raise StoreError(f"got rows of stream {other!r}, which this server has not claimed")

    def _old_snapshots(self, changes: Sequence[c.Change]) -> list[Step]:
        """Delete the snapshots that new ones make superfluous."""
        steps = []
        for snapshot in _inserted(changes, SnapshotRow):
            stream = snapshot.stream
            began = {row.n for row in self.engines(stream)}
            began |= {row.next_event for row in self.segments(stream)}
            began |= {row.n for row in _inserted(changes, EngineRow)}
            began |= {row.next_event for row in _inserted(changes, SegmentRow)}
            gone = superfluous([*self.snapshot_numbers(stream), snapshot.n], began)
            steps += [dropping(stream, gone)] if gone else []
        return steps

    def _run(self, cursor: Any, step: Step) -> None:
        touched = self._many(cursor, step)
        if step.statement.exact is not None and touched != len(step.rows):
            raise StoreError(f"{step.statement.exact}: {len(step.rows) - touched} of them")

    def _check_numbers(self, rows: Sequence[Any]) -> None:
        """Events follow each other without a gap."""
        for row in rows:
            end = self._ends.get(row.stream)
            if end is None:
                end = self._end_of_log(row.stream)
            if row.n != end:
                raise StoreError(f"got event {row.n} of stream {row.stream!r}, expected {end}")
            self._ends[row.stream] = row.n + row.size

    # what is found: items, alarms, follow-ups, routes, revisions

    def find_items(
        self,
        stream: str,
        search: ItemSearch,
        before: Place | None = None,
        limit: int = 50,
        scan: int = 5000,
    ) -> Found:
        """Items that match, the latest arrival first, among the next `scan` rows of an index."""
        range_ = _looked_at(stream, search, before)
        end = select(_ITEMS.arrived_at, _ITEMS.id).where(*range_).order_by(*_LATEST)
        with self._connection() as connection:
            last = connection.execute(end.offset(scan - 1).limit(1)).first()
        stop = None if last is None else (float(last[0]), str(last[1]))
        query = _listed().where(*range_, *_conditions(stream, search)).order_by(*_LATEST)
        if stop is not None:
            query = query.where(tuple_(*stop) <= _PLACE)
        rows = self._all(ItemRow, query, limit)
        if len(rows) == limit:
            return rows, (rows[-1].arrived_at, rows[-1].id)
        return rows, stop

    def last_alarms(self, stream: str) -> list[AlarmRow]:
        """The last alarm of each rule and subject, in the order of `n`."""
        columns = t.alarms.c
        last = select(func.max(columns.n)).where(columns.stream == stream)
        last = last.group_by(columns.rule, columns.subject)
        query = of_stream(t.alarms, stream).where(columns.n.in_(last)).order_by(columns.n)
        return self._all(AlarmRow, query)

    def follows(self, stream: str) -> list[FollowRow]:
        """The items that follow others, which were sent back, by their ids."""
        return self._all(FollowRow, of_stream(t.follows, stream).order_by(t.follows.c.item))

    def routed(self, stream: str, item: str | None = None) -> list[RoutedRow]:
        """Where verdicts of a stream, or of one item, send items; by item, kind and target."""
        columns = t.routed.c
        query = of_stream(t.routed, stream)
        if item is not None:
            query = query.where(columns.item == item)
        return self._all(RoutedRow, query.order_by(columns.item, columns.kind, columns.target))

    def routed_to(self, stream: str, item: str) -> list[RoutedRow]:
        """From where verdicts sent an item to this stream, by the stream."""
        columns = t.routed.c
        query = select(t.routed).where(columns.target == stream, columns.item == item)
        query = query.where(columns.kind == "stream").order_by(columns.stream)
        return self._all(RoutedRow, query)

    def routed_waiting(
        self, limit: int, without: Iterable[tuple[str, str]] = ()
    ) -> list[RoutedRow]:
        """What is not settled yet of all streams that are not being deleted, the earliest first.

        What goes from one stream to one target is left out for each pair of `without`.
        """
        columns, left_out = t.routed.c, list(without)
        there = select(t.streams.c.name).where(t.streams.c.deleted_at.is_(None))
        query = select(t.routed).where(columns.settled_at.is_(None), columns.stream.in_(there))
        if left_out:
            query = query.where(tuple_(columns.stream, columns.target).not_in(left_out))
        order = columns.at, columns.stream, columns.item, columns.kind, columns.target
        return self._all(RoutedRow, query.order_by(*order), limit)

    def payloads(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """The payloads of those of the ids that exist."""
        return dict(self._among((_ITEMS.id, _ITEMS.payload), stream, ids))

    def arrivals(self, stream: str, edges: Sequence[float]) -> list[int]:
        """How many items arrived between each two edges, times in order; the later one is out."""
        counted = [
            select(func.count())
            .where(_ITEMS.stream == stream, _ITEMS.arrived_at >= low, _ITEMS.arrived_at < high)
            .scalar_subquery()
            for low, high in pairwise(edges)
        ]
        with self._connection() as connection:
            return list(connection.execute(select(*counted)).one()) if counted else []

    def doubtful(self, stream: str, after: Doubt | None = None, limit: int = 50) -> list[ItemRow]:
        """Items that left with a verdict and have no gold, the least confident first.

        They come with the beginnings of their payloads, as those of `find_items` do.
        """
        query = _listed().where(
            _ITEMS.stream == stream,
            _ITEMS.status == ItemStatus.LEFT,
            _ITEMS.verdict.is_not(None),
            not_(_has_gold(stream)),
            not_(_is_drawn(stream)),
        )
        place = tuple_(_ITEMS.confidence, _ITEMS.exit_n)
        if after is not None:
            query = query.where(place > tuple_(*after))
        return self._all(ItemRow, query.order_by(_ITEMS.confidence, _ITEMS.exit_n), limit)

    def revised(self, stream: str, items: Iterable[str]) -> dict[str, str | None]:
        """Those of the items whose verdict was revised, and the verdict of the last revision."""
        columns = t.revisions.c.item, t.revisions.c.n, t.revisions.c.verdict
        rows = sorted(self._among(columns, stream, items), key=lambda row: int(row.n))
        return {row.item: row.verdict for row in rows}

    # keys, the audit trail, webhooks, named values

    def keys(self) -> list[KeyRow]:
        """All keys, revoked ones too, oldest first."""
        return self._all(KeyRow, select(t.keys).order_by(t.keys.c.created_at, t.keys.c.id))

    def audit(
        self, after: int = 0, limit: Limit = None, stream: str | None = None
    ) -> list[AuditRow]:
        """The audit trail after line `after`, oldest first; of one stream, or all."""
        query = select(t.audit) if stream is None else of_stream(t.audit, stream)
        query = query.where(t.audit.c.n > after).order_by(t.audit.c.n)
        return self._all(AuditRow, query, limit)

    def recent_audit(
        self,
        before: int | None = None,
        limit: Limit = None,
        stream: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        """The audit trail before line `before`, newest first; of one stream, one action, or all."""
        audit = t.audit.c
        query = select(t.audit).order_by(audit.n.desc())
        if before is not None:
            query = query.where(audit.n < before)
        if stream is not None:
            query = query.where(audit.stream == stream)
        if action is not None:
            query = query.where(audit.action == action)
        return self._all(AuditRow, query, limit)

    def webhooks(self, stream: str | None = None) -> list[WebhookRow]:
        """The webhooks of a stream, or all, oldest first."""
        query = select(t.webhooks) if stream is None else of_stream(t.webhooks, stream)
        return self._all(WebhookRow, query.order_by(t.webhooks.c.created_at, t.webhooks.c.id))

    def pending_deliveries(self, webhook: str, limit: Limit = None) -> list[DeliveryRow]:
        """Pending deliveries to a webhook, the earliest due first."""
        columns = t.deliveries.c
        query = select(t.deliveries).where(
            columns.webhook == webhook, columns.status == DeliveryStatus.PENDING
        )
        order = columns.next_at, columns.exit_n, columns.kind
        return self._all(DeliveryRow, query.order_by(*order), limit)

    def deliveries(self, webhook: str, status: str | None = None) -> list[DeliveryRow]:
        """Deliveries to a webhook, by kind (alarm, exit, revision) and number.

        `status` narrows them, `dead` being the dead letters.
        """
        columns = t.deliveries.c
        query = select(t.deliveries).where(columns.webhook == webhook)
        query = query.order_by(columns.kind, columns.exit_n)
        if status is not None:
            query = query.where(columns.status == status)
        return self._all(DeliveryRow, query)

    def delivery_counts(self, webhook: str) -> dict[str, int]:
        """How many deliveries to a webhook are pending, and how many are dead."""
        columns = t.deliveries.c
        query = select(func.count()).where(columns.webhook == webhook)
        # one by one: the index is by status too
        return {
            status: int(self._scalar(query.where(columns.status == status)) or 0)
            for status in UNSETTLED
        }

    def meta(self, key: str) -> str | None:
        """A named value of the store itself."""
        query = select(t.meta.c.value).where(t.meta.c.key == key)
        return cast("str | None", self._scalar(query))

    def metas(self, prefix: str) -> dict[str, str]:
        """The named values whose name begins with a prefix."""
        key, end = t.meta.c.key, prefix + chr(0x10FFFF)
        with self._connection() as connection:
            rows = connection.execute(select(key, t.meta.c.value).where(key >= prefix, key < end))
            return {row[0]: row[1] for row in rows}

    def first_pending(self, stream: str, kind: str = "exit") -> int | None:
        """The lowest number of an exit (or revision) that is still to be sent to a webhook."""
        hooks = select(t.webhooks.c.id).where(t.webhooks.c.stream == stream)
        of = t.deliveries.c
        query = select(func.min(of.exit_n)).where(of.webhook.in_(hooks), of.kind == kind)
        found = self._scalar(query.where(of.status == DeliveryStatus.PENDING))
        return cast("int | None", found)

    # all of it, read in chunks

    def all_labels(self, stream: str, chunk: int = 10_000) -> Iterator[LabelRow]:
        """Every label of a stream; this and what follows is read in chunks."""
        read = partial(self.labels, stream)
        return _pages(read, attrgetter("item", "labeler"), None, chunk)

    def all_audit(self, stream: str | None = None, chunk: int = 10_000) -> Iterator[AuditRow]:
        """Every line of the audit trail, or those about a stream."""
        read = partial(self.audit, stream=stream)
        return _pages(read, attrgetter("n"), 0, chunk)

    def all_items(self, stream: str, chunk: int = 10_000) -> Iterator[ItemRow]:
        return _pages(partial(self.items, stream, None), attrgetter("id"), None, chunk)

    def all_gold(self, stream: str, chunk: int = 10_000) -> Iterator[GoldRow]:
        return _pages(partial(self.gold, stream), attrgetter("item"), None, chunk)

    def all_notes(self, stream: str, chunk: int = 10_000) -> Iterator[NoteRow]:
        return _pages(partial(self.notes, stream), attrgetter("n"), 0, chunk)

    def all_revisions(
        self, stream: str, after: int = 0, chunk: int = 10_000
    ) -> Iterator[RevisionRow]:
        """Every revision of a stream above number `after`."""
        return _pages(partial(self.revisions, stream), attrgetter("n"), after, chunk)

    def all_events(self, stream: str, after: int = -1, chunk: int = 1_000) -> Iterator[EventRow]:
        """Every row of a stream's log from the event behind `after`."""
        return _pages(partial(self.events, stream), lambda row: row.n + row.size - 1, after, chunk)

    def all_archived(self, stream: str, chunk: int = 10_000) -> Iterator[ArchivedRow]:
        return _pages(partial(self.archived_after, stream), attrgetter("id"), None, chunk)
