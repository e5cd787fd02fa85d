"""Streams that are archived, and items that are sent back for more labels."""

from __future__ import annotations

from venire.server.store.sql.migrations import add, create

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Say since when a stream is archived; make the table."""
    add("streams", "archived_at DOUBLE NULL")
    create(
        "follows",
        "stream item",
        "stream STREAM, item TEXT, original TEXT, at DOUBLE, actor TEXT, key TEXT NULL, "
        "settled_at DOUBLE NULL",
    )
