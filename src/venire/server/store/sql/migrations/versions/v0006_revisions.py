"""Revisions: verdicts of items that have left that became others, and their deliveries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table, and the kind of a delivery, by which it is known too."""
    op.create_table(
        "revisions",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("before", TEXT),
        sa.Column("before_confidence", sa.Double(), nullable=False),
        sa.Column("verdict", TEXT),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("stream", "n", name="revisions_key"),
    )
    op.create_index("revisions_by_item", "revisions", ["stream", "item", "n"])
    _deliveries()


def _deliveries() -> None:
    """A key cannot be changed in SQLite: the table is made anew."""
    columns = "webhook, stream, exit_n, attempt, next_at, status, last_error, failing_since"
    op.execute(f"CREATE TABLE deliveries_before AS SELECT {columns} FROM deliveries")
    op.drop_index("deliveries_by_webhook", "deliveries")
    op.drop_table("deliveries")
    op.create_table(
        "deliveries",
        sa.Column("webhook", TEXT, nullable=False),
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("exit_n", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("last_error", TEXT),
        sa.Column("failing_since", sa.Double()),
        sa.Column("kind", TEXT, nullable=False),
        sa.CheckConstraint("status IN ('pending', 'done', 'dead')", name="deliveries_status_known"),
        sa.CheckConstraint("kind IN ('exit', 'revision')", name="deliveries_kind_known"),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("webhook", "kind", "exit_n", name="deliveries_key"),
    )
    op.execute(f"INSERT INTO deliveries SELECT {columns}, 'exit' FROM deliveries_before")
    op.drop_table("deliveries_before")
    index = ["webhook", "status", "next_at", "exit_n", "kind"]
    op.create_index("deliveries_by_webhook", "deliveries", index)
