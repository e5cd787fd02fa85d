"""Who may still label a row, against sets; and the heap, against `sorted`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from venire.scheduling.kernel.desk import SERVING, TOUCHES, Desk, add_group, allocate, bar, link
from venire.scheduling.kernel.queues import make_heap
from venire.scheduling.kernel.rows import (
    any_eligible,
    best_reach,
    eligible_count,
    first_eligible,
    labeler_at,
    may_take,
    next_eligible,
)
from venire.tools.compiling import inlined

LABELERS = 6
SOME = st.frozensets(st.integers(0, LABELERS - 1))


def desk_with(
    group: frozenset[int] | None, touched: frozenset[int], excluded: frozenset[int], away: set[int]
) -> Desk:
    """One row, for the labelers of a group (None: everyone), with labels and exclusions."""
    desk = allocate(1, 2 * LABELERS, LABELERS, groups=2, edges=LABELERS)
    desk.panel["capacity"] = [m not in away for m in range(LABELERS)]
    desk.panel["reach"] = (np.arange(LABELERS) * 5 % LABELERS + 1) / 10
    desk.order[:] = np.argsort(-desk.panel["reach"])
    if group is not None:
        desk.rows["group"] = add_group(desk, sorted(group))
    for m in touched:
        link(desk, 0, m, 0, 1)
    for m in excluded:
        bar(desk, 0, m)
    desk.meta[SERVING] = desk.meta[TOUCHES]  # all of these are from before
    return desk


@given(group=st.none() | SOME, touched=SOME, excluded=SOME, away=SOME)
def test_eligible_is_in_the_group_without_a_label_or_an_exclusion(
    group: frozenset[int] | None,
    touched: frozenset[int],
    excluded: frozenset[int],
    away: frozenset[int],
) -> None:
    desk = desk_with(group, touched, excluded, set(away))
    everyone = frozenset(range(LABELERS))
    expected = (everyone if group is None else group) - touched - excluded
    walked, place = [], first_eligible(desk, 0)
    while place >= 0:
        walked.append(labeler_at(desk, 0, place))
        place = next_eligible(desk, 0, place)
    assert walked == sorted(expected, reverse=True)
    assert {m for m in everyone if may_take(desk, 0, m)} == expected
    assert eligible_count(desk, 0, False) == len(expected)
    assert eligible_count(desk, 0, True) == len(expected - away)
    assert any_eligible(desk, 0) == bool(expected - away)
    reach = [float(desk.panel["reach"][m]) for m in expected]
    assert best_reach(desk, 0) == max(reach, default=0.0)


@inlined
def smaller(desk: Desk, a: int, b: int) -> bool:
    """By the weight of rows, then by number."""
    x, y = desk.rows[a].weight, desk.rows[b].weight
    return bool(x < y or (x == y and a < b))


sink, heapify = make_heap(smaller)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_the_heap_gives_numbers_in_order(weights: list[int]) -> None:
    desk, n = allocate(8, 1, 1), len(weights)
    desk.rows["weight"][:n] = weights
    heap = np.arange(n, dtype=np.int32)
    heapify(desk, heap, n)
    found = []
    while n > 0:
        found.append(int(heap[0]))
        n -= 1
        heap[0] = heap[n]
        sink(desk, heap, 0, n)
    assert found == sorted(range(len(weights)), key=lambda row: (weights[row], row))
