"""How many labels and items there are, and which version of the engine wrote what.

A start read all labels to count them; from here on the counts are kept as labels come.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0007"
down_revision = "0006"

_FILL = (
    "SELECT stream, 'items', status, COUNT(*) FROM items GROUP BY stream, status",
    "SELECT stream, 'labels', labeler, COUNT(*) FROM labels GROUP BY stream, labeler",
    "SELECT stream, 'late', labeler, COUNT(*) FROM labels WHERE late GROUP BY stream, labeler",
)


def upgrade() -> None:
    """Make both tables, and count once."""
    op.create_table(
        "engines",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("version", TEXT, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("stream", "n", name="engines_key"),
    )
    op.create_table(
        "tallies",
        sa.Column("stream", TEXT, sa.ForeignKey("streams.name"), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream", "kind", "name", name="tallies_key"),
    )
    for counted in _FILL:
        op.execute(f"INSERT INTO tallies (stream, kind, name, number) {counted}")
