"""The tables of a store in SQLite and PostgreSQL, from the records.

Each comes from its record (see `records`), column by column. Text is compared by code point
everywhere (in PostgreSQL by the collation "C"), so that pages of a listing are the same in every
store. A test compares what is here with what the migrations make.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from venire.server.store import records as r
from venire.server.store.record import Field, OneOf, Record, References

TEXT = Text().with_variant(Text(collation="C"), "postgresql")

_TYPES: Final[dict[type, Any]] = {
    str: TEXT,
    int: BigInteger,
    float: Double,
    bool: Boolean,
    bytes: LargeBinary,
}

metadata = MetaData()


def _column(field: Field) -> Column[Any]:
    kind = Integer if "small" in field.marks else _TYPES[field.type]
    to = [
        ForeignKey(mark.column, ondelete="CASCADE" if mark.cascade else None)
        for mark in field.marks
        if isinstance(mark, References)
    ]
    return Column(field.name, kind, *to, nullable=field.nullable)


def _numbered(field: Field) -> Column[Any]:
    """Numbered by the database: the server and `venire keys` both write into it."""
    return Column(field.name, BigInteger().with_variant(Integer, "sqlite"), autoincrement=True)


def _tables(*records: type[Record]) -> list[Table]:
    return list(map(_table, records))


def _table(record: type[Record]) -> Table:
    name, key, fields, unique, indexes, numbered, _ = record.TABLE
    first, *others = fields
    known = [
        (field.name, ", ".join(f"'{value}'" for value in mark.values))
        for field in fields
        for mark in field.marks
        if isinstance(mark, OneOf)
    ]
    return Table(
        name,
        metadata,
        _numbered(first) if numbered else _column(first),
        *map(_column, others),
        PrimaryKeyConstraint(*key, name=f"{name}_key"),
        *(UniqueConstraint(*columns, name=index) for index, columns in unique.items()),
        *(CheckConstraint(f"{of} IN ({v})", name=f"{name}_{of}_known") for of, v in known),
        *(Index(index, *columns) for index, columns in indexes.items()),
    )


streams, settings, events, items = _tables(r.StreamRow, r.SettingsRow, r.EventRow, r.ItemRow)
revisions, checks, gold, alarms = _tables(r.RevisionRow, r.CheckRow, r.GoldRow, r.AlarmRow)
follows, routed, labels, repeats = _tables(r.FollowRow, r.RoutedRow, r.LabelRow, r.RepeatRow)
leases, notes = _tables(r.LeaseRow, r.NoteRow)
snapshots, engines, segments = _tables(r.SnapshotRow, r.EngineRow, r.SegmentRow)
archived, tallies, keys, webhooks = _tables(r.ArchivedRow, r.TallyRow, r.KeyRow, r.WebhookRow)
deliveries, audit = _tables(r.DeliveryRow, r.AuditRow)

meta = Table(
    "meta",
    metadata,
    Column("key", TEXT, nullable=False),
    Column("value", TEXT, nullable=False),
    PrimaryKeyConstraint("key", name="meta_key"),
)

#: Of PostgreSQL: the sessions of servers, and the streams that they have claimed (see `servers`).
servers = Table(
    "servers",
    metadata,
    Column("pid", BigInteger, autoincrement=False),
    Column("role", BigInteger, nullable=False),
    Column("began", BigInteger, nullable=False),
    Column("address", TEXT, nullable=False),
    Column("secret", TEXT, nullable=False),
    Column("leaving", Boolean, nullable=False),
    PrimaryKeyConstraint("pid", name="servers_key"),
)

claims = Table(
    "claims",
    metadata,
    Column("stream", TEXT, nullable=False),
    Column("pid", BigInteger, ForeignKey("servers.pid", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("stream", name="claims_key"),
)

#: The tables whose rows belong to a stream; the audit trail stays when the stream goes.
OF_STREAMS: Final = tuple(
    record.TABLE.name for record in reversed(r.RECORDS) if record.TABLE.of_stream
)
