"""Assign labelers to chosen rows: Algorithm 1 with the delay of the chosen rows counted as paid.

The delay that a row pays for a label in this slot is paid once, however many labels it gets.
Algorithm 1 charges it to the first label alone, so where one label is worth less than a slot, no
label is the first. Here a policy chooses the rows to serve; they are in a queue before all others,
without a delay, so that labels for them compete by what they add.
"""

from __future__ import annotations

from venire.scheduling.algorithm1.gain import bound, refile_at, score, take
from venire.scheduling.algorithm1.labeler_turn import enqueue, make_turn
from venire.scheduling.algorithm1.ready_queues import dequeue
from venire.scheduling.state.desk import Desk, room
from venire.tools.compiling import inlined

__all__ = ["give", "prepay", "restore"]


@inlined
def score_chosen(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    return score(desk, labeler, row, rank, slot) if rank > slot else -1.0


@inlined
def bound_chosen(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    return bound(desk, labeler, rank, slot) if rank > slot else -1.0


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    refile_at(desk, row, slot + 1 if desk.rows[row].paid == slot else desk.rows[row].last)


take_turn = make_turn(score, bound, take, refile)
take_chosen = make_turn(score_chosen, bound_chosen, take, refile)


@inlined
def prepay(desk: Desk, count: int, slot: int) -> None:
    """Count the delay of the chosen rows as paid: they come before all others."""
    for i in range(count):
        row = desk.chosen[i]
        desk.rows[row].paid = slot
        dequeue(desk, row)
        enqueue(desk, row, slot + 1)


@inlined
def give(desk: Desk, slot: int, chosen_only: bool) -> None:
    """Every labeler with room takes the rows of the largest gain, the best labeler first."""
    for m in desk.order:
        if desk.panel[m].reach <= 0.0:
            break
        if room(desk, m) > 0:
            if chosen_only:
                take_chosen(desk, m, slot, desk.panel[m].price)
            else:
                take_turn(desk, m, slot, desk.panel[m].price)


@inlined
def restore(desk: Desk, count: int) -> None:
    """Put the chosen rows where they belong."""
    for i in range(count):
        row = desk.chosen[i]
        desk.rows[row].paid = -1
        dequeue(desk, row)
        enqueue(desk, row, desk.rows[row].last)
