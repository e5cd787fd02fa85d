"""How sure labelers said they were."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """It is not known of the labels so far."""
    op.add_column("labels", sa.Column("confidence", sa.Double()))
