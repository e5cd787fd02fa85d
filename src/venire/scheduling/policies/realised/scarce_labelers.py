"""Claims: whether those few who may label a row will have time for it.

One price for all evidence takes everybody's labels to be as good for one row as for another. A
row that only a few may label is not helped by others who idle, and it competes only with rows
that want the same few; so at the price it may wait in vain, among many in the same case.

For such rows, those that at most one in `FEW` of the panel may label, the coming slots are
rehearsed when a slot is settled. In each of them, from the next one on, the rows go in order of
what they could still gain, and a row gets all of its labelers who are free. It takes them if

    loss - left exp(-evidence of these) > slots until then

which is what it gains by that slot, against the delay up to it. Whoever has taken none within
`HORIZON` slots would wait in vain, and leaves. What is to arrive is left out: it would take
some of these labelers, and give the row nothing that it lacks.

The others, whom more may label than that, are governed by the price alone.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.policies.realised.item_value import evidence_of
from venire.scheduling.state.desk import POOLED, Desk, mark_barred
from venire.tools.compiling import inlined, kernel

__all__ = ["HORIZON", "rehearse"]

#: So many slots are rehearsed at most.
HORIZON: Final = 16

WAITS: Final = 0  # the turn of a row that has not taken anybody
TAKES: Final = 1


@inlined
def before(desk: Desk, a: int, b: int) -> bool:
    """Whether row a goes before row b: it could gain more, or as much and came earlier."""
    x, y = desk.cases[a].want, desk.cases[b].want
    return x > y or (x == y and a < b)


@inlined
def sink(desk: Desk, i: int, count: int) -> None:
    """Let the i-th of a heap, whose top goes last, sink to where it belongs."""
    heap = desk.chosen
    while True:
        j = 2 * i + 1
        if j + 1 < count and before(desk, heap[j], heap[j + 1]):
            j += 1
        if j >= count or not before(desk, heap[i], heap[j]):
            return
        heap[i], heap[j] = heap[j], heap[i]
        i = j


@inlined
def put_in_order(desk: Desk, count: int) -> None:
    """Sort the first rows of `chosen`, who goes first first."""
    heap = desk.chosen
    for i in range(count // 2 - 1, -1, -1):
        sink(desk, i, count)
    for last in range(count - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        sink(desk, 0, last)


@inlined
def offered(desk: Desk, row: int, labeler: int, stamp: int, take: bool) -> float:
    """The evidence of one labeler, if it may label the row and is free."""
    if desk.panel[labeler].mark == stamp or desk.panel[labeler].pointer <= 0:
        return 0.0
    e = evidence_of(desk, labeler, desk.cases[row].kind // 2)
    if take and e > 0.0:
        desk.panel[labeler].pointer -= 1
    return max(0.0, e)


@inlined
def on_offer(desk: Desk, row: int, take: bool) -> float:
    """The evidence of all who may still label the row and are free; with `take` they no longer are.

    It is added up from the last labeler to the first, however it is noted who may label the row.
    """
    stamp, group, total = mark_barred(desk, row), desk.rows[row].group, 0.0
    if group == 0:
        for m in range(len(desk.panel) - 1, -1, -1):
            total += offered(desk, row, m, stamp, take)
        return total
    k = desk.groups[group].edge
    while k >= 0:
        total += offered(desk, row, desk.edges[k].labeler, stamp, take)
        k = desk.edges[k].of_group
    return total


@inlined
def begin_slot(desk: Desk, ahead: int) -> None:
    """Everybody is free, but for labels in flight, which are waited for in the next slot."""
    for m in range(len(desk.panel)):
        busy = desk.panel[m].inflight if ahead == 1 else 0
        desk.panel[m].pointer = max(0, desk.panel[m].capacity - busy)


@inlined
def gained(desk: Desk, row: int, evidence: float) -> float:
    gain: float = desk.cases[row].loss - desk.cases[row].left * math.exp(-evidence)
    return gain


@kernel
def rehearse(desk: Desk, low: int) -> None:
    """Write into `turn` who of the few-labeler rows above the bin `low` takes labelers."""
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
    put_in_order(desk, count)
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
