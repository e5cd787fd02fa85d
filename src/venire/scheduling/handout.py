"""Hand labelers to chosen rows: Algorithm 1 with the delay of the chosen counted as paid.

The delay that a row pays for a label in this slot is paid once, however many labels it gets.
Algorithm 1 charges it to the first label alone, and where one label is worth less than a slot
nobody is the first. Here a policy says which rows are served; on the shelves those stand as if
their last label were of this slot, so that their labelers compete by what they add.
"""

from __future__ import annotations

from venire import utility
from venire.compiling import inlined
from venire.scheduling.desk import Desk, room, touch
from venire.scheduling.shelves import take_off
from venire.scheduling.turns import make_turn, move, shelve

__all__ = ["file_row", "give", "prepay", "restore"]

residual = inlined(utility.residual)
gain = inlined(utility.gain)


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    return gain(desk.rows[row].key, desk.panel[labeler].reach, slot - rank)


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return gain(desk.bounds[0], desk.panel[labeler].reach, slot - rank)


@inlined
def take(desk: Desk, labeler: int, row: int, slot: int) -> None:
    touch(desk, row, labeler, slot, score(desk, labeler, row, desk.rows[row].last, slot))


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    move(desk, row, slot if desk.rows[row].paid == slot else desk.rows[row].last)


take_turn = make_turn(score, bound, take, refile)


@inlined
def file_row(desk: Desk, row: int) -> None:
    """Put a row that is on no shelf where it belongs."""
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    desk.bounds[0] = max(desk.bounds[0], desk.rows[row].key)
    desk.rows[row].paid = -1
    shelve(desk, row, desk.rows[row].last)


@inlined
def prepay(desk: Desk, count: int, slot: int) -> None:
    """Count the delay of the chosen rows as paid."""
    for i in range(count):
        row = desk.chosen[i]
        desk.rows[row].paid = slot
        if desk.rows[row].last != slot:
            take_off(desk, row)
            shelve(desk, row, slot)


@inlined
def give(desk: Desk, slot: int) -> None:
    """Every labeler with room takes the rows of the largest gain, the best labeler first."""
    for m in desk.order:
        if desk.panel[m].reach <= 0.0:
            break
        if room(desk, m) > 0:
            take_turn(desk, m, slot, 0.0)


@inlined
def restore(desk: Desk, count: int, slot: int) -> None:
    """Put the chosen rows that got nothing back to where they stood."""
    for i in range(count):
        row = desk.chosen[i]
        desk.rows[row].paid = -1
        if desk.rows[row].last != slot:
            take_off(desk, row)
            shelve(desk, row, desk.rows[row].last)
