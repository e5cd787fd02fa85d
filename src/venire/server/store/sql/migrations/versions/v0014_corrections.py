"""What was corrected in gold, and by whom it had been said; audits that were drawn for a class."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.migrations import add

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Keep what was said before beside what is said now; no audit was drawn for a class so far."""
    add("gold", "earlier TEXT NULL")
    no = sa.false()
    op.add_column("checks", sa.Column("extra", sa.Boolean, nullable=False, server_default=no))
