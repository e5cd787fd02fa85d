"""Who did what, and with which key; keys that expire; streams that can be deleted.

Items, labels and leases get the id of the key that made them, where one is known from now on.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table of what was done, and the columns of who did it."""
    op.add_column("streams", sa.Column("deleted_at", sa.Double()))
    op.add_column("keys", sa.Column("expires_at", sa.Double()))
    for table, column in (
        ("items", "key"),
        ("labels", "key"),
        ("leases", "key"),
        ("leases", "ended_key"),
    ):
        op.add_column(table, sa.Column(column, TEXT))
    op.create_index("leases_by_item", "leases", ["stream", "item", "labeler"])
    op.create_table(
        "audit",
        sa.Column("n", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("key", TEXT),
        sa.Column("action", TEXT, nullable=False),
        sa.Column("stream", TEXT),
        sa.Column("subject", TEXT),
        sa.Column("details", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("n", name="audit_key"),
    )
    op.create_index("audit_by_stream", "audit", ["stream", "n"])
