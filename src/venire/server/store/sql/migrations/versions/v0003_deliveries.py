"""What is due for one webhook without reading what is due for the others; no replies.

The answers to requests with an idempotency key were never written down: what a request is about
(the id of an item, the token of an assignment, the pair of item and labeler) makes it count once.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Drop a table that nobody uses, and order deliveries by webhook first."""
    op.drop_index("replies_by_time", "replies")
    op.drop_table("replies")
    op.drop_index("deliveries_due", "deliveries")
    columns = ["webhook", "status", "next_at", "exit_n"]
    op.create_index("deliveries_by_webhook", "deliveries", columns)
