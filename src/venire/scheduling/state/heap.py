"""A binary heap of numbers (rows, stalls, bids), in an array of the desk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.scheduling.state.desk import Desk
from venire.tools.compiling import inlined

__all__ = ["make_heap"]

Ints = NDArray[np.int32]


def make_heap(
    before: Callable[[Desk, int, int], bool],
) -> tuple[Callable[[Desk, Ints, int, int], None], Callable[[Desk, Ints, int], None]]:
    """Build `sink(desk, heap, i, count)` and `heapify(desk, heap, count)` for an order.

    `before(desk, a, b)` says whether a is nearer to the top than b. `sink` moves the i-th of
    `count` down to where it belongs; `heapify` makes a heap of the first `count`.
    """

    @inlined
    def sink(desk: Desk, heap: Any, i: int, count: int) -> None:
        while True:
            j = 2 * i + 1
            if j + 1 < count and before(desk, heap[j + 1], heap[j]):
                j += 1
            if j >= count or not before(desk, heap[j], heap[i]):
                return
            heap[i], heap[j] = heap[j], heap[i]
            i = j

    @inlined
    def heapify(desk: Desk, heap: Any, count: int) -> None:
        for i in range(count // 2 - 1, -1, -1):
            sink(desk, heap, i, count)

    return sink, heapify
