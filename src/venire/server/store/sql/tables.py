"""The tables of a store in SQLite and PostgreSQL, and the migrations that lead to them.

Each comes from its record (see `records`), column by column. Text is compared by code point
everywhere (in PostgreSQL by the collation "C"), so that pages of a listing are the same in every
store. A test compares what is here with what the migrations make.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
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
    inspect,
    text,
)

from venire.errors import StoreError
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


_MIGRATIONS: Final = Path(__file__).parent / "migrations"

#: The version that this code reads and writes: that of the last migration.
HEAD: Final = max(script.name[1:5] for script in (_MIGRATIONS / "versions").glob("v*.py"))

VERSION_TABLE = "venire_version"

LOG = logging.getLogger("venire.storage")


def version_of(connection: Connection) -> str | None:
    """The version of the store, None if there is nothing yet.

    >>> from sqlalchemy import create_engine
    >>> with create_engine("sqlite://").connect() as connection:
    ...     print(version_of(connection))
    None
    """
    tables = set(inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        found: str | None = connection.execute(
            text(f"SELECT version_num FROM {VERSION_TABLE}")
        ).scalar()
        return found
    ours = sorted(tables & set(metadata.tables))
    if ours:
        raise StoreError(
            f"this is not a store of venire: it has tables of the same names ({', '.join(ours)}) "
            f"but no {VERSION_TABLE}; give the store a database of its own"
        )
    return None


def check_version(version: str | None, url: str) -> bool:
    """Whether the store is to be upgraded first; one of a newer version is refused.

    >>> check_version(HEAD, "sqlite:///venire.db")
    False
    >>> check_version("0001", "sqlite:///venire.db")
    True
    """
    if version is not None and version > HEAD:
        raise StoreError(
            f"the store {url} was written by a newer venire (schema {version}, this one knows "
            f"up to {HEAD}): upgrade venire, or restore the backup from before its upgrade"
        )
    return version != HEAD


def upgrade(connection: Connection, version: str = HEAD) -> None:
    """Run the migrations that are missing, in the transaction of the connection; logged."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    steps = EnvironmentContext(
        config, scripts, fn=lambda now, _: scripts._upgrade_revs(version, now)
    )
    before = version_of(connection)
    if before is not None:
        LOG.info("the store is upgraded from schema %s to %s", before, version)
    with steps:
        steps.configure(
            connection,
            target_metadata=metadata,
            version_table=VERSION_TABLE,
            transactional_ddl=False,  # all of it is in the one transaction of the caller
        )
        steps.run_migrations()
