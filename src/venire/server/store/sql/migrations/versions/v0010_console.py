"""The console: indexes by which items are searched, alarms, and messages about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0010"
down_revision = "0009"

_COLUMNS = "webhook, stream, exit_n, attempt, next_at, status, last_error, failing_since, kind"


def upgrade() -> None:
    """Add an index for each way through the items; make the table; allow messages about alarms."""
    op.create_index("items_by_arrival", "items", ["stream", "arrived_at", "id"])
    op.create_index("items_by_verdict", "items", ["stream", "verdict", "arrived_at", "id"])
    op.create_index("items_by_reason", "items", ["stream", "reason", "arrived_at", "id"])
    op.create_index("items_by_doubt", "items", ["stream", "status", "confidence", "exit_n"])
    op.create_table(
        "alarms",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("rule", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("raised", sa.Boolean, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("threshold", sa.Double, nullable=False),
        sa.Column("message", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("stream", "n", name="alarms_key"),
    )
    _deliveries()


def _deliveries() -> None:
    """A constraint cannot be changed in SQLite: the table is made anew."""
    op.execute(f"CREATE TABLE deliveries_before AS SELECT {_COLUMNS} FROM deliveries")
    op.drop_index("deliveries_by_webhook", "deliveries")
    op.drop_table("deliveries")
    op.create_table(
        "deliveries",
        sa.Column("webhook", TEXT, nullable=False),
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("exit_n", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("last_error", TEXT),
        sa.Column("failing_since", sa.Double),
        sa.Column("kind", TEXT, nullable=False),
        sa.CheckConstraint("status IN ('pending', 'done', 'dead')", name="deliveries_status_known"),
        sa.CheckConstraint("kind IN ('exit', 'revision', 'alarm')", name="deliveries_kind_known"),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("webhook", "kind", "exit_n", name="deliveries_key"),
    )
    op.execute(f"INSERT INTO deliveries SELECT {_COLUMNS} FROM deliveries_before")
    op.drop_table("deliveries_before")
    index = ["webhook", "status", "next_at", "exit_n", "kind"]
    op.create_index("deliveries_by_webhook", "deliveries", index)
