"""Notes of labelers: comments, flags, and what they were not sure of."""

from __future__ import annotations

from alembic import op

from venire.server.store.sql.migrations import create, known

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table."""
    create(
        "notes",
        "stream n",
        "stream STREAM, n BIGINT, item TEXT, labeler TEXT, kind TEXT, text TEXT, at DOUBLE, "
        "key TEXT NULL",
        known("notes", "kind", "comment flag unsure"),
    )
    op.create_index("notes_by_item", "notes", ["stream", "item", "n"])
    op.create_index("labels_by_labeler", "labels", ["stream", "labeler", "at"])
