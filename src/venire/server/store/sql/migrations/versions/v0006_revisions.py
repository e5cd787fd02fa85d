"""Revisions: verdicts of items that have left that became others, and their deliveries."""

from __future__ import annotations

from alembic import op

from venire.server.store.sql.migrations import create, deliveries

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table, and the kind of a delivery, by which it is known too."""
    create(
        "revisions",
        "stream n",
        "stream STREAM, n BIGINT, item TEXT, slot BIGINT, at DOUBLE, before TEXT NULL, "
        "before_confidence DOUBLE, verdict TEXT NULL, confidence DOUBLE, labels INTEGER",
    )
    op.create_index("revisions_by_item", "revisions", ["stream", "item", "n"])
    deliveries("exit revision", kind="'exit'")
