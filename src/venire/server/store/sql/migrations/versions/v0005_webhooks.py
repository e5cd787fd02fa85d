"""Since when a delivery fails, so that it is tried for days; the secret before this one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns; what is pending begins to fail anew."""
    op.add_column("webhooks", sa.Column("old_secret", TEXT))
    op.add_column("webhooks", sa.Column("old_until", sa.Double()))
    op.add_column("deliveries", sa.Column("failing_since", sa.Double()))
