"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables of an empty store."""
    _streams()
    _log()
    _work()
    _notices()
    _service()


def _streams() -> None:
    op.create_table(
        "streams",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.CheckConstraint(
            "status IN ('running', 'paused', 'closed')", name="streams_status_known"
        ),
        sa.PrimaryKeyConstraint("name", name="streams_key"),
    )
    op.create_table(
        "settings",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("stream", "version", name="settings_key"),
    )


def _log() -> None:
    op.create_table(
        "events",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("stream", "n", name="events_key"),
    )
    op.create_table(
        "snapshots",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("stream", "n", name="snapshots_key"),
    )


def _work() -> None:
    op.create_table(
        "items",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("payload", TEXT, nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("eligible", TEXT),
        sa.Column("excluded", TEXT, nullable=False),
        sa.Column("arrived_slot", sa.BigInteger(), nullable=False),
        sa.Column("arrived_at", sa.Double(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("exit_n", sa.BigInteger()),
        sa.Column("exit_slot", sa.BigInteger()),
        sa.Column("left_at", sa.Double()),
        sa.Column("verdict", TEXT),
        sa.Column("confidence", sa.Double()),
        sa.Column("labels", sa.Integer()),
        sa.Column("reason", TEXT),
        sa.CheckConstraint("status IN ('open', 'left', 'withdrawn')", name="items_status_known"),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("stream", "id", name="items_key"),
        sa.UniqueConstraint("stream", "exit_n", name="items_exit"),
    )
    op.create_table(
        "labels",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("labeler", TEXT, nullable=False),
        sa.Column("said", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("lead_seconds", sa.Double()),
        sa.Column("source", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("stream", "item", "labeler", name="labels_key"),
    )
    op.create_table(
        "leases",
        sa.Column("token_hash", TEXT, nullable=False),
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("labeler", TEXT, nullable=False),
        sa.Column("given_at", sa.Double(), nullable=False),
        sa.Column("ttl", sa.Double(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("ended_at", sa.Double()),
        sa.Column("answer", TEXT),
        sa.CheckConstraint(
            "status IN ('open', 'done', 'released', 'expired')", name="leases_status_known"
        ),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("token_hash", name="leases_key"),
    )
    op.create_index("leases_by_stream", "leases", ["stream", "status"], unique=False)


def _notices() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("secret", TEXT, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["streams.name"]),
        sa.PrimaryKeyConstraint("id", name="webhooks_key"),
    )
    op.create_table(
        "deliveries",
        sa.Column("webhook", TEXT, nullable=False),
        sa.Column("stream", TEXT, nullable=False),
        sa.Column("exit_n", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("last_error", TEXT),
        sa.CheckConstraint("status IN ('pending', 'done', 'dead')", name="deliveries_status_known"),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("webhook", "exit_n", name="deliveries_key"),
    )
    op.create_index("deliveries_due", "deliveries", ["status", "next_at"], unique=False)


def _service() -> None:
    op.create_table(
        "keys",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("role", TEXT, nullable=False),
        sa.Column("labeler", TEXT),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double()),
        sa.Column("revoked_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="keys_key"),
        sa.UniqueConstraint("hash", name="keys_hash"),
    )
    op.create_table(
        "replies",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="replies_key"),
    )
    op.create_index("replies_by_time", "replies", ["at"], unique=False)
    op.create_table(
        "meta",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("key", name="meta_key"),
    )
