"""What happens to a row: who may label it, labels come in, it is due to leave.

**Who may still label a row.**

A labeler is eligible for a row if it is in the row's group (group 0: everyone) and has no touch on
the row: no label, none in flight, and no exclusion. To go through all eligible labelers:

    place = first_eligible(desk, row)
    while place >= 0:
        ... labeler_at(desk, row, place) ...
        place = next_eligible(desk, row, place)

The others are marked on the panel with a new stamp; marking for another row ends the walk.

**The exit wheel: which rows leave at the end of which slot.**

When a row is due is known as soon as its last label is given, so closing a slot looks only at the
rows that are due, not at the whole queue. It is a hashed timing wheel: a row is in the list at
`due mod WHEEL`; the links are on the row.

**Labels come in: many in one call, with the same outcome as one by one.**

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

from venire.scheduling.kernel.desk import (
    BARRED,
    CONFIDENT,
    GONE,
    HELD,
    LEAST,
    MAX_LABELS,
    NO_GAIN,
    OUTSTANDING,
    OVERLAP,
    PENDING,
    PRICED,
    SERVING,
    STAMP,
    TOUCHES,
    WHEEL,
    Desk,
)
from venire.tools.arrays import Bools, Ints
from venire.tools.compiling import inlined, kernel


@inlined
def barred(desk: Desk, row: int, labeler: int) -> bool:
    """Whether this labeler has the row already, or may not have it.

    Touches of the serving under way are those of other labelers: each has one turn, and what
    it takes in its turn is out of the queues until the turn ends.
    """
    k = desk.rows[row].head
    if k >= desk.meta[SERVING]:
        k = desk.rows[row].settled
    while k >= 0:
        if desk.touches[k].labeler == labeler:
            return True
        k = desk.touches[k].next
    return False


@inlined
def in_group(desk: Desk, row: int, labeler: int) -> bool:
    group = desk.rows[row].group
    if group == 0:
        return True
    e = desk.groups[group].edge
    while e >= 0:
        if desk.edges[e].labeler == labeler:
            return True
        e = desk.edges[e].of_group
    return False


@inlined
def may_take(desk: Desk, row: int, labeler: int) -> bool:
    return in_group(desk, row, labeler) and not barred(desk, row, labeler)


@inlined
def new_stamp(desk: Desk) -> int:
    """A stamp that marks nobody yet."""
    stamp: int = desk.meta[STAMP] + 1
    desk.meta[STAMP] = stamp
    return stamp


@inlined
def mark_barred(desk: Desk, row: int) -> int:
    """Mark all who have a touch on the row, with a new stamp, which is returned."""
    stamp = new_stamp(desk)
    k = desk.rows[row].head
    while k >= 0:
        desk.panel[desk.touches[k].labeler].mark = stamp
        k = desk.touches[k].next
    return stamp


@inlined
def unmarked_from(desk: Desk, row: int, place: int) -> int:
    """The first place, this one or a later one, of a labeler without the latest stamp; -1 if none.

    A place is a labeler, from the last to the first, in group 0, and an edge in other groups.
    """
    stamp = desk.meta[STAMP]
    if desk.rows[row].group == 0:
        while place >= 0 and desk.panel[place].mark == stamp:
            place -= 1
    else:
        while place >= 0 and desk.panel[desk.edges[place].labeler].mark == stamp:
            place = desk.edges[place].of_group
    return place


@inlined
def first_unmarked(desk: Desk, row: int) -> int:
    """The place of the first member of the row's group without the latest stamp; -1 if none."""
    group = desk.rows[row].group
    return unmarked_from(desk, row, len(desk.panel) - 1 if group == 0 else desk.groups[group].edge)


@inlined
def first_eligible(desk: Desk, row: int) -> int:
    """The place of the first who may still label the row; -1 if none."""
    mark_barred(desk, row)
    return first_unmarked(desk, row)


@inlined
def next_eligible(desk: Desk, row: int, place: int) -> int:
    """The next place after this one; -1 if none."""
    following = place - 1 if desk.rows[row].group == 0 else desk.edges[place].of_group
    return unmarked_from(desk, row, following)


@inlined
def labeler_at(desk: Desk, row: int, place: int) -> int:
    return place if desk.rows[row].group == 0 else desk.edges[place].labeler


@inlined
def stamp_eligible(desk: Desk, row: int) -> tuple[int, bool]:
    """A stamp, and whether those with it may still label the row, or all others."""
    stamp = mark_barred(desk, row)
    if desk.rows[row].group == 0:
        return stamp, False
    place = first_unmarked(desk, row)
    while place >= 0:
        m = labeler_at(desk, row, place)
        place = next_eligible(desk, row, place)
        desk.panel[m].mark = stamp + 1
    return new_stamp(desk), True


@inlined
def any_eligible(desk: Desk, row: int) -> bool:
    """Whether anybody who is not away may still label the row."""
    place = first_eligible(desk, row)
    while place >= 0:
        if desk.panel[labeler_at(desk, row, place)].capacity > 0:
            return True
        place = next_eligible(desk, row, place)
    return False


@inlined
def eligible_count(desk: Desk, row: int, here: bool) -> int:
    """How many may still label the row; with `here`, only those who are not away."""
    count = 0
    place = first_eligible(desk, row)
    while place >= 0:
        if not here or desk.panel[labeler_at(desk, row, place)].capacity > 0:
            count += 1
        place = next_eligible(desk, row, place)
    return count


@inlined
def best_reach(desk: Desk, row: int) -> float:
    """The largest reach among those who may still label the row; 0 if none."""
    if desk.rows[row].group == 0:  # the order of the panel is known
        stamp = mark_barred(desk, row)
        for m in desk.order:
            if desk.panel[m].mark != stamp:
                return desk.panel[m].reach
        return 0.0
    best = 0.0
    place = first_eligible(desk, row)
    while place >= 0:
        best = max(best, desk.panel[labeler_at(desk, row, place)].reach)
        place = next_eligible(desk, row, place)
    return best


@inlined
def best_gain(desk: Desk, row: int, value: float) -> float:
    """The most that one more label gains of this value, less its price; 0 if none gains.

    A labeler who is away counts: it may come back.
    """
    if desk.meta[PRICED] == 0:
        return value * best_reach(desk, row)
    best = 0.0
    place = first_eligible(desk, row)
    while place >= 0:
        m = labeler_at(desk, row, place)
        best = max(best, value * desk.panel[m].reach - desk.panel[m].price)
        place = next_eligible(desk, row, place)
    return best


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
