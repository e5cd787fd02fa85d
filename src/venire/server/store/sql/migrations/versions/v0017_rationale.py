"""Why labelers said what they said."""

from __future__ import annotations

from venire.server.store.sql.migrations import add

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """It is not known of the labels so far."""
    add("labels", "rationale TEXT NULL")
