"""Items by status and labels by time, without reading all of them."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add an index for each of the two listings."""
    op.create_index("items_by_status", "items", ["stream", "status", "id"])
    op.create_index("labels_by_time", "labels", ["stream", "at"])
