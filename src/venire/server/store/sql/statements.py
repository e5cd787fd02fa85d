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
from itertools import groupby
from typing import Any, NamedTuple

from venire.model import ItemStatus
from venire.server.store import changes as c
from venire.server.store.rows import ERASED
from venire.server.store.sql.tables import OF_STREAMS, metadata

__all__ = ["TOUCH", "Statement", "Step", "dropping", "plan", "tallied"]


class Statement(NamedTuple):
    """SQL, the table it inserts whole rows into (or None), and the error if a row matches none."""

    sql: str
    table: str | None = None
    exact: str | None = None


class Step(NamedTuple):
    """A statement with its rows of values."""

    statement: Statement
    rows: Sequence[Sequence[Any]]


def _insert(table: str, suffix: str = "") -> Statement:
    columns = [column.name for column in metadata.tables[table].columns]
    values = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}){suffix}"
    return Statement(sql, None if suffix else table)


_LEAVE = Statement(
    "UPDATE items SET status = ?, exit_n = ?, exit_slot = ?, left_at = ?, verdict = ?, "
    "confidence = ?, labels = ?, reason = ? WHERE stream = ? AND id = ? AND status = 'open'",
    exact="an item that leaves is not open",
)
_END_LEASE = Statement(
    "UPDATE leases SET status = ?, ended_at = ?, answer = ?, ended_key = ? WHERE token_hash = ?",
    exact="a lease that ends is unknown",
)
_RENEW_LEASE = Statement("UPDATE leases SET ttl = ? WHERE token_hash = ?")
_STATUS = Statement(
    "UPDATE streams SET status = ? WHERE name = ?", exact="a stream to change is unknown"
)
_SNAPSHOT = _insert(
    "snapshots", " ON CONFLICT (stream, n) DO UPDATE SET at = excluded.at, body = excluded.body"
)
_ENGINE = _insert(
    "engines",
    " ON CONFLICT (stream, n) DO UPDATE SET version = excluded.version, at = excluded.at",
)
_DROP_SNAPSHOT = Statement("DELETE FROM snapshots WHERE stream = ? AND n = ?")
_TALLY = _insert(
    "tallies",
    " ON CONFLICT (stream, kind, name) DO UPDATE SET number = tallies.number + excluded.number",
)
_REVOKE = Statement("UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL")
TOUCH = Statement("UPDATE keys SET last_used_at = ? WHERE id = ?")
_ROTATE = Statement(
    "UPDATE webhooks SET old_secret = secret, old_until = ?, secret = ? WHERE id = ?"
)
_REMOVE_WEBHOOK = Statement("DELETE FROM webhooks WHERE id = ?")
_DELIVERY = Statement(
    "UPDATE deliveries SET attempt = ?, next_at = ?, status = ?, last_error = ?, "
    "failing_since = ? WHERE webhook = ? AND kind = ? AND exit_n = ?"
)
_EXPIRE = Statement(
    "UPDATE keys SET expires_at = ? WHERE id = ? AND (expires_at IS NULL OR expires_at > ?)"
)
_AUDIT = Statement(
    "INSERT INTO audit (at, actor, key, action, stream, subject, details) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_ERASE = Statement(
    f"UPDATE items SET payload = 'null', digest = '{ERASED}' WHERE stream = ? AND id = ?",
    exact="an item to erase is unknown",
)
_ERASE_NOTES = Statement("UPDATE notes SET text = '' WHERE stream = ? AND item = ?")
_DROP_ALARMS = Statement(
    "DELETE FROM alarms WHERE stream = ? AND n <= ? AND n NOT IN "
    "(SELECT max(n) FROM alarms WHERE stream = ? GROUP BY rule, subject)"
)
_CORRECT = Statement(
    "UPDATE gold SET label = ?, at = ?, source = ?, actor = ?, key = ?, earlier = ? "
    "WHERE stream = ? AND item = ?",
    exact="gold to correct is unknown",
)
_SETTLE = Statement("UPDATE follows SET settled_at = ? WHERE stream = ? AND item = ?")
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
_META = _insert("meta", " ON CONFLICT (key) DO UPDATE SET value = excluded.value")


def _delivery(change: c.UpdateDelivery) -> tuple[Any, ...]:
    row = change.row
    how = row.attempt, row.next_at, row.status, row.last_error, row.failing_since
    return (*how, row.webhook, row.kind, row.exit_n)


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
        (_DROP_ITEMS, (stream, exits)),
        (_DROP_SENT, (stream, "exit", exits)),
        (_DROP_REVISIONS, (stream, revisions)),
        (_DROP_SENT, (stream, "revision", revisions)),
        (_DROP_EVENTS, (stream, events)),
        (_DROP_SNAPSHOTS, (stream, events)),
    ]


def _put_back(change: c.PutBack) -> list[tuple[Statement, tuple[Any, ...]]]:
    insert = _insert(change.table, " ON CONFLICT DO NOTHING")
    steps = [(insert, tuple(row)) for row in change.rows]
    if change.table == "items":
        steps += [(_UNARCHIVE, tuple(row[:2])) for row in change.rows]
    return steps


def _leave(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(*row[2:], row[0], row[1]) for row in rows]


def _end(rows: Sequence[c.LeaseEnd]) -> list[tuple[Any, ...]]:
    return [(row.status, row.ended_at, row.answer, row.key, row.token_hash) for row in rows]


def _as_they_are(rows: Sequence[Any]) -> Sequence[Any]:
    return rows


#: Changes of many rows: gathered, and made in this order (what is new before what changes).
_GATHERED: dict[type, tuple[Statement, Callable[[Sequence[Any]], Sequence[Sequence[Any]]]]] = {
    c.AddItems: (_insert("items"), _as_they_are),
    c.AddEvents: (_insert("events"), _as_they_are),
    c.AddLabels: (_insert("labels"), _as_they_are),
    c.AddLeases: (_insert("leases"), _as_they_are),
    c.AddNotes: (_insert("notes"), _as_they_are),
    c.EndLeases: (_END_LEASE, _end),
    c.LeaveItems: (_LEAVE, _leave),
    c.AddRevisions: (_insert("revisions"), _as_they_are),
    c.AddChecks: (_insert("checks"), _as_they_are),
    c.AddGold: (_insert("gold"), _as_they_are),
    c.AddAlarms: (_insert("alarms"), _as_they_are),
    c.AddFollows: (_insert("follows"), _as_they_are),
    c.AddDeliveries: (_insert("deliveries"), _as_they_are),
    c.AddArchived: (_insert("archived"), _as_they_are),
    c.AddAudit: (_AUDIT, lambda rows: [row[1:] for row in rows]),
}

#: Of those that touch the same tables: whether rows are new, and what names a row.
_KEYS: dict[type, tuple[bool, Callable[[Any], Any]]] = {
    c.AddItems: (True, lambda row: (row.stream, row.id)),
    c.LeaveItems: (False, lambda row: (row.stream, row.id)),
    c.AddLeases: (True, lambda row: row.token_hash),
    c.EndLeases: (False, lambda row: row.token_hash),
}

#: Changes of one row: made where they stand.
_SINGLE: dict[type, Callable[[Any], list[tuple[Statement, tuple[Any, ...]]]]] = {
    c.AddStream: lambda change: [(_insert("streams"), change.row)],
    c.SetStatus: lambda change: [(_STATUS, (change.status, change.stream))],
    c.AddSettings: lambda change: [(_insert("settings"), change.row)],
    c.RenewLease: lambda change: [(_RENEW_LEASE, (change.ttl, change.token_hash))],
    c.AddEngine: lambda change: [(_ENGINE, change.row)],
    c.SaveSnapshot: lambda change: [(_SNAPSHOT, change.row)],
    c.AddKey: lambda change: [(_insert("keys"), change.row)],
    c.RevokeKey: lambda change: [(_REVOKE, (change.at, change.id))],
    c.TouchKey: lambda change: [(TOUCH, (change.at, change.id))],
    c.AddWebhook: lambda change: [(_insert("webhooks"), change.row)],
    c.RotateSecret: lambda change: [(_ROTATE, (change.old_until, change.secret, change.id))],
    c.RemoveWebhook: lambda change: [(_REMOVE_WEBHOOK, (change.id,))],
    c.UpdateDelivery: lambda change: [(_DELIVERY, _delivery(change))],
    c.SetMeta: lambda change: [(_META, (change.key, change.value))],
    c.DropMeta: lambda change: [(_DROP_META, (change.key,))],
    c.ExpireKey: lambda change: [(_EXPIRE, (change.at, change.id, change.at))],
    c.ErasePayload: lambda change: [
        (_ERASE, (change.stream, change.item)),
        (_ERASE_NOTES, (change.stream, change.item)),
    ],
    c.DropAlarms: lambda change: [(_DROP_ALARMS, (change.stream, change.n, change.stream))],
    c.CorrectGold: lambda change: [(_CORRECT, (*row[2:], *row[:2])) for row in change.rows],
    c.SettleFollow: lambda change: [(_SETTLE, (change.at, change.stream, change.item))],
    c.RetellAudit: lambda change: [(_RETELL, (change.details, change.n))],
    c.ArchiveStream: lambda change: [(_ARCHIVE, (change.at, change.stream))],
    c.MarkDeleted: lambda change: [(_MARK_DELETED, (change.at, change.stream))],
    c.PurgeStream: lambda change: [
        (_PURGE_DELIVERIES, (change.stream, change.limit)),
        *((statement, (change.stream, change.stream, change.limit)) for statement in _PURGE),
    ],
    c.DeleteStream: lambda change: [(_DELETE_STREAM, (change.stream,))],
    c.AddSegment: lambda change: [(_insert("segments"), change.row)],
    c.DropHistory: _drop,
    c.PutBack: _put_back,
    c.RemoveSegment: lambda change: [(_REMOVE_SEGMENT, (change.stream, change.n))],
    c.EraseArchived: lambda change: [(_ERASE_ARCHIVED, (change.stream, change.item))],
}


def plan(changes: Sequence[c.Change]) -> Iterator[Step]:
    """The steps of a transaction; the last ones keep the tallies.

    >>> from venire.server.store import AddLabels, LabelRow
    >>> def label(item):
    ...     return AddLabels([LabelRow("posts", item, "ann", "ok", 0.0, 0, False, None, "bulk")])
    >>> [(step.statement.table, len(step.rows)) for step in plan([label("a"), label("b")])]
    [('labels', 2), (None, 1)]
    """
    gathered: dict[type, list[Any]] = {}
    changed: set[Any] = set()  # rows that what is gathered changes
    for change in changes:
        kind = type(change)
        if kind in _GATHERED:
            rows: Sequence[Any] = change.rows  # type: ignore[union-attr]
            if kind in _KEYS:
                makes, key = _KEYS[kind]
                keys = {key(row) for row in rows}
                if not makes:
                    changed |= keys
                elif not changed.isdisjoint(keys):
                    yield from _flush(gathered)
                    changed.clear()
            gathered.setdefault(kind, []).extend(rows)
            continue
        yield from _flush(gathered)
        for statement, same in groupby(_SINGLE[kind](change), key=lambda pair: pair[0]):
            yield Step(statement, [row for _, row in same])
    yield from _flush(gathered)
    counted = tallied(changes)
    if counted:
        yield Step(_TALLY, [(*key, number) for key, number in sorted(counted.items())])


def tallied(changes: Sequence[c.Change]) -> Counter[tuple[str, str, str]]:
    """How much the changes add to each tally; see `TallyRow`."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for change in changes:
        match change:
            case c.AddItems(rows):
                counted.update((row.stream, "items", ItemStatus.OPEN) for row in rows)
            case c.LeaveItems(rows):
                counted.subtract((row.stream, "items", ItemStatus.OPEN) for row in rows)
                counted.update((row.stream, "items", row.status) for row in rows)
            case c.AddLabels(labels):
                counted.update((row.stream, "labels", row.labeler) for row in labels)
                counted.update((row.stream, "late", row.labeler) for row in labels if row.late)
            case c.AddNotes(notes):
                counted.update((row.stream, row.kind, row.labeler) for row in notes)
    return counted


def dropping(stream: str, numbers: Sequence[int]) -> Step:
    """The step that deletes snapshots."""
    return Step(_DROP_SNAPSHOT, [(stream, n) for n in numbers])


def _flush(gathered: dict[type, list[Any]]) -> Iterator[Step]:
    for kind, (statement, values) in _GATHERED.items():
        rows = gathered.pop(kind, None)
        if rows:
            yield Step(statement, values(rows))
