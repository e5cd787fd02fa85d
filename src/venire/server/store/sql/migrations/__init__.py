"""How a store of an older version becomes one of this: alembic's scripts, one per version.

A new version is a file `versions/vNNNN_what_for.py`, the same change in `records`, and a store of
the version before in `tests/data`. What the words here mean never changes: old scripts use them.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

_TYPES: Final[dict[str, Any]] = {
    "TEXT": sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
    "BIGINT": sa.BigInteger(),
    "INTEGER": sa.Integer(),
    "DOUBLE": sa.Double(),
    "BOOLEAN": sa.Boolean(),
    "BYTES": sa.LargeBinary(),
}


def columns(declared: str) -> list[sa.Column[Any]]:
    """Columns from words; a STREAM is the name of one, NULL says that a column may be empty.

    >>> [(each.name, each.nullable) for each in columns("stream STREAM, at DOUBLE, key TEXT NULL")]
    [('stream', False), ('at', False), ('key', True)]
    """
    made = []
    for words in declared.split(","):
        name, kind, *null = words.split()
        to = [sa.ForeignKey("streams.name")] if kind == "STREAM" else []
        type_ = _TYPES["TEXT" if kind == "STREAM" else kind]
        made.append(sa.Column(name, type_, *to, nullable=null == ["NULL"]))
    return made


def create(table: str, key: str, declared: str | list[Any], *constraints: Any) -> None:
    """Create a table with a primary key, given as names with spaces between them."""
    parts = columns(declared) if isinstance(declared, str) else declared
    op.create_table(
        table, *parts, sa.PrimaryKeyConstraint(*key.split(), name=f"{table}_key"), *constraints
    )


def add(table: str, declared: str) -> None:
    """Add columns to a table; rows that are there already have NULL in them."""
    for column in columns(declared):
        op.add_column(table, column)


def known(table: str, column: str, values: str) -> sa.CheckConstraint:
    """A column holds one of these values, given with spaces between them."""
    listed = ", ".join(f"'{value}'" for value in values.split())
    return sa.CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}_known")


def deliveries(kinds: str, kind: str) -> None:
    """Make the table of deliveries anew: in SQLite, keys and constraints cannot be changed.

    `kinds` are those that it may hold, and `kind` is that of the rows so far, in SQL.
    """
    kept = "webhook, stream, exit_n, attempt, next_at, status, last_error, failing_since"
    op.execute("CREATE TABLE deliveries_before AS SELECT * FROM deliveries")
    op.drop_index("deliveries_by_webhook", "deliveries")
    op.drop_table("deliveries")
    create(
        "deliveries",
        "webhook kind exit_n",
        "webhook TEXT, stream TEXT, exit_n BIGINT, attempt INTEGER, next_at DOUBLE, "
        "status TEXT, last_error TEXT NULL, failing_since DOUBLE NULL, kind TEXT",
        known("deliveries", "status", "pending done dead"),
        known("deliveries", "kind", kinds),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
    )
    op.execute(f"INSERT INTO deliveries SELECT {kept}, {kind} FROM deliveries_before")
    op.drop_table("deliveries_before")
    index = ["webhook", "status", "next_at", "exit_n", "kind"]
    op.create_index("deliveries_by_webhook", "deliveries", index)
