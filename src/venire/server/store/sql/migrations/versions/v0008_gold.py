"""Gold, verdicts drawn to be audited, and the confidence that an item must reach."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make both tables, and the column."""
    op.add_column("items", sa.Column("min_confidence", sa.Double))
    op.create_table(
        "checks",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("share", sa.Double, nullable=False),
        sa.Column("verdict", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("stream", "n", name="checks_key"),
        sa.UniqueConstraint("stream", "item", name="checks_item"),
    )
    op.create_table(
        "gold",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("label", TEXT, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("key", TEXT),
        sa.PrimaryKeyConstraint("stream", "item", name="gold_key"),
    )
