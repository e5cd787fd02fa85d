"""The servers on a store, and what each of them has claimed; in SQLite there are none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.tables import TEXT

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "servers",
        sa.Column("pid", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("role", sa.BigInteger, nullable=False),
        sa.Column("began", sa.BigInteger, nullable=False),
        sa.Column("address", TEXT, nullable=False),
        sa.Column("secret", TEXT, nullable=False),
        sa.Column("leaving", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("pid", name="servers_key"),
    )
    op.create_table(
        "claims",
        sa.Column("stream", TEXT, nullable=False),
        sa.Column(
            "pid",
            sa.BigInteger,
            sa.ForeignKey("servers.pid", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("stream", name="claims_key"),
    )
