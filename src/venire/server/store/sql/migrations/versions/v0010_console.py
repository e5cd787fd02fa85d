"""The console: indexes by which items are searched, alarms, and messages about them."""

from __future__ import annotations

from alembic import op

from venire.server.store.sql.migrations import create, deliveries

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add an index for each way through the items; make the table; allow messages about alarms."""
    op.create_index("items_by_arrival", "items", ["stream", "arrived_at", "id"])
    op.create_index("items_by_verdict", "items", ["stream", "verdict", "arrived_at", "id"])
    op.create_index("items_by_reason", "items", ["stream", "reason", "arrived_at", "id"])
    op.create_index("items_by_doubt", "items", ["stream", "status", "confidence", "exit_n"])
    create(
        "alarms",
        "stream n",
        "stream STREAM, n BIGINT, at DOUBLE, rule TEXT, subject TEXT, raised BOOLEAN, "
        "value DOUBLE, threshold DOUBLE, message TEXT",
    )
    deliveries("exit revision alarm", kind="kind")
