"""What a slot has to sell: the evidence of those labelers whom somebody in the queue may have.

Where everybody may label everything, that is what the whole panel can give. Where a row is for a
few labelers only, all others may idle while those few are wanted by many: counted as supply, the
idle ones would make evidence look cheap, too many rows would buy, each would get a label or two,
and all would pay for the delay again and again. So a labeler counts for no more labels than there
are rows that it may label:

    supply = sum over labelers of  evidence * min(capacity, rows that are for it)

A row is for a labeler of its group who is not barred from it, also if it has that label already:
what is sold in a slot does not change what the slot had to sell.
"""

from __future__ import annotations

from venire.scheduling.state.desk import BARRED, STALLS, Desk
from venire.scheduling.state.eligibility import (
    first_unmarked,
    labeler_at,
    new_stamp,
    next_eligible,
)
from venire.tools.compiling import inlined

__all__ = ["supply_of"]


@inlined
def mark_outsiders(desk: Desk, row: int, count: int) -> int:
    """Mark all who are barred from the row, with a new stamp; how many.

    To the pointer of each is added `count`.
    """
    stamp, barred = new_stamp(desk), 0
    k = desk.rows[row].head
    while k >= 0:
        m = desk.touches[k].labeler
        if desk.touches[k].said == BARRED and desk.panel[m].mark != stamp:
            desk.panel[m].mark = stamp
            desk.panel[m].pointer += count
            barred += 1
        k = desk.touches[k].next
    return barred


@inlined
def count_members(desk: Desk, row: int) -> None:
    """Add the row to the pointers of those of its group who are not barred from it."""
    mark_outsiders(desk, row, 0)
    place = first_unmarked(desk, row)
    while place >= 0:
        desk.panel[labeler_at(desk, row, place)].pointer += 1
        place = next_eligible(desk, row, place)


@inlined
def count_rows(desk: Desk, enough: int) -> int:
    """How many rows with a stall are for each labeler: its pointer and what is returned.

    Counting ends when so many rows are for everybody that it is `enough` for each labeler.
    """
    for m in range(len(desk.panel)):
        desk.panel[m].pointer = 0
    everybody, unbarred = 0, 0
    for i in range(desk.meta[STALLS]):
        row = desk.stalls[i].row
        if desk.rows[row].group > 0:
            count_members(desk, row)
            continue
        everybody += 1
        if mark_outsiders(desk, row, -1) == 0:
            unbarred += 1
            if unbarred >= enough:
                break
    return everybody


@inlined
def supply_of(desk: Desk) -> float:
    """The evidence that those who are not away can give in a slot; nobody labels a row twice."""
    enough = 0
    for m in range(len(desk.panel)):
        enough = max(enough, desk.panel[m].capacity)
    everybody, total = count_rows(desk, enough), 0.0
    for m in range(len(desk.panel)):
        rows = everybody + desk.panel[m].pointer
        total += min(desk.panel[m].capacity, rows) * desk.panel[m].evidence
    return total
