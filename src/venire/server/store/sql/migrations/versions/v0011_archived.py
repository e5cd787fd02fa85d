"""Streams that are archived, and items that are sent back for more labels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Say since when a stream is archived; make the table."""
    op.add_column("streams", sa.Column("archived_at", sa.Double))
    op.create_table(
        "follows",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("original", TEXT, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("key", TEXT),
        sa.Column("settled_at", sa.Double),
        sa.PrimaryKeyConstraint("stream", "item", name="follows_key"),
    )
