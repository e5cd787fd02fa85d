"""Labels come in: many in one call, with the same outcome as one by one.

A label may be pending (its touch exists, without an answer), unsolicited (it gets a touch) or a
repeat of one that is known. `look_up` finds labels that are invalid, and changes nothing; a
policy's `hear`, built by `make_hear`, then enters all of them. After each label its row is valued
and refiled before the next: what a policy keeps may depend on the order, and a log is replayed
label by label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.scheduling.kernel.desk import BARRED, OUTSTANDING, PENDING, TOUCHES, Desk
from venire.scheduling.kernel.eligibility import in_group
from venire.scheduling.kernel.exits import never_due
from venire.tools.compiling import inlined, kernel

__all__ = ["Bools", "Ints", "find", "look_up", "make_hear", "revalue"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# the columns of labels that come in
ROW: Final = 0
LABELER: Final = 1
SAID: Final = 2
VOUCHED: Final = 3  # 1: the labeler is eligible, whatever the group of the row


@inlined
def find(desk: Desk, row: int, labeler: int) -> int:
    """The touch of this labeler on the row; -1 if there is none."""
    k = desk.rows[row].head
    while k >= 0 and desk.touches[k].labeler != labeler:
        k = desk.touches[k].next
    return k


@kernel
def look_up(desk: Desk, labels: Ints, held: Ints) -> int:
    """Write into `held` what each labeler said of its row before; the first invalid label, or -1.

    PENDING: nothing so far, the label is welcome. BARRED: the labeler is not eligible.
    """
    for i in range(len(labels)):
        row, labeler = labels[i, ROW], labels[i, LABELER]
        k = find(desk, row, labeler)
        held[i] = PENDING
        if k >= 0:
            held[i] = desk.touches[k].said
            if held[i] >= 0:
                held[i] %= len(desk.scores)  # whatever its tone
        elif labels[i, VOUCHED] == 0 and not in_group(desk, row, labeler):
            held[i] = BARRED
        if held[i] != PENDING and held[i] != labels[i, SAID]:
            return i
    return -1


@inlined
def take(desk: Desk, row: int, labeler: int, said: int, slot: int) -> tuple[bool, bool]:
    """Enter one label; whether it is new, and whether the value of the row has changed."""
    k = find(desk, row, labeler)
    if k < 0:
        k = desk.meta[TOUCHES]
        desk.meta[TOUCHES] = k + 1
        desk.touches[k].gain = np.nan
        desk.touches[k].slot = slot
        desk.touches[k].row = row
        desk.touches[k].labeler = labeler
        desk.touches[k].next = desk.rows[row].head
        desk.touches[k].said = said
        desk.rows[row].head = k
        return True, True
    if desk.touches[k].said != PENDING:
        return False, False
    later = desk.touches[k].slot != slot
    desk.touches[k].said = said
    desk.touches[k].slot = slot
    desk.panel[labeler].inflight -= 1
    desk.rows[row].pending -= 1
    return True, later


@kernel
def revalue(desk: Desk, row: int) -> None:
    """Recompute what the labels of a row are worth, and when the last one came.

    The row is not due any more until it is entered again.
    """
    never_due(desk, row)
    desk.rows[row].evidence = 0.0
    desk.rows[row].labels = 0
    desk.rows[row].pending = 0
    desk.rows[row].last = desk.rows[row].arrival
    k = desk.rows[row].head
    while k >= 0:
        said = desk.touches[k].said
        if said >= -1:
            desk.rows[row].evidence += desk.panel[desk.touches[k].labeler].evidence
            desk.rows[row].last = max(desk.rows[row].last, desk.touches[k].slot)
            desk.rows[row].labels += 1
            desk.rows[row].pending += said == -1
        k = desk.touches[k].next


def make_hear(
    leave: Callable[..., Any], enter: Callable[..., Any]
) -> Callable[[Desk, Ints, int, Bools], int]:
    """Build `hear(desk, labels, slot, fresh)`: enter labels that `look_up` found valid.

    It writes into `fresh` which of them are new, and returns how often a row was refiled. There
    must be room for as many touches.
    """

    @kernel
    def hear(desk: Desk, labels: Ints, slot: int, fresh: Bools) -> int:
        moves = 0
        for i in range(len(labels)):
            row = labels[i, ROW]
            fresh[i], moved = take(desk, row, labels[i, LABELER], labels[i, SAID], slot)
            if moved and desk.rows[row].state == OUTSTANDING:
                leave(desk, row)
                revalue(desk, row)
                enter(desk, row, slot)
                moves += 1
        return moves

    return hear
