"""How a store of an older version becomes one of this: a function for each version of the schema.

A new version is a function, its name at the end of `MIGRATIONS`, the same change in `records`, and
a store of the version before in `tests/data` (`python -m tests.store.older`). What is here never
changes: older stores go through all of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, inspect, text

from venire.errors import StoreError
from venire.server.store.sql.tables import metadata

if TYPE_CHECKING:
    from alembic.operations import Operations

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


def needs_upgrade(version: str | None, url: str) -> bool:
    """Whether the store is to be upgraded first; one of a newer version is refused.

    >>> needs_upgrade(HEAD, "sqlite:///venire.db")
    False
    >>> needs_upgrade("0001", "sqlite:///venire.db")
    True
    """
    if version is not None and version > HEAD:
        raise StoreError(
            f"the store {url} was written by a newer venire (schema {version}, this one knows "
            f"up to {HEAD}): upgrade venire, or restore the backup from before its upgrade"
        )
    return version != HEAD


def upgrade(connection: Connection, url: str) -> None:
    """Run the migrations that are missing, in the transaction of the connection; logged."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    before = version_of(connection)
    if not needs_upgrade(before, url):  # somebody else has made it meanwhile
        return
    if before is not None:
        LOG.info("the store is upgraded from schema %s to %s", before, HEAD)
    operations = Operations(MigrationContext.configure(connection))
    for migrate in MIGRATIONS[int(before or 0) :]:
        migrate(operations)
    key = f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num)"
    for sql in (
        f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, {key})",
        f"DELETE FROM {VERSION_TABLE}",
        f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{HEAD}')",
    ):
        connection.execute(text(sql))


_TYPES: Final[dict[str, Any]] = {
    "TEXT": sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
    "BIGINT": sa.BigInteger(),
    "INTEGER": sa.Integer(),
    "DOUBLE": sa.Double(),
    "BOOLEAN": sa.Boolean(),
    "BYTES": sa.LargeBinary(),
}


def _columns(declared: str) -> list[sa.Column[Any]]:
    """Columns from words; a STREAM is the name of one, NULL says that a column may be empty.

    >>> [(each.name, each.nullable) for each in _columns("stream STREAM, at DOUBLE, key TEXT NULL")]
    [('stream', False), ('at', False), ('key', True)]
    """
    made = []
    for words in declared.split(","):
        name, kind, *null = words.split()
        to = [sa.ForeignKey("streams.name")] if kind == "STREAM" else []
        type_ = _TYPES["TEXT" if kind == "STREAM" else kind]
        made.append(sa.Column(name, type_, *to, nullable=null == ["NULL"]))
    return made


def _create(
    op: Operations, table: str, key: str, declared: str | list[Any], *constraints: Any
) -> None:
    """Create a table with a primary key, given as names with spaces between them."""
    parts = _columns(declared) if isinstance(declared, str) else declared
    op.create_table(
        table, *parts, sa.PrimaryKeyConstraint(*key.split(), name=f"{table}_key"), *constraints
    )


def _add(op: Operations, table: str, declared: str) -> None:
    """Add columns to a table; rows that are there already have NULL in them."""
    for column in _columns(declared):
        op.add_column(table, column)


def _known(table: str, column: str, values: str) -> sa.CheckConstraint:
    """A column holds one of these values, given with spaces between them."""
    listed = ", ".join(f"'{value}'" for value in values.split())
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}_known")


def _remake_deliveries(op: Operations, kinds: str, kind: str) -> None:
    """Make the table of deliveries anew: in SQLite, keys and constraints cannot be changed.

    `kinds` are those that it may hold, and `kind` is that of the rows so far, in SQL.
    """
    kept = "webhook, stream, exit_n, attempt, next_at, status, last_error, failing_since"
    op.execute("CREATE TABLE deliveries_before AS SELECT * FROM deliveries")
    op.drop_index("deliveries_by_webhook", "deliveries")
    op.drop_table("deliveries")
    _create(
        op,
        "deliveries",
        "webhook kind exit_n",
        "webhook TEXT, stream TEXT, exit_n BIGINT, attempt INTEGER, next_at DOUBLE, "
        "status TEXT, last_error TEXT NULL, failing_since DOUBLE NULL, kind TEXT",
        _known("deliveries", "status", "pending done dead"),
        _known("deliveries", "kind", kinds),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
    )
    op.execute(f"INSERT INTO deliveries SELECT {kept}, {kind} FROM deliveries_before")
    op.drop_table("deliveries_before")
    index = ["webhook", "status", "next_at", "exit_n", "kind"]
    op.create_index("deliveries_by_webhook", "deliveries", index)


def _first_tables(op: Operations) -> None:
    """The first tables."""
    _create(
        op,
        "streams",
        "name",
        "name TEXT, created_at DOUBLE, status TEXT",
        _known("streams", "status", "running paused closed"),
    )
    _create(
        op,
        "settings",
        "stream version",
        "stream STREAM, version INTEGER, at DOUBLE, actor TEXT, body TEXT",
    )
    _create(
        op,
        "events",
        "stream n",
        "stream STREAM, n BIGINT, size INTEGER, slot BIGINT, at DOUBLE, kind TEXT, body TEXT",
    )
    _create(op, "snapshots", "stream n", "stream STREAM, n BIGINT, at DOUBLE, body BYTES")
    _create(
        op,
        "items",
        "stream id",
        "stream STREAM, id TEXT, digest TEXT, payload TEXT, weight DOUBLE, "
        "eligible TEXT NULL, excluded TEXT, arrived_slot BIGINT, arrived_at DOUBLE, "
        "status TEXT, exit_n BIGINT NULL, exit_slot BIGINT NULL, left_at DOUBLE NULL, "
        "verdict TEXT NULL, confidence DOUBLE NULL, labels INTEGER NULL, reason TEXT NULL",
        _known("items", "status", "open left withdrawn"),
        sa.UniqueConstraint("stream", "exit_n", name="items_exit"),
    )
    _create(
        op,
        "labels",
        "stream item labeler",
        "stream STREAM, item TEXT, labeler TEXT, said TEXT, at DOUBLE, slot BIGINT, "
        "late BOOLEAN, lead_seconds DOUBLE NULL, source TEXT",
    )
    _create(
        op,
        "leases",
        "token_hash",
        "token_hash TEXT, stream STREAM, item TEXT, labeler TEXT, given_at DOUBLE, "
        "ttl DOUBLE, status TEXT, ended_at DOUBLE NULL, answer TEXT NULL",
        _known("leases", "status", "open done released expired"),
    )
    op.create_index("leases_by_stream", "leases", ["stream", "status"], unique=False)
    _create(
        op, "webhooks", "id", "id TEXT, stream STREAM, url TEXT, secret TEXT, created_at DOUBLE"
    )
    _create(
        op,
        "deliveries",
        "webhook exit_n",
        "webhook TEXT, stream TEXT, exit_n BIGINT, attempt INTEGER, next_at DOUBLE, "
        "status TEXT, last_error TEXT NULL",
        _known("deliveries", "status", "pending done dead"),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
    )
    op.create_index("deliveries_due", "deliveries", ["status", "next_at"], unique=False)
    _create(
        op,
        "keys",
        "id",
        "id TEXT, hash TEXT, role TEXT, labeler TEXT NULL, name TEXT, created_at DOUBLE, "
        "last_used_at DOUBLE NULL, revoked_at DOUBLE NULL",
        sa.UniqueConstraint("hash", name="keys_hash"),
    )
    _create(op, "replies", "key", "key TEXT, digest TEXT, status INTEGER, body TEXT, at DOUBLE")
    op.create_index("replies_by_time", "replies", ["at"], unique=False)
    _create(op, "meta", "key", "key TEXT, value TEXT")


def _listings(op: Operations) -> None:
    """Items by status and labels by time, without reading all of them."""
    op.create_index("items_by_status", "items", ["stream", "status", "id"])
    op.create_index("labels_by_time", "labels", ["stream", "at"])


def _queues(op: Operations) -> None:
    """What is due for one webhook without reading what is due for the others; no replies.

    The answers to requests with an idempotency key were never written down: what a request is
    about (an item's id, an assignment's token, the pair of item and labeler) makes it count once.
    """
    op.drop_index("replies_by_time", "replies")
    op.drop_table("replies")
    op.drop_index("deliveries_due", "deliveries")
    columns = ["webhook", "status", "next_at", "exit_n"]
    op.create_index("deliveries_by_webhook", "deliveries", columns)


def _audit(op: Operations) -> None:
    """Who did what, and with which key; keys that expire; streams that can be deleted.

    Items, labels and leases get the id of the key that made them, where one is known from now on.
    """
    _add(op, "streams", "deleted_at DOUBLE NULL")
    _add(op, "keys", "expires_at DOUBLE NULL")
    _add(op, "items", "key TEXT NULL")
    _add(op, "labels", "key TEXT NULL")
    _add(op, "leases", "key TEXT NULL, ended_key TEXT NULL")
    op.create_index("leases_by_item", "leases", ["stream", "item", "labeler"])
    n = sa.Column("n", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True)
    others = _columns(
        "at DOUBLE, actor TEXT, key TEXT NULL, action TEXT, stream TEXT NULL, subject TEXT NULL, "
        "details TEXT"
    )
    _create(op, "audit", "n", [n, *others])
    op.create_index("audit_by_stream", "audit", ["stream", "n"])


def _webhooks(op: Operations) -> None:
    """Since when a delivery fails, so that it is tried for days; the secret before this one."""
    _add(op, "webhooks", "old_secret TEXT NULL, old_until DOUBLE NULL")
    _add(op, "deliveries", "failing_since DOUBLE NULL")


def _revisions(op: Operations) -> None:
    """Revisions: verdicts of items that have left that became others, and their deliveries."""
    _create(
        op,
        "revisions",
        "stream n",
        "stream STREAM, n BIGINT, item TEXT, slot BIGINT, at DOUBLE, before TEXT NULL, "
        "before_confidence DOUBLE, verdict TEXT NULL, confidence DOUBLE, labels INTEGER",
    )
    op.create_index("revisions_by_item", "revisions", ["stream", "item", "n"])
    _remake_deliveries(op, "exit revision", kind="'exit'")


def _tallies(op: Operations) -> None:
    """How many labels and items there are, and which version of the engine wrote what.

    A start read all labels to count them; from here on the counts are kept as labels come.
    """
    _create(op, "engines", "stream n", "stream STREAM, n BIGINT, version TEXT, at DOUBLE")
    _create(op, "tallies", "stream kind name", "stream STREAM, kind TEXT, name TEXT, number BIGINT")
    fill = (
        "SELECT stream, 'items', status, COUNT(*) FROM items GROUP BY stream, status",
        "SELECT stream, 'labels', labeler, COUNT(*) FROM labels GROUP BY stream, labeler",
        "SELECT stream, 'late', labeler, COUNT(*) FROM labels WHERE late GROUP BY stream, labeler",
    )
    for counted in fill:
        op.execute(f"INSERT INTO tallies (stream, kind, name, number) {counted}")


def _gold(op: Operations) -> None:
    """Gold, verdicts drawn to be audited, and the confidence that an item must reach."""
    _add(op, "items", "min_confidence DOUBLE NULL")
    _create(
        op,
        "checks",
        "stream n",
        "stream STREAM, n BIGINT, item TEXT, at DOUBLE, share DOUBLE, verdict TEXT",
        sa.UniqueConstraint("stream", "item", name="checks_item"),
    )
    _create(
        op,
        "gold",
        "stream item",
        "stream STREAM, item TEXT, label TEXT, at DOUBLE, source TEXT, actor TEXT, key TEXT NULL",
    )


def _notes(op: Operations) -> None:
    """Notes of labelers: comments, flags, and what they were not sure of."""
    _create(
        op,
        "notes",
        "stream n",
        "stream STREAM, n BIGINT, item TEXT, labeler TEXT, kind TEXT, text TEXT, at DOUBLE, "
        "key TEXT NULL",
        _known("notes", "kind", "comment flag unsure"),
    )
    op.create_index("notes_by_item", "notes", ["stream", "item", "n"])
    op.create_index("labels_by_labeler", "labels", ["stream", "labeler", "at"])


def _console(op: Operations) -> None:
    """The console: indexes by which items are searched, alarms, and messages about them."""
    op.create_index("items_by_arrival", "items", ["stream", "arrived_at", "id"])
    op.create_index("items_by_verdict", "items", ["stream", "verdict", "arrived_at", "id"])
    op.create_index("items_by_reason", "items", ["stream", "reason", "arrived_at", "id"])
    op.create_index("items_by_doubt", "items", ["stream", "status", "confidence", "exit_n"])
    _create(
        op,
        "alarms",
        "stream n",
        "stream STREAM, n BIGINT, at DOUBLE, rule TEXT, subject TEXT, raised BOOLEAN, "
        "value DOUBLE, threshold DOUBLE, message TEXT",
    )
    _remake_deliveries(op, "exit revision alarm", kind="kind")


def _archived(op: Operations) -> None:
    """Streams that are archived, and items that are sent back for more labels."""
    _add(op, "streams", "archived_at DOUBLE NULL")
    _create(
        op,
        "follows",
        "stream item",
        "stream STREAM, item TEXT, original TEXT, at DOUBLE, actor TEXT, key TEXT NULL, "
        "settled_at DOUBLE NULL",
    )


def _history(op: Operations) -> None:
    """Bounded history: which parts of a log are archived, and which items are in them."""
    _create(
        op,
        "segments",
        "stream n",
        "stream STREAM, n BIGINT, at DOUBLE, first_event BIGINT, next_event BIGINT, "
        "ended_at DOUBLE, slot BIGINT, exits BIGINT, revisions BIGINT, notes BIGINT, "
        "name TEXT, digest TEXT",
    )
    _create(op, "archived", "stream id", "stream STREAM, id TEXT, digest TEXT, segment BIGINT")


def _servers(op: Operations) -> None:
    """The servers on a store, and what each of them has claimed; in SQLite there are none."""
    pid = sa.Column("pid", sa.BigInteger, autoincrement=False, nullable=False)
    others = _columns("role BIGINT, began BIGINT, address TEXT, secret TEXT, leaving BOOLEAN")
    _create(op, "servers", "pid", [pid, *others])
    claimed_by = sa.ForeignKeyConstraint(["pid"], ["servers.pid"], ondelete="CASCADE")
    _create(op, "claims", "stream", "stream TEXT, pid BIGINT", claimed_by)


def _corrections(op: Operations) -> None:
    """What was corrected in gold, and who had said it; audits that were drawn for a class."""
    _add(op, "gold", "earlier TEXT NULL")
    no = sa.false()
    op.add_column("checks", sa.Column("extra", sa.Boolean, nullable=False, server_default=no))


def _confidence(op: Operations) -> None:
    """How sure labelers said they were."""
    _add(op, "labels", "confidence DOUBLE NULL")


def _routed(op: Operations) -> None:
    """Verdicts that send items to other streams and to webhooks."""
    _create(
        op,
        "routed",
        "stream item kind target",
        "stream STREAM, item TEXT, kind TEXT, target TEXT, at DOUBLE, verdict TEXT NULL, "
        "confidence DOUBLE, settled_at DOUBLE NULL, fault TEXT NULL",
        _known("routed", "kind", "stream webhook"),
    )
    op.create_index("routed_waiting", "routed", ["settled_at", "at"])
    op.create_index("routed_by_target", "routed", ["target", "item"])


def _rationale(op: Operations) -> None:
    """Why labelers said what they said."""
    _add(op, "labels", "rationale TEXT NULL")


def _repeats(op: Operations) -> None:
    """What labelers say who are asked about an item again."""
    _add(op, "leases", "again TEXT NULL")
    _create(
        op,
        "repeats",
        "stream item labeler",
        "stream STREAM, item TEXT, labeler TEXT, before TEXT, said TEXT, at DOUBLE, slot BIGINT, "
        "lead_seconds DOUBLE NULL, key TEXT NULL, confidence DOUBLE NULL",
    )
    op.create_index("repeats_by_labeler", "repeats", ["stream", "labeler", "at"])


#: One for each version of the schema: the first leads to 0001.
MIGRATIONS: Final = (
    _first_tables,
    _listings,
    _queues,
    _audit,
    _webhooks,
    _revisions,
    _tallies,
    _gold,
    _notes,
    _console,
    _archived,
    _history,
    _servers,
    _corrections,
    _confidence,
    _routed,
    _rationale,
    _repeats,
)

#: The version that this code reads and writes: that of the last migration.
HEAD: Final = f"{len(MIGRATIONS):04}"
