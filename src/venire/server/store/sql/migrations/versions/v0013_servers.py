"""The servers on a store, and what each of them has claimed; in SQLite there are none."""

from __future__ import annotations

import sqlalchemy as sa

from venire.server.store.sql.migrations import columns, create

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the tables."""
    pid = sa.Column("pid", sa.BigInteger, autoincrement=False, nullable=False)
    others = columns("role BIGINT, began BIGINT, address TEXT, secret TEXT, leaving BOOLEAN")
    create("servers", "pid", [pid, *others])
    claimed_by = sa.ForeignKeyConstraint(["pid"], ["servers.pid"], ondelete="CASCADE")
    create("claims", "stream", "stream TEXT, pid BIGINT", claimed_by)
