"""Bounded history: which parts of a log are archived, and which items are in them."""

from __future__ import annotations

from venire.server.store.sql.migrations import create

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the tables."""
    create(
        "segments",
        "stream n",
        "stream STREAM, n BIGINT, at DOUBLE, first_event BIGINT, next_event BIGINT, "
        "ended_at DOUBLE, slot BIGINT, exits BIGINT, revisions BIGINT, notes BIGINT, "
        "name TEXT, digest TEXT",
    )
    create("archived", "stream id", "stream STREAM, id TEXT, digest TEXT, segment BIGINT")
