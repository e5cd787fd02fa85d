"""Gold, verdicts drawn to be audited, and the confidence that an item must reach."""

from __future__ import annotations

import sqlalchemy as sa

from venire.server.store.sql.migrations import add, create

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make both tables, and the column."""
    add("items", "min_confidence DOUBLE NULL")
    create(
        "checks",
        "stream n",
        "stream STREAM, n BIGINT, item TEXT, at DOUBLE, share DOUBLE, verdict TEXT",
        sa.UniqueConstraint("stream", "item", name="checks_item"),
    )
    create(
        "gold",
        "stream item",
        "stream STREAM, item TEXT, label TEXT, at DOUBLE, source TEXT, actor TEXT, key TEXT NULL",
    )
