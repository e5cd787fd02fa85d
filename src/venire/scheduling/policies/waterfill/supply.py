"""The supply of a slot: the evidence that labelers can give to rows for which they are eligible.

Where everybody may label everything, that is what the whole panel can give. Where a row is for a
few labelers only, all others may be idle while many rows compete for those few: counted as supply,
the idle ones would make evidence look cheap, too many rows would buy, each would get a label or
two, and all would pay for the delay again and again. So a labeler counts for no more labels than
there are rows that it may label:

    supply = sum over labelers of  evidence * min(capacity, rows that it may label)

Where labels cost money, labelers whose label would not pay for the row with the most to gain supply
nothing.

A labeler who has labelled a row already counts as one who may: what is sold in a slot does not
change the supply of the slot.
"""

from __future__ import annotations

from venire.scheduling.state.desk import BARRED, PRICED, STALLS, Desk
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
    """Mark all who are excluded from the row, with a new stamp; returns how many.

    `count` is added to the pointer of each.
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
    """Add the row to the pointers of the members of its group who are not excluded from it."""
    mark_outsiders(desk, row, 0)
    place = first_unmarked(desk, row)
    while place >= 0:
        desk.panel[labeler_at(desk, row, place)].pointer += 1
        place = next_eligible(desk, row, place)


@inlined
def count_rows(desk: Desk, enough: int) -> int:
    """Count the rows with a stall that each labeler may label: its pointer plus the result.

    Counting stops once everybody may label `enough` rows.
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
    """The evidence that the labelers present can give in a slot; nobody labels a row twice."""
    enough = 0
    for m in range(len(desk.panel)):
        enough = max(enough, desk.panel[m].capacity)
    everybody, total, most = count_rows(desk, enough), 0.0, 0.0
    if desk.meta[PRICED] != 0:
        for i in range(desk.meta[STALLS]):
            most = max(most, desk.stalls[i].value)
    for m in range(len(desk.panel)):
        rows, price = everybody + desk.panel[m].pointer, desk.panel[m].price
        if price == 0.0 or price < most * desk.panel[m].reach:
            total += min(desk.panel[m].capacity, rows) * desk.panel[m].evidence
    return total
