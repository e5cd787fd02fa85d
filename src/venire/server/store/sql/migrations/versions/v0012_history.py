"""Bounded history: which parts of a log are archived, and which items are in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "segments",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("first_event", sa.BigInteger, nullable=False),
        sa.Column("next_event", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.Double, nullable=False),
        sa.Column("slot", sa.BigInteger, nullable=False),
        sa.Column("exits", sa.BigInteger, nullable=False),
        sa.Column("revisions", sa.BigInteger, nullable=False),
        sa.Column("notes", sa.BigInteger, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("stream", "n", name="segments_key"),
    )
    op.create_table(
        "archived",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream", "id", name="archived_key"),
    )
