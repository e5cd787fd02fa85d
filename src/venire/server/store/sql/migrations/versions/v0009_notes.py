"""Notes of labelers: comments, flags, and what they were not sure of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "notes",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("labeler", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("key", TEXT),
        sa.PrimaryKeyConstraint("stream", "n", name="notes_key"),
        sa.CheckConstraint("kind IN ('comment', 'flag', 'unsure')", name="notes_kind_known"),
    )
    op.create_index("notes_by_item", "notes", ["stream", "item", "n"])
    op.create_index("labels_by_labeler", "labels", ["stream", "labeler", "at"])
