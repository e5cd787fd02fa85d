"""The statements that write into a database, and the plan of a transaction.

Each is plain SQL that SQLite and PostgreSQL both know, with `?` for a value. A transaction of
many requests holds the same few kinds of changes over and over; `plan` brings those of a kind
together, so that the database gets few statements with many rows. The outcome is as if they were
made one by one: what is new goes before what changes only where it is not about the same row, and
changes that others depend on (a stream, a webhook, a status) stay exactly where they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
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


class _Template(NamedTuple):
    """A statement, and what takes its values from a change or a row of one."""

    statement: Statement
    values: Callable[[Any], tuple[Any, ...]]

    def step(self, rows: Iterable[Any]) -> Step:
        return Step(self.statement, list(map(self.values, rows)))


def _template(sql: str, exact: str | None = None) -> _Template:
    """A statement in which `:name` stands for the field of that name.

    >>> made = _template("UPDATE keys SET revoked_at = :at WHERE id = :id")
    >>> made.statement.sql, made.values(c.RevokeKey("key_1", 9.0))
    ('UPDATE keys SET revoked_at = ? WHERE id = ?', (9.0, 'key_1'))
    """
    names = re.findall(r":(\w+)", sql)
    several = len(names) > 1
    values = attrgetter(*names) if several else lambda row: (getattr(row, names[0]),)
    return _Template(Statement(re.sub(r":\w+", "?", sql), exact=exact), values)


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


def _update(record: type[Record], values: type[Record], more: str = "") -> str:
    """Set what `values` has, where the key of the record is the same."""
    key = record.TABLE.key
    changed = ", ".join(f"{name} = :{name}" for name in values._fields if name not in key)
    where = " AND ".join(f"{name} = :{name}" for name in key)
    return f"UPDATE {record.TABLE.name} SET {changed} WHERE {where}{more}"


def _purge(table: str) -> str:
    """Delete some rows of a stream; a webhook goes once it has no deliveries."""
    keys = ", ".join(column.name for column in metadata.tables[table].primary_key.columns)
    more = ""
    if table == "webhooks":
        more = " AND NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook = webhooks.id)"
    some = f"SELECT {keys} FROM {table} WHERE stream = :stream LIMIT :limit"
    return f"DELETE FROM {table} WHERE stream = :stream{more} AND ({keys}) IN ({some})"


_TALLY = _insert(
    r.TallyRow,
    " ON CONFLICT (stream, kind, name) DO UPDATE SET number = tallies.number + excluded.number",
)
_DROP_SNAPSHOT = Statement("DELETE FROM snapshots WHERE stream = ? AND n = ?")
_UNARCHIVE = _template("DELETE FROM archived WHERE stream = :stream AND id = :id")

#: What labelers wrote of an item: their notes, and why they said what they said.
_ERASE_TEXTS = (
    "UPDATE notes SET text = '' WHERE stream = :stream AND item = :item",
    "UPDATE labels SET rationale = NULL WHERE stream = :stream AND item = :item "
    "AND rationale IS NOT NULL",
)

#: The statements that make a change, with the fields of its rows or row, if it has any, or its own.
_SQL: Final[dict[type, tuple[str, ...]]] = {
    c.LeaveItems: (_update(r.ItemRow, r.ExitRow, " AND status = 'open'"),),
    c.EndLeases: (
        "UPDATE leases SET status = :status, ended_at = :ended_at, answer = :answer, "
        "ended_key = :key WHERE token_hash = :token_hash",
    ),
    c.SetStatus: ("UPDATE streams SET status = :status WHERE name = :stream",),
    c.RenewLease: ("UPDATE leases SET ttl = :ttl WHERE token_hash = :token_hash",),
    c.RevokeKey: ("UPDATE keys SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL",),
    c.ExpireKey: (
        "UPDATE keys SET expires_at = :at WHERE id = :id "
        "AND (expires_at IS NULL OR expires_at > :at)",
    ),
    c.TouchKey: ("UPDATE keys SET last_used_at = :at WHERE id = :id",),
    c.RotateSecret: (
        "UPDATE webhooks SET old_secret = secret, old_until = :old_until, secret = :secret "
        "WHERE id = :id",
    ),
    c.RemoveWebhook: ("DELETE FROM webhooks WHERE id = :id",),
    c.UpdateDelivery: (_update(r.DeliveryRow, r.DeliveryRow),),
    c.SetMeta: (
        "INSERT INTO meta (key, value) VALUES (:key, :value) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    ),
    c.DropMeta: ("DELETE FROM meta WHERE key = :key",),
    c.ErasePayload: (
        f"UPDATE items SET payload = 'null', digest = '{ERASED}' "
        "WHERE stream = :stream AND id = :item",
        *_ERASE_TEXTS,
    ),
    c.EraseArchived: (
        f"UPDATE archived SET digest = '{ERASED}' WHERE stream = :stream AND id = :item",
        *_ERASE_TEXTS,
    ),
    c.DropAlarms: (
        "DELETE FROM alarms WHERE stream = :stream AND n <= :n AND n NOT IN "
        "(SELECT max(n) FROM alarms WHERE stream = :stream GROUP BY rule, subject)",
    ),
    c.CorrectGold: (_update(r.GoldRow, r.GoldRow),),
    c.SettleFollow: (
        "UPDATE follows SET settled_at = :at WHERE stream = :stream AND item = :item",
    ),
    c.SettleRoute: (_update(r.RoutedRow, r.RoutedRow),),
    c.RetellAudit: ("UPDATE audit SET details = :details WHERE n = :n",),
    c.ArchiveStream: ("UPDATE streams SET archived_at = :at WHERE name = :stream",),
    c.MarkDeleted: ("UPDATE streams SET deleted_at = :at WHERE name = :stream",),
    c.PurgeStream: (
        "DELETE FROM deliveries WHERE (webhook, kind, exit_n) IN "
        "(SELECT webhook, kind, exit_n FROM deliveries "
        "WHERE webhook IN (SELECT id FROM webhooks WHERE stream = :stream) LIMIT :limit)",
        *map(_purge, OF_STREAMS),
    ),
    c.DeleteStream: ("DELETE FROM streams WHERE name = :stream",),
    c.RemoveSegment: ("DELETE FROM segments WHERE stream = :stream AND n = :n",),
}

#: What is wrong where the first of these statements finds no row.
_EXACT: Final[dict[type, str]] = {
    c.LeaveItems: "an item that leaves is not open",
    c.EndLeases: "a lease that ends is unknown",
    c.SetStatus: "a stream to change is unknown",
    c.ErasePayload: "an item to erase is unknown",
    c.EraseArchived: "an archived item to erase is unknown",
    c.CorrectGold: "gold to correct is unknown",
    c.ArchiveStream: "a stream to archive is unknown",
    c.MarkDeleted: "a stream to delete is unknown",
}

_MADE_BY: Final = {
    kind: (_template(first, _EXACT.get(kind)), *map(_template, others))
    for kind, (first, *others) in _SQL.items()
}

#: What says when a key was last used: a store may skip it rather than wait.
TOUCH_KEY: Final = _MADE_BY[c.TouchKey][0].statement.sql

_THEIRS = "item IN (SELECT id FROM items WHERE stream = :stream AND exit_n <= :exits)"


def _drops(digest: str, *forgotten: str) -> tuple[_Template, ...]:
    """What drops a segment's rows, what depends on items first; `forgotten` tables go with them."""
    sent = (
        "DELETE FROM deliveries WHERE webhook IN (SELECT id FROM webhooks WHERE stream = :stream) "
        "AND status <> 'pending' AND"
    )
    statements = (
        f"INSERT INTO archived (stream, id, digest, segment) SELECT stream, id, {digest}, "
        "CAST(:n AS BIGINT) FROM items WHERE stream = :stream AND exit_n <= :exits "
        "ON CONFLICT DO NOTHING",
        f"DELETE FROM labels WHERE stream = :stream AND {_THEIRS} AND (NOT late OR slot < :slot)",
        f"DELETE FROM leases WHERE stream = :stream AND {_THEIRS} AND status <> 'open' "
        "AND ended_at <= :at",
        f"DELETE FROM notes WHERE stream = :stream AND {_THEIRS} AND n <= :notes",
        *(f"DELETE FROM {table} WHERE stream = :stream AND {_THEIRS}" for table in forgotten),
        "DELETE FROM items WHERE stream = :stream AND exit_n <= :exits",
        f"{sent} kind = 'exit' AND exit_n <= :exits",
        "DELETE FROM revisions WHERE stream = :stream AND n <= :revisions",
        f"{sent} kind = 'revision' AND exit_n <= :revisions",
        "DELETE FROM events WHERE stream = :stream AND n < :next_event",
        "DELETE FROM snapshots WHERE stream = :stream AND n < :next_event",
    )
    return tuple(map(_template, statements))


_DROP_ARCHIVED = _drops("digest")
_DROP_FORGOTTEN = _drops(f"'{ERASED}'", "routed", "repeats")


def _drop(change: c.DropHistory) -> Iterator[Step]:
    """The steps that drop what a segment has, up to a place."""
    segment = change.segment
    upto = segment._replace(
        next_event=min(change.events, segment.next_event),
        exits=min(change.exits, segment.exits),
        revisions=min(change.revisions, segment.revisions),
    )
    for template in _DROP_ARCHIVED if segment.name else _DROP_FORGOTTEN:
        yield template.step([upto])


def _put_back(change: c.PutBack) -> Iterator[Step]:
    rows: Sequence[Any] = change.rows
    if rows:
        yield Step(_insert(type(change.rows[0]), " ON CONFLICT DO NOTHING"), rows)
        items = [row for row in rows if isinstance(row, r.ItemRow)]
        if items:
            yield _UNARCHIVE.step(items)


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
        yield from _made(change)
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
    return Step(_DROP_SNAPSHOT, [(stream, n) for n in numbers])


def _flush(gathered: dict[type, list[Any]]) -> Iterator[Step]:
    for kind in _GATHERED if gathered else ():
        if rows := gathered.pop(kind, None):
            yield from _gathered_steps(kind, rows)


def _made(change: c.Change) -> Iterator[Step]:
    match change:
        case c.DropHistory():
            yield from _drop(change)
        case c.PutBack():
            yield from _put_back(change)
        case c.Insert():
            if change.rows:
                yield from _gathered_steps(type(change.rows[0]), change.rows)
        case _:
            rows = getattr(change, "rows", [getattr(change, "row", change)])
            for template in _MADE_BY[type(change)]:
                yield template.step(rows)


def _gathered_steps(kind: type, rows: Sequence[Any]) -> Iterator[Step]:
    """The steps that insert rows, let items leave or end leases."""
    if not issubclass(kind, Record):
        for template in _MADE_BY[kind]:
            yield template.step(rows)
    elif kind.TABLE.numbered:
        yield Step(_insert(kind), [row[1:] for row in rows])
    else:
        yield Step(_insert(kind), rows)
