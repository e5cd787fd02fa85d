"""The statements that write into a database, and the plan of a transaction.

Each is plain SQL that SQLite and PostgreSQL both know, with `?` for a value. A transaction of
many requests holds the same few kinds of changes over and over; `plan` brings those of a kind
together, so that the database gets few statements with many rows. The outcome is as if they were
made one by one: what is new goes before what changes only where it is not about the same row, and
changes that others depend on (a stream, a webhook, a status) stay exactly where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from venire.model import ItemStatus
from venire.server.store import changes as c
from venire.server.store import records as r
from venire.server.store.record import Record
from venire.server.store.records import ERASED
from venire.server.store.sql.tables import OF_STREAMS, metadata


class Statement(NamedTuple):
    """SQL, the table it inserts whole rows into (or None), and the error if a row matches none."""

    sql: str
    table: str | None = None
    exact: str | None = None


class Step(NamedTuple):
    """A statement with its rows of values."""

    statement: Statement
    rows: Sequence[Sequence[Any]]


@cache
def _insert(record: type[Record], suffix: str = "") -> Statement:
    """Insert rows of a record; if it `replaces`, one with the same key makes room."""
    table = record.TABLE
    columns = record._fields[table.numbered :]
    if table.replaces:
        others = ", ".join(f"{n} = excluded.{n}" for n in columns if n not in table.key)
        suffix = f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {others}"
    values = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({values}){suffix}"
    return Statement(sql, None if suffix or table.numbered else table.name)


def _update(
    record: type[Record], values: type[Record], more: str = "", exact: str | None = None
) -> Statement:
    """Set what `values` has, where the key of the record is the same."""
    key = record.TABLE.key
    changed = ", ".join(f"{name} = ?" for name in values._fields if name not in key)
    where = " AND ".join(f"{name} = ?" for name in key)
    return Statement(f"UPDATE {record.TABLE.name} SET {changed} WHERE {where}{more}", exact=exact)


def _updated(record: type[Record], values: type[Record]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of a row, for `_update`."""
    key = record.TABLE.key
    return attrgetter(*(name for name in values._fields if name not in key), *key)


_LEAVE = _update(r.ItemRow, r.ExitRow, " AND status = 'open'", "an item that leaves is not open")
_left = _updated(r.ItemRow, r.ExitRow)
_END_LEASE = Statement(
    "UPDATE leases SET status = ?, ended_at = ?, answer = ?, ended_key = ? WHERE token_hash = ?",
    exact="a lease that ends is unknown",
)
_RENEW_LEASE = Statement("UPDATE leases SET ttl = ? WHERE token_hash = ?")
_STATUS = Statement(
    "UPDATE streams SET status = ? WHERE name = ?", exact="a stream to change is unknown"
)
_DROP_SNAPSHOT = Statement("DELETE FROM snapshots WHERE stream = ? AND n = ?")
_TALLY = _insert(
    r.TallyRow,
    " ON CONFLICT (stream, kind, name) DO UPDATE SET number = tallies.number + excluded.number",
)
_REVOKE = Statement("UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL")
TOUCH = Statement("UPDATE keys SET last_used_at = ? WHERE id = ?")
_ROTATE = Statement(
    "UPDATE webhooks SET old_secret = secret, old_until = ?, secret = ? WHERE id = ?"
)
_REMOVE_WEBHOOK = Statement("DELETE FROM webhooks WHERE id = ?")
_DELIVERY = _update(r.DeliveryRow, r.DeliveryRow)
_delivered = _updated(r.DeliveryRow, r.DeliveryRow)
_EXPIRE = Statement(
    "UPDATE keys SET expires_at = ? WHERE id = ? AND (expires_at IS NULL OR expires_at > ?)"
)
_ERASE = Statement(
    f"UPDATE items SET payload = 'null', digest = '{ERASED}' WHERE stream = ? AND id = ?",
    exact="an item to erase is unknown",
)
_ERASE_NOTES = Statement("UPDATE notes SET text = '' WHERE stream = ? AND item = ?")
_ERASE_RATIONALES = Statement(
    "UPDATE labels SET rationale = NULL WHERE stream = ? AND item = ? AND rationale IS NOT NULL"
)
_DROP_ALARMS = Statement(
    "DELETE FROM alarms WHERE stream = ? AND n <= ? AND n NOT IN "
    "(SELECT max(n) FROM alarms WHERE stream = ? GROUP BY rule, subject)"
)
_CORRECT = _update(r.GoldRow, r.GoldRow, "", "gold to correct is unknown")
_corrected = _updated(r.GoldRow, r.GoldRow)
_SETTLE = Statement("UPDATE follows SET settled_at = ? WHERE stream = ? AND item = ?")
_ROUTED = _update(r.RoutedRow, r.RoutedRow)
_routed = _updated(r.RoutedRow, r.RoutedRow)
_RETELL = Statement("UPDATE audit SET details = ? WHERE n = ?")
_ARCHIVE = Statement(
    "UPDATE streams SET archived_at = ? WHERE name = ?", exact="a stream to archive is unknown"
)
_MARK_DELETED = Statement(
    "UPDATE streams SET deleted_at = ? WHERE name = ?", exact="a stream to delete is unknown"
)
_DELETE_STREAM = Statement("DELETE FROM streams WHERE name = ?")


def _purge(table: str) -> Statement:
    """Delete some rows of a stream; a webhook goes once it has no deliveries."""
    if table == "webhooks":
        left = "SELECT 1 FROM deliveries WHERE webhook = webhooks.id"
        return Statement(
            f"DELETE FROM webhooks WHERE stream = ? AND NOT EXISTS ({left}) AND id IN "
            "(SELECT id FROM webhooks WHERE stream = ? LIMIT ?)"
        )
    keys = ", ".join(column.name for column in metadata.tables[table].primary_key.columns)
    some = f"SELECT {keys} FROM {table} WHERE stream = ? LIMIT ?"
    return Statement(f"DELETE FROM {table} WHERE stream = ? AND ({keys}) IN ({some})")


_PURGE_DELIVERIES = Statement(
    "DELETE FROM deliveries WHERE (webhook, kind, exit_n) IN "
    "(SELECT webhook, kind, exit_n FROM deliveries "
    "WHERE webhook IN (SELECT id FROM webhooks WHERE stream = ?) LIMIT ?)"
)
_PURGE = tuple(_purge(table) for table in OF_STREAMS)
_DROP_META = Statement("DELETE FROM meta WHERE key = ?")
_THEIRS = "item IN (SELECT id FROM items WHERE stream = ? AND exit_n <= ?)"
_TO_WEBHOOKS = "webhook IN (SELECT id FROM webhooks WHERE stream = ?) AND status <> 'pending'"
_ARCHIVE_IDS = Statement(
    "INSERT INTO archived (stream, id, digest, segment) SELECT stream, id, digest, "
    "CAST(? AS BIGINT) FROM items WHERE stream = ? AND exit_n <= ? ON CONFLICT DO NOTHING"
)
_FORGET_IDS = Statement(
    f"INSERT INTO archived (stream, id, digest, segment) SELECT stream, id, '{ERASED}', "
    "CAST(? AS BIGINT) FROM items WHERE stream = ? AND exit_n <= ? ON CONFLICT DO NOTHING"
)
_DROP_LABELS = Statement(
    f"DELETE FROM labels WHERE stream = ? AND {_THEIRS} AND (NOT late OR slot < ?)"
)
_DROP_LEASES = Statement(
    f"DELETE FROM leases WHERE stream = ? AND {_THEIRS} AND status <> 'open' AND ended_at <= ?"
)
_DROP_NOTES = Statement(f"DELETE FROM notes WHERE stream = ? AND {_THEIRS} AND n <= ?")
_DROP_ROUTED = Statement(f"DELETE FROM routed WHERE stream = ? AND {_THEIRS}")
_DROP_REPEATS = Statement(f"DELETE FROM repeats WHERE stream = ? AND {_THEIRS}")
_DROP_ITEMS = Statement("DELETE FROM items WHERE stream = ? AND exit_n <= ?")
_DROP_REVISIONS = Statement("DELETE FROM revisions WHERE stream = ? AND n <= ?")
_DROP_SENT = Statement(f"DELETE FROM deliveries WHERE {_TO_WEBHOOKS} AND kind = ? AND exit_n <= ?")
_DROP_EVENTS = Statement("DELETE FROM events WHERE stream = ? AND n < ?")
_DROP_SNAPSHOTS = Statement("DELETE FROM snapshots WHERE stream = ? AND n < ?")
_REMOVE_SEGMENT = Statement("DELETE FROM segments WHERE stream = ? AND n = ?")
_UNARCHIVE = Statement("DELETE FROM archived WHERE stream = ? AND id = ?")
_ERASE_ARCHIVED = Statement(
    f"UPDATE archived SET digest = '{ERASED}' WHERE stream = ? AND id = ?",
    exact="an archived item to erase is unknown",
)
_META = Statement(
    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE "
    "SET value = excluded.value"
)


def _drop(change: c.DropHistory) -> list[tuple[Statement, tuple[Any, ...]]]:
    """The statements that drop what a segment has, up to a place; what depends on items first."""
    segment, stream = change.segment, change.segment.stream
    events = min(change.events, segment.next_event)
    exits = min(change.exits, segment.exits)
    revisions = min(change.revisions, segment.revisions)
    theirs = stream, stream, exits
    return [
        (_ARCHIVE_IDS if segment.name else _FORGET_IDS, (segment.n, stream, exits)),
        (_DROP_LABELS, (*theirs, segment.slot)),
        (_DROP_LEASES, (*theirs, segment.at)),
        (_DROP_NOTES, (*theirs, segment.notes)),
        *([] if segment.name else [(_DROP_ROUTED, theirs), (_DROP_REPEATS, theirs)]),
        (_DROP_ITEMS, (stream, exits)),
        (_DROP_SENT, (stream, "exit", exits)),
        (_DROP_REVISIONS, (stream, revisions)),
        (_DROP_SENT, (stream, "revision", revisions)),
        (_DROP_EVENTS, (stream, events)),
        (_DROP_SNAPSHOTS, (stream, events)),
    ]


def _erase_texts(
    change: c.ErasePayload | c.EraseArchived,
) -> list[tuple[Statement, tuple[Any, ...]]]:
    """What labelers wrote of an item: their notes, and why they said what they said."""
    item = change.stream, change.item
    return [(_ERASE_NOTES, item), (_ERASE_RATIONALES, item)]


def _put_back(change: c.PutBack) -> list[tuple[Statement, Any]]:
    if not change.rows:
        return []
    insert = _insert(type(change.rows[0]), " ON CONFLICT DO NOTHING")
    steps: list[tuple[Statement, Any]] = [(insert, row) for row in change.rows]
    steps += [
        (_UNARCHIVE, (row.stream, row.id)) for row in change.rows if isinstance(row, r.ItemRow)
    ]
    return steps


def _end(row: c.LeaseEnd) -> tuple[Any, ...]:
    return row.status, row.ended_at, row.answer, row.key, row.token_hash


#: Records and changes of many rows: gathered, and made in this order (what is new before what
#: changes). Rows of other records are inserted where they stand.
_GATHERED: Final[tuple[type, ...]] = (
    r.ItemRow,
    r.EventRow,
    r.LabelRow,
    r.RepeatRow,
    r.LeaseRow,
    r.NoteRow,
    c.EndLeases,
    c.LeaveItems,
    r.RevisionRow,
    r.CheckRow,
    r.GoldRow,
    r.AlarmRow,
    r.FollowRow,
    r.RoutedRow,
    r.DeliveryRow,
    r.ArchivedRow,
    r.AuditRow,
)

#: Of those that touch the same tables: whether rows are new, and what names a row.
_KEYS: Final[dict[type, tuple[bool, Callable[[Any], Any]]]] = {
    r.ItemRow: (True, attrgetter("stream", "id")),
    c.LeaveItems: (False, attrgetter("stream", "id")),
    r.LeaseRow: (True, attrgetter("token_hash")),
    c.EndLeases: (False, attrgetter("token_hash")),
}

#: Changes of one row: made where they stand.
_SINGLE: dict[type, Callable[[Any], list[tuple[Statement, tuple[Any, ...]]]]] = {
    c.SetStatus: lambda change: [(_STATUS, (change.status, change.stream))],
    c.RenewLease: lambda change: [(_RENEW_LEASE, (change.ttl, change.token_hash))],
    c.RevokeKey: lambda change: [(_REVOKE, (change.at, change.id))],
    c.TouchKey: lambda change: [(TOUCH, (change.at, change.id))],
    c.RotateSecret: lambda change: [(_ROTATE, (change.old_until, change.secret, change.id))],
    c.RemoveWebhook: lambda change: [(_REMOVE_WEBHOOK, (change.id,))],
    c.UpdateDelivery: lambda change: [(_DELIVERY, _delivered(change.row))],
    c.SetMeta: lambda change: [(_META, (change.key, change.value))],
    c.DropMeta: lambda change: [(_DROP_META, (change.key,))],
    c.ExpireKey: lambda change: [(_EXPIRE, (change.at, change.id, change.at))],
    c.ErasePayload: lambda change: [
        (_ERASE, (change.stream, change.item)),
        *_erase_texts(change),
    ],
    c.DropAlarms: lambda change: [(_DROP_ALARMS, (change.stream, change.n, change.stream))],
    c.CorrectGold: lambda change: [(_CORRECT, _corrected(row)) for row in change.rows],
    c.SettleFollow: lambda change: [(_SETTLE, (change.at, change.stream, change.item))],
    c.SettleRoute: lambda change: [(_ROUTED, _routed(change.row))],
    c.RetellAudit: lambda change: [(_RETELL, (change.details, change.n))],
    c.ArchiveStream: lambda change: [(_ARCHIVE, (change.at, change.stream))],
    c.MarkDeleted: lambda change: [(_MARK_DELETED, (change.at, change.stream))],
    c.PurgeStream: lambda change: [
        (_PURGE_DELIVERIES, (change.stream, change.limit)),
        *((statement, (change.stream, change.stream, change.limit)) for statement in _PURGE),
    ],
    c.DeleteStream: lambda change: [(_DELETE_STREAM, (change.stream,))],
    c.DropHistory: _drop,
    c.PutBack: _put_back,
    c.RemoveSegment: lambda change: [(_REMOVE_SEGMENT, (change.stream, change.n))],
    c.EraseArchived: lambda change: [
        (_ERASE_ARCHIVED, (change.stream, change.item)),
        *_erase_texts(change),
    ],
}


def plan(changes: Sequence[c.Change]) -> Iterator[Step]:
    """The steps of a transaction; the last ones keep the tallies.

    >>> from venire.server.store import Insert, NoteRow
    >>> def note(n):
    ...     row = NoteRow(
    ...         stream="posts", n=n, item="a", labeler="ann", kind="flag", text="", at=0.0
    ...     )
    ...     return Insert([row])
    >>> [(step.statement.table, len(step.rows)) for step in plan([note(1), note(2)])]
    [('notes', 2), (None, 1)]
    """
    gathered: dict[type, list[Any]] = {}
    changed: set[Any] = set()  # rows that what is gathered changes
    for change in changes:
        kind, rows = _kind(change)
        if kind in _GATHERED:
            if kind in _KEYS:
                makes, key = _KEYS[kind]
                keys = set(map(key, rows))
                if not makes:
                    changed |= keys
                elif not changed.isdisjoint(keys):
                    yield from _flush(gathered)
                    changed.clear()
            gathered.setdefault(kind, []).extend(rows)
            continue
        yield from _flush(gathered)
        if isinstance(change, c.Insert):
            yield from _step(kind, rows)
            continue
        for statement, same in groupby(_SINGLE[kind](change), key=lambda pair: pair[0]):
            yield Step(statement, [row for _, row in same])
    yield from _flush(gathered)
    counted = tallied(changes)
    if counted:
        yield Step(_TALLY, [(*key, number) for key, number in sorted(counted.items())])


def _kind(change: c.Change) -> tuple[type, Sequence[Any]]:
    """What a change is gathered by, and its rows: an `Insert` by the record that it adds."""
    rows: Sequence[Any] = getattr(change, "rows", ())
    return type(rows[0]) if isinstance(change, c.Insert) and rows else type(change), rows


def tallied(changes: Sequence[c.Change]) -> Counter[tuple[str, str, str]]:
    """How much the changes add to each tally; see `TallyRow`."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for change in changes:
        kind, rows = _kind(change)
        if kind is r.ItemRow:
            counted.update((row.stream, "items", row.status) for row in rows)
        elif kind is c.LeaveItems:
            counted.subtract((row.stream, "items", ItemStatus.OPEN) for row in rows)
            counted.update((row.stream, "items", row.status) for row in rows)
        elif kind is r.LabelRow:
            counted.update((row.stream, "labels", row.labeler) for row in rows)
            counted.update((row.stream, "late", row.labeler) for row in rows if row.late)
        elif kind is r.NoteRow:
            counted.update((row.stream, row.kind, row.labeler) for row in rows)
    return counted


def dropping(stream: str, numbers: Sequence[int]) -> Step:
    """The step that deletes snapshots."""
    return Step(_DROP_SNAPSHOT, [(stream, n) for n in numbers])


def _flush(gathered: dict[type, list[Any]]) -> Iterator[Step]:
    for kind in _GATHERED if gathered else ():
        yield from _step(kind, gathered.pop(kind, ()))


def _step(kind: type, rows: Sequence[Any]) -> Iterator[Step]:
    """The step that inserts rows, lets items leave or ends leases."""
    if not rows:
        return
    if kind is c.EndLeases:
        yield Step(_END_LEASE, list(map(_end, rows)))
    elif kind is c.LeaveItems:
        yield Step(_LEAVE, list(map(_left, rows)))
    elif kind.TABLE.numbered:  # type: ignore[attr-defined]
        values = attrgetter(*kind._fields[1:])  # type: ignore[attr-defined]
        yield Step(_insert(kind), list(map(values, rows)))
    else:
        yield Step(_insert(kind), rows)
