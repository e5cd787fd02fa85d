"""Verdicts that send items to other streams and to webhooks."""

from __future__ import annotations

from alembic import op

from venire.server.store.sql.migrations import create, known

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Make the table."""
    create(
        "routed",
        "stream item kind target",
        "stream STREAM, item TEXT, kind TEXT, target TEXT, at DOUBLE, verdict TEXT NULL, "
        "confidence DOUBLE, settled_at DOUBLE NULL, fault TEXT NULL",
        known("routed", "kind", "stream webhook"),
    )
    op.create_index("routed_waiting", "routed", ["settled_at", "at"])
    op.create_index("routed_by_target", "routed", ["target", "item"])
