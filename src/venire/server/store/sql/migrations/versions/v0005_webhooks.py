"""Since when a delivery fails, so that it is tried for days; the secret before this one."""

from __future__ import annotations

from venire.server.store.sql.migrations import add

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns; what is pending begins to fail anew."""
    add("webhooks", "old_secret TEXT NULL, old_until DOUBLE NULL")
    add("deliveries", "failing_since DOUBLE NULL")
