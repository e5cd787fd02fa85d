"""Sorting millions of labels by item, then labeler: a counting sort, linear in time.

It needs no memory besides the result, where sorting by comparison needs an index of 8 bytes per
label. It is compiled, so small tables are sorted faster by NumPy, and Numba is imported for large
ones only.
"""

from __future__ import annotations

import numpy as np

from venire.labels.table import Codes
from venire.tools.arrays import Ints
from venire.tools.compiling import threaded


@threaded()
def is_sorted(item: Codes, labeler: Codes) -> bool:
    for e in range(1, item.size):
        if item[e] < item[e - 1] or (item[e] == item[e - 1] and labeler[e] < labeler[e - 1]):
            return False
    return True


@threaded()
def offsets(item: Codes, items: int) -> Ints:
    """Where the labels of each item start, once they are sorted.

    >>> offsets(np.array([0, 2, 2]), 3).tolist()
    [0, 1, 1, 3]
    """
    start = np.zeros(items + 1, dtype=np.int64)
    for e in range(item.size):
        start[item[e] + 1] += 1
    for i in range(items):
        start[i + 1] += start[i]
    return start


@threaded()
def sort_labels(item: Codes, labeler: Codes, said: Codes, start: Ints) -> tuple[Codes, Codes]:
    """Labelers and classes, sorted; labels of one labeler for one item keep their order.

    >>> item, labeler, said = np.array([1, 0, 1]), np.array([5, 4, 3]), np.array([0, 1, 1])
    >>> [a.tolist() for a in sort_labels(item, labeler, said, offsets(item, 2))]
    [[4, 3, 5], [1, 1, 0]]
    """
    m, s = np.empty_like(labeler), np.empty_like(said)
    free = start.copy()
    for e in range(item.size):
        to = free[item[e]]
        m[to], s[to] = labeler[e], said[e]
        free[item[e]] = to + 1
    for i in range(start.size - 1):
        first, last = start[i], start[i + 1]
        if last - first > 64:
            order = np.argsort(m[first:last], kind="mergesort")
            m[first:last], s[first:last] = m[first:last][order], s[first:last][order]
            continue
        for e in range(first + 1, last):
            a, b, to = m[e], s[e], e
            while to > first and m[to - 1] > a:
                m[to], s[to] = m[to - 1], s[to - 1]
                to -= 1
            m[to], s[to] = a, b
    return m, s
