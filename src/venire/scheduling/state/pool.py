"""The pool: the outstanding rows, for policies that go through all of them.

A row knows its place (`shelf`), so that it is added and removed in one step; the last row of the
pool takes the place of one that is removed.
"""

from __future__ import annotations

from venire.scheduling.state.desk import POOLED, Desk
from venire.tools.compiling import inlined

__all__ = ["drop_from_pool", "put_in_pool"]


@inlined
def put_in_pool(desk: Desk, row: int) -> None:
    """Add a row that is not in the pool."""
    n = desk.meta[POOLED]
    desk.pool[n] = row
    desk.rows[row].shelf = n
    desk.meta[POOLED] = n + 1


@inlined
def drop_from_pool(desk: Desk, row: int) -> None:
    """Remove a row, if it is in the pool."""
    place = desk.rows[row].shelf
    if place < 0:
        return
    n = desk.meta[POOLED] - 1
    moved = desk.pool[n]
    desk.pool[place] = moved
    desk.rows[moved].shelf = place
    desk.rows[row].shelf = -1
    desk.meta[POOLED] = n
