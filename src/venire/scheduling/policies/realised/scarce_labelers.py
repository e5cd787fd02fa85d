"""Rows that few labelers may label: whether those few will have time for them.

One price for all evidence assumes that a label is as good for one row as for another. A row that
only a few may label is not helped by other labelers who are idle, and it competes only with rows
that need the same few; at that price it may wait for nothing, with many others.

For such rows, those that at most one in `FEW` of the panel may label, a plan of the next slots is
made when a slot is settled. The rows go in order of what they could still gain. A row looks for the
first slot in which those of its labelers who are free by then are worth the wait,

    loss - (loss with the evidence of these) > slots until then

which is what it gains by that slot, against the delay up to it, and books one label of each of
them; a labeler of capacity c with n labels booked is free in slot 1 + n // c. A row that finds no
such slot would wait for nothing, and leaves. Future arrivals are ignored: they would take some of
these labelers, and give the row nothing that it lacks.

Rows that more labelers may label are governed by the price alone.
"""

from __future__ import annotations

from typing import Final

from venire.scheduling.kernel.desk import POOLED, Desk
from venire.scheduling.kernel.eligibility import first_eligible, labeler_at, next_eligible
from venire.scheduling.kernel.queues import make_heap
from venire.scheduling.policies.realised.item_value import evidence_of, rest_of
from venire.tools.compiling import inlined, kernel

__all__ = ["rehearse"]

WAITS: Final = 0  # the turn of a row that has taken nobody
TAKES: Final = 1


@inlined
def after(desk: Desk, a: int, b: int) -> bool:
    """Whether row a goes after row b: it could gain less, or as much and came later."""
    x, y = desk.cases[a].want, desk.cases[b].want
    return x < y or (x == y and a > b)


sink, heapify = make_heap(after)


@inlined
def sort_chosen(desk: Desk, count: int) -> None:
    """Sort the first rows of `chosen` in the order in which they go."""
    heap = desk.chosen
    heapify(desk, heap, count)
    for last in range(count - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        sink(desk, heap, 0, last)


@inlined
def free_in(desk: Desk, labeler: int) -> int:
    """The first of the next slots in which the labeler is free: 1, 2, ..."""
    return int(1 + desk.panel[labeler].pointer // desk.panel[labeler].capacity)


@inlined
def on_offer(desk: Desk, row: int, ahead: int, take: bool) -> tuple[float, int]:
    """The evidence of all who are free by a slot and may label the row; when more of them are.

    That is the first slot in which one more is free, 0 if all are. With `take` they are booked.
    """
    total, later = 0.0, 0
    place = first_eligible(desk, row)
    while place >= 0:
        m = labeler_at(desk, row, place)
        e = evidence_of(desk, m, desk.cases[row].kind // 2)
        if desk.panel[m].capacity > 0 and e > 0.0:
            free = free_in(desk, m)
            if free <= ahead:
                total += e
                if take:
                    desk.panel[m].pointer += 1
            elif later == 0 or free < later:
                later = free
        place = next_eligible(desk, row, place)
    return total, later


@inlined
def gained(desk: Desk, row: int, evidence: float) -> float:
    gain: float = desk.cases[row].loss - rest_of(desk, row, evidence)
    return gain - desk.cases[row].rate * evidence


@inlined
def begin(desk: Desk, busy: bool) -> None:
    """Nobody is booked, but with `busy` for the labels in flight."""
    for m in range(len(desk.panel)):
        most = min(desk.panel[m].inflight, desk.panel[m].capacity)
        desk.panel[m].pointer = most if busy else 0


@inlined
def takes(desk: Desk, row: int) -> bool:
    """Book whom the row takes, if anybody."""
    _, ahead = on_offer(desk, row, 0, False)
    while 0 < ahead < desk.cases[row].want:
        evidence, later = on_offer(desk, row, ahead, False)
        if gained(desk, row, evidence) > ahead:
            on_offer(desk, row, ahead, True)
            return True
        ahead = later
    return False


@kernel
def rehearse(desk: Desk, low: int) -> None:
    """Write into `turn` which rows of few labelers above the bin `low` take any."""
    count = 0
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if desk.cases[row].few:
            desk.cases[row].turn = WAITS
            if desk.cases[row].stay > low:
                if count == 0:
                    begin(desk, False)
                desk.cases[row].want = gained(desk, row, on_offer(desk, row, 1, False)[0])
                desk.chosen[count] = row
                count += 1
    if count == 0:
        return
    sort_chosen(desk, count)
    begin(desk, True)
    for i in range(count):
        if takes(desk, desk.chosen[i]):
            desk.cases[desk.chosen[i]].turn = TAKES
