"""Who did what, and with which key; keys that expire; streams that can be deleted.

Items, labels and leases get the id of the key that made them, where one is known from now on.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from venire.server.store.sql.migrations import add, columns, create

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the table of what was done, and the columns of who did it."""
    add("streams", "deleted_at DOUBLE NULL")
    add("keys", "expires_at DOUBLE NULL")
    add("items", "key TEXT NULL")
    add("labels", "key TEXT NULL")
    add("leases", "key TEXT NULL, ended_key TEXT NULL")
    op.create_index("leases_by_item", "leases", ["stream", "item", "labeler"])
    n = sa.Column("n", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True)
    others = columns(
        "at DOUBLE, actor TEXT, key TEXT NULL, action TEXT, stream TEXT NULL, subject TEXT NULL, "
        "details TEXT"
    )
    create("audit", "n", [n, *others])
    op.create_index("audit_by_stream", "audit", ["stream", "n"])
