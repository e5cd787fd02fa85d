"""Who may still label a row.

A labeler is eligible for a row if it is in the row's group (group 0: everyone) and has no touch on
the row: no label, none in flight, and no exclusion. To go through all eligible labelers:

    place = first_eligible(desk, row)
    while place >= 0:
        ... labeler_at(desk, row, place) ...
        place = next_eligible(desk, row, place)

The others are marked on the panel with a new stamp; marking for another row ends the walk.
"""

from __future__ import annotations

from venire.scheduling.kernel.desk import PRICED, SERVING, STAMP, Desk
from venire.tools.compiling import inlined

__all__ = [
    "any_eligible",
    "barred",
    "best_gain",
    "eligible_count",
    "first_eligible",
    "first_unmarked",
    "in_group",
    "labeler_at",
    "mark_barred",
    "may_take",
    "new_stamp",
    "next_eligible",
]


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
    """Whether the row's group holds this labeler."""
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
    """Whether this labeler may be given the row."""
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
    """The labeler at a place."""
    return place if desk.rows[row].group == 0 else desk.edges[place].labeler


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
