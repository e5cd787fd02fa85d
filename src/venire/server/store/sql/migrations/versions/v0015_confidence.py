"""How sure labelers said they were."""

from __future__ import annotations

from venire.server.store.sql.migrations import add

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """It is not known of the labels so far."""
    add("labels", "confidence DOUBLE NULL")
