"""What labelers say who are asked about an item again."""

from __future__ import annotations

from alembic import op

from venire.server.store.sql.migrations import add, create

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Nobody was asked again so far."""
    add("leases", "again TEXT NULL")
    create(
        "repeats",
        "stream item labeler",
        "stream STREAM, item TEXT, labeler TEXT, before TEXT, said TEXT, at DOUBLE, slot BIGINT, "
        "lead_seconds DOUBLE NULL, key TEXT NULL, confidence DOUBLE NULL",
    )
    op.create_index("repeats_by_labeler", "repeats", ["stream", "labeler", "at"])
