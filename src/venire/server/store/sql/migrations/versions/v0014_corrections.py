"""What was corrected in gold, and by whom it had been said; audits that were drawn for a class."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Keep what was said before beside what is said now; no audit was drawn for a class so far."""
    op.add_column("gold", sa.Column("earlier", TEXT))
    no = sa.false()
    op.add_column("checks", sa.Column("extra", sa.Boolean, nullable=False, server_default=no))
