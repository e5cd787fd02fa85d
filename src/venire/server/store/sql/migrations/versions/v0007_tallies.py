"""How many labels and items there are, and which version of the engine wrote what.

A start read all labels to count them; from here on the counts are kept as labels come.
"""

from __future__ import annotations

from alembic import op

from venire.server.store.sql.migrations import create

revision = "0007"
down_revision = "0006"

_FILL = (
    "SELECT stream, 'items', status, COUNT(*) FROM items GROUP BY stream, status",
    "SELECT stream, 'labels', labeler, COUNT(*) FROM labels GROUP BY stream, labeler",
    "SELECT stream, 'late', labeler, COUNT(*) FROM labels WHERE late GROUP BY stream, labeler",
)


def upgrade() -> None:
    """Make both tables, and count once."""
    create("engines", "stream n", "stream STREAM, n BIGINT, version TEXT, at DOUBLE")
    create("tallies", "stream kind name", "stream STREAM, kind TEXT, name TEXT, number BIGINT")
    for counted in _FILL:
        op.execute(f"INSERT INTO tallies (stream, kind, name, number) {counted}")
