"""What a slot has to sell: the evidence of those labelers whom somebody in the queue may have.

Where everybody may label everything, that is what the whole panel can give. Where a row is for a
few labelers only, all others may idle while those few are wanted by many: counted as supply, the
idle ones would make evidence look cheap, too many rows would buy, each would get a label or two,
and all would pay for the delay again and again. So a labeler counts for no more labels than there
are rows that may still have it:

    supply = sum over labelers of  evidence * min(capacity, rows that want it)

A row wants the labelers of its group of whom it has no label from an earlier slot. One from this
slot was sold in it, and is taken off as such (`waterfill.left_to_sell`). A row for everybody is
taken to want everybody.
"""

from __future__ import annotations

from venire.compiling import inlined
from venire.scheduling.desk import BARRED, GROUPS, STALLS, STAMP, Desk

__all__ = ["supply_of"]


@inlined
def mark_taken(desk: Desk, row: int, slot: int) -> int:
    """Mark, with a stamp of its own, who may not have the row or had it before this slot."""
    stamp = desk.meta[STAMP] + 1
    desk.meta[STAMP] = stamp
    k = desk.rows[row].head
    while k >= 0:
        if desk.touches[k].slot < slot or desk.touches[k].said == BARRED:
            desk.panel[desk.touches[k].labeler].mark = stamp
        k = desk.touches[k].next
    return stamp


@inlined
def count_wanted(desk: Desk, slot: int) -> None:
    """Write into the pointer of each labeler how many rows with a stall want it."""
    everybody = desk.meta[STALLS]
    if desk.meta[GROUPS] > 1:
        for i in range(desk.meta[STALLS]):
            if desk.rows[desk.stalls[i].row].group > 0:
                everybody -= 1
    for m in range(len(desk.panel)):
        desk.panel[m].pointer = everybody
    if everybody == desk.meta[STALLS]:
        return
    for i in range(desk.meta[STALLS]):
        row = desk.stalls[i].row
        group = desk.rows[row].group
        if group > 0:
            stamp = mark_taken(desk, row, slot)
            e = desk.groups[group].edge
            while e >= 0:
                m = desk.edges[e].labeler
                if desk.panel[m].mark != stamp:
                    desk.panel[m].pointer += 1
                e = desk.edges[e].of_group


@inlined
def supply_of(desk: Desk, slot: int) -> float:
    """The evidence that those who are not away can give in a slot to rows that want it."""
    count_wanted(desk, slot)
    total = 0.0
    for m in range(len(desk.panel)):
        total += min(desk.panel[m].capacity, desk.panel[m].pointer) * desk.panel[m].evidence
    return total
