"""The exit wheel: which rows leave at the end of which slot.

When a row is due is known as soon as its last label is given, so closing a slot looks only at the
rows that are due, not at the whole queue. It is a hashed timing wheel: a row is in the list at
`due mod WHEEL`; the links are on the row.
"""

from __future__ import annotations

from collections.abc import Callable

from venire.scheduling.kernel.desk import (
    CONFIDENT,
    GONE,
    HELD,
    LEAST,
    MAX_LABELS,
    NO_GAIN,
    OVERLAP,
    WHEEL,
    Desk,
)
from venire.tools.compiling import inlined, kernel

__all__ = ["make_settle", "never_due", "never_due_row", "set_due", "set_due_row", "waits"]


@inlined
def never_due(desk: Desk, row: int) -> None:
    """Take the row off the wheel."""
    due = desk.rows[row].due
    if due < 0:
        return
    later, sooner = desk.rows[row].later, desk.rows[row].sooner
    if sooner >= 0:
        desk.rows[sooner].later = later
    else:
        desk.wheel[due & (WHEEL - 1)] = later
    if later >= 0:
        desk.rows[later].sooner = sooner
    desk.rows[row].due = -1


@inlined
def set_due(desk: Desk, row: int, due: int, reason: int) -> None:
    """Schedule the row to leave at the end of slot `due`, for this reason."""
    never_due(desk, row)
    first = desk.wheel[due & (WHEEL - 1)]
    desk.rows[row].due = due
    desk.rows[row].reason = reason
    desk.rows[row].later = first
    desk.rows[row].sooner = -1
    if first >= 0:
        desk.rows[first].sooner = row
    desk.wheel[due & (WHEEL - 1)] = row


@kernel
def set_due_row(desk: Desk, row: int, due: int, reason: int) -> None:
    """`set_due` for callers outside the kernels."""
    set_due(desk, row, due, reason)


@kernel
def never_due_row(desk: Desk, row: int) -> None:
    """`never_due` for callers outside the kernels."""
    never_due(desk, row)


@inlined
def waits(desk: Desk, row: int) -> bool:
    """Whether a row that is due stays.

    It waits for labels in flight, for the fewest labels it must have, and while it is below the
    confidence it must reach and an eligible labeler is left.
    """
    reason = desk.rows[row].reason
    if desk.rows[row].pending > 0:
        return reason < CONFIDENT
    if reason >= MAX_LABELS:
        return False
    if desk.rows[row].stand & HELD:
        return True
    return reason in (NO_GAIN, OVERLAP) and desk.rows[row].labels < desk.meta[LEAST]


def make_settle(leave: Callable[[Desk, int], None]) -> Callable[[Desk, int], int]:
    """Build `settle(desk, slot)`: end a slot and return how many rows leave, listed in `desk.gone`.

    A row with labels in flight waits for them, unless it must leave.
    """

    @kernel
    def settle(desk: Desk, slot: int) -> int:
        rows = desk.rows
        count = 0
        row = desk.wheel[slot & (WHEEL - 1)]
        while row >= 0:
            later = rows[row].later
            if rows[row].due <= slot:
                if waits(desk, row):
                    set_due(desk, row, slot + 1, rows[row].reason)
                else:
                    never_due(desk, row)
                    leave(desk, row)
                    rows[row].state = GONE
                    rows[row].exit = slot
                    desk.gone[count] = row
                    count += 1
            row = later
        return count

    return settle
