"""Rows that few labelers may label: whether those few will have time for them.

One price for all evidence assumes that a label is as good for one row as for another. A row that
only a few may label is not helped by other labelers who are idle, and it competes only with rows
that need the same few; at that price it may wait for nothing, with many others.

For such rows, those that at most one in `FEW` of the panel may label, the next slots are simulated
when a slot is settled. In each of them, from the next one on, the rows go in order of what they
could still gain, and a row gets all of its labelers who are free. It takes them if

    loss - left exp(-evidence of these) > slots until then

which is what it gains by that slot, against the delay up to it. A row that has taken none within
`HORIZON` slots would wait for nothing, and leaves. Future arrivals are ignored: they would take
some of these labelers, and give the row nothing that it lacks.

Rows that more labelers may label are governed by the price alone.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.policies.realised.item_value import evidence_of
from venire.scheduling.state.desk import POOLED, Desk
from venire.scheduling.state.eligibility import first_eligible, labeler_at, next_eligible
from venire.scheduling.state.heap import make_heap
from venire.tools.compiling import inlined, kernel

__all__ = ["HORIZON", "rehearse"]

#: The most slots that are simulated.
HORIZON: Final = 16

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
def on_offer(desk: Desk, row: int, take: bool) -> float:
    """The evidence of all who may still label the row and are free; with `take` they are taken."""
    total = 0.0
    place = first_eligible(desk, row)
    while place >= 0:
        m = labeler_at(desk, row, place)
        if desk.panel[m].pointer > 0:
            e = evidence_of(desk, m, desk.cases[row].kind // 2)
            if take and e > 0.0:
                desk.panel[m].pointer -= 1
            total += max(0.0, e)
        place = next_eligible(desk, row, place)
    return total


@inlined
def begin_slot(desk: Desk, ahead: int) -> None:
    """Everybody is free, except for labels in flight in the next slot."""
    for m in range(len(desk.panel)):
        busy = desk.panel[m].inflight if ahead == 1 else 0
        desk.panel[m].pointer = max(0, desk.panel[m].capacity - busy)


@inlined
def gained(desk: Desk, row: int, evidence: float) -> float:
    gain: float = desk.cases[row].loss - desk.cases[row].left * math.exp(-evidence)
    return gain


@kernel
def rehearse(desk: Desk, low: int) -> None:
    """Write into `turn` which rows of few labelers above the bin `low` take any."""
    count, begun = 0, False
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if desk.cases[row].few:
            desk.cases[row].turn = WAITS
            if desk.cases[row].stay > low:
                if not begun:
                    begin_slot(desk, 2)
                    begun = True
                desk.cases[row].want = gained(desk, row, on_offer(desk, row, False))
                desk.chosen[count] = row
                count += 1
    sort_chosen(desk, count)
    for ahead in range(1, HORIZON + 1):
        if count == 0:
            return
        begin_slot(desk, ahead)
        waiting = 0
        for i in range(count):
            row = desk.chosen[i]
            if gained(desk, row, on_offer(desk, row, False)) > ahead:
                desk.cases[row].turn = TAKES
                on_offer(desk, row, True)
            elif desk.cases[row].want > ahead + 1:
                desk.chosen[waiting] = row
                waiting += 1
        count = waiting
