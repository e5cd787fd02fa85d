"""Which item has which blocks, while a schedule is built."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.bound.one_item import Workspace
from venire.tools.compiling import inlined

__all__ = ["Book", "replace"]

Floats = NDArray[np.float64]


class Book(NamedTuple):
    """The blocks of each item, as linked lists `head` and `next`; `free` is a stack of entries.

    `toll` is what a block costs now, with the money, infinite where nothing of it is left.
    """

    head: NDArray[np.int64]
    next: NDArray[np.int64]
    labeler: NDArray[np.int32]
    slot: NDArray[np.int64]
    free: NDArray[np.int64]
    left: NDArray[np.int64]
    toll: Floats


@inlined
def replace(book: Book, item: int, space: Workspace) -> None:
    """Replace the blocks of the item by the best set found."""
    k = book.head[item]
    while k >= 0:
        after = book.next[k]
        book.free[0] += 1
        book.free[book.free[0]] = k
        k = after
    book.head[item] = -1
    for i in range(space.size[0]):
        k = book.free[book.free[0]]
        book.free[0] -= 1
        book.labeler[k] = space.best[i, 0]
        book.slot[k] = space.best[i, 1]
        book.next[k] = book.head[item]
        book.head[item] = k
