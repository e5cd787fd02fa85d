"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.migrations import create, known

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of an empty store."""
    create(
        "streams",
        "name",
        "name TEXT, created_at DOUBLE, status TEXT",
        known("streams", "status", "running paused closed"),
    )
    create(
        "settings",
        "stream version",
        "stream STREAM, version INTEGER, at DOUBLE, actor TEXT, body TEXT",
    )
    create(
        "events",
        "stream n",
        "stream STREAM, n BIGINT, size INTEGER, slot BIGINT, at DOUBLE, kind TEXT, body TEXT",
    )
    create("snapshots", "stream n", "stream STREAM, n BIGINT, at DOUBLE, body BYTES")
    create(
        "items",
        "stream id",
        "stream STREAM, id TEXT, digest TEXT, payload TEXT, weight DOUBLE, "
        "eligible TEXT NULL, excluded TEXT, arrived_slot BIGINT, arrived_at DOUBLE, "
        "status TEXT, exit_n BIGINT NULL, exit_slot BIGINT NULL, left_at DOUBLE NULL, "
        "verdict TEXT NULL, confidence DOUBLE NULL, labels INTEGER NULL, reason TEXT NULL",
        known("items", "status", "open left withdrawn"),
        sa.UniqueConstraint("stream", "exit_n", name="items_exit"),
    )
    create(
        "labels",
        "stream item labeler",
        "stream STREAM, item TEXT, labeler TEXT, said TEXT, at DOUBLE, slot BIGINT, "
        "late BOOLEAN, lead_seconds DOUBLE NULL, source TEXT",
    )
    create(
        "leases",
        "token_hash",
        "token_hash TEXT, stream STREAM, item TEXT, labeler TEXT, given_at DOUBLE, "
        "ttl DOUBLE, status TEXT, ended_at DOUBLE NULL, answer TEXT NULL",
        known("leases", "status", "open done released expired"),
    )
    op.create_index("leases_by_stream", "leases", ["stream", "status"], unique=False)
    create("webhooks", "id", "id TEXT, stream STREAM, url TEXT, secret TEXT, created_at DOUBLE")
    create(
        "deliveries",
        "webhook exit_n",
        "webhook TEXT, stream TEXT, exit_n BIGINT, attempt INTEGER, next_at DOUBLE, "
        "status TEXT, last_error TEXT NULL",
        known("deliveries", "status", "pending done dead"),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], ondelete="CASCADE"),
    )
    op.create_index("deliveries_due", "deliveries", ["status", "next_at"], unique=False)
    create(
        "keys",
        "id",
        "id TEXT, hash TEXT, role TEXT, labeler TEXT NULL, name TEXT, created_at DOUBLE, "
        "last_used_at DOUBLE NULL, revoked_at DOUBLE NULL",
        sa.UniqueConstraint("hash", name="keys_hash"),
    )
    create("replies", "key", "key TEXT, digest TEXT, status INTEGER, body TEXT, at DOUBLE")
    op.create_index("replies_by_time", "replies", ["at"], unique=False)
    create("meta", "key", "key TEXT, value TEXT")
