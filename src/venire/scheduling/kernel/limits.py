"""Where a row stands with the limits on labels and confidence.

The confidence that a row must reach is its own, or that of all rows.

A row is *held* while it is below the confidence that it must reach, has fewer than the most labels,
and an eligible labeler is left. It is *short* of labels if it has fewer than the least, or if it
would still be below the confidence once all of its labels in flight confirm its verdict: so nothing
is requested that they may make superfluous, and nothing waits for them if they cannot be enough. It
is *sure* once it has the confidence, by what is believed of the labelers, and the fewest labels.

This is written on the row whenever something happens to it, so that neither closing a slot nor
asking for work looks at the labels of unchanged rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.scheduling.kernel.desk import (
    BELIEVED,
    CERTAINTY,
    FLOOR,
    HELD,
    KEEPS,
    LEAST,
    MOST,
    OUTSTANDING,
    ROWS,
    SHORT,
    SURE,
    Desk,
)
from venire.scheduling.kernel.eligibility import any_eligible, in_group, mark_barred
from venire.scheduling.kernel.labels import find
from venire.scheduling.kernel.verdicts import add_up, add_votes, confidence_in
from venire.tools.compiling import inlined, kernel

__all__ = ["next_short", "note_rows", "note_stand", "survey"]

Ints = NDArray[np.int64]


@inlined
def confidences(desk: Desk, row: int) -> tuple[float, float]:
    """The confidence of a row now, and once all labels in flight confirm its verdict."""
    best, votes = add_up(desk, row)
    believed = desk.meta[BELIEVED] != 0
    now = confidence_in(desk.scores, believed, desk.bounds[CERTAINTY], best, votes)
    if desk.rows[row].pending == 0:
        return now, now
    votes += add_votes(desk, row, best)
    return now, confidence_in(desk.scores, believed, desk.bounds[CERTAINTY], best, votes)


@inlined
def stand_of(desk: Desk, row: int) -> int:
    """Where the row stands, as flags."""
    least, labels = desk.meta[LEAST], desk.rows[row].labels
    floor = desk.rows[row].floor if desk.rows[row].floor > 0.0 else desk.bounds[FLOOR]
    full = 0 < desk.meta[MOST] <= labels
    stand = SHORT if labels < least and not full else 0
    if floor <= 0.0:
        return stand
    now, then = confidences(desk, row)
    if now >= floor:
        known = desk.meta[BELIEVED] != 0 or desk.meta[KEEPS] == 0
        if known and labels - desk.rows[row].pending >= max(1, least):
            stand |= SURE
    elif desk.meta[KEEPS] != 0 and not full and any_eligible(desk, row):
        stand |= HELD
        if then < floor:
            stand |= SHORT
    return stand


@inlined
def note(desk: Desk, row: int, cursors: Ints) -> int:
    """Write where the row stands; reset the cursors of labelers who may be given it now."""
    stand = stand_of(desk, row)
    desk.rows[row].stand = stand
    if stand & SHORT:
        stamp = mark_barred(desk, row)
        for m in range(len(cursors)):
            if cursors[m] > row and desk.panel[m].mark != stamp:
                cursors[m] = row
    return stand


@kernel
def note_stand(desk: Desk, row: int, cursors: Ints) -> int:
    """Write where a row stands, and return it."""
    return note(desk, row, cursors)


@kernel
def note_rows(desk: Desk, rows: Ints, cursors: Ints) -> None:
    """Write where these rows stand."""
    for row in rows:
        note(desk, row, cursors)


@kernel
def survey(desk: Desk, cursors: Ints) -> None:
    """Write where every outstanding row stands."""
    for m in range(len(cursors)):
        cursors[m] = 0
    for row in range(desk.meta[ROWS]):
        if desk.rows[row].state == OUTSTANDING:
            desk.rows[row].stand = stand_of(desk, row)


@kernel
def next_short(desk: Desk, labeler: int, cursors: Ints) -> int:
    """The earliest row that is short of labels and that this labeler may be given; -1 if none.

    `cursors` holds for each labeler a row before which there is none, so that repeated requests
    do not look at the same rows.
    """
    for row in range(cursors[labeler], desk.meta[ROWS]):
        if desk.rows[row].stand & SHORT == 0 or desk.rows[row].state != OUTSTANDING:
            continue
        if in_group(desk, row, labeler) and find(desk, row, labeler) < 0:
            cursors[labeler] = row
            return row
    cursors[labeler] = desk.meta[ROWS]
    return -1
