"""The queues of outstanding rows (`desk.shelves`): pairing heaps, by group of labelers and rank.

All rows of a queue have the same group and the same rank, so only the first of each queue can be
the best of it for any labeler. For Algorithm 1 the rank is the slot of the last label and the key
is the residual: the gain is a line in the labeler's reach, `key * reach - delay`, and the delay
depends on the rank alone.

A pairing heap is three links on the row itself, so a queue of a million rows needs no memory of
its own. Order: largest key first, then the lowest row, which is the earliest arrival.
"""

from __future__ import annotations

from venire.scheduling.state.desk import FREE_SHELF, Desk, Records
from venire.tools.compiling import inlined

__all__ = ["dequeue", "pop", "push", "put", "release"]


@inlined
def ahead(rows: Records, a: int, b: int) -> bool:
    """Whether row a comes before row b."""
    return rows[a].key > rows[b].key or (rows[a].key == rows[b].key and a < b)


@inlined
def meld(rows: Records, a: int, b: int) -> int:
    """Join two heaps, given by their roots (-1: empty); the root of the whole."""
    if a < 0:
        return b
    if b < 0:
        return a
    if ahead(rows, b, a):
        a, b = b, a
    first = rows[a].child
    rows[b].sibling = first
    rows[b].before = a
    if first >= 0:
        rows[first].before = b
    rows[a].child = b
    return a


@inlined
def meld_children(rows: Records, parent: int) -> int:
    """Join the children of a row that leaves: in pairs left to right, then right to left."""
    pairs = -1
    a = rows[parent].child
    while a >= 0:
        b = rows[a].sibling
        rows[a].sibling = -1
        if b < 0:
            following = -1
        else:
            following = rows[b].sibling
            rows[b].sibling = -1
        joined = meld(rows, a, b)
        rows[joined].sibling = pairs
        pairs = joined
        a = following
    root = -1
    while pairs >= 0:
        following = rows[pairs].sibling
        rows[pairs].sibling = -1
        root = meld(rows, root, pairs)
        pairs = following
    rows[parent].child = -1
    return root


@inlined
def pop(rows: Records, shelves: Records, shelf: int) -> int:
    """Take the first row out of the heap; it belongs to the queue until `release`."""
    top = shelves[shelf].root
    root = meld_children(rows, top)
    if root >= 0:
        rows[root].before = -1
    shelves[shelf].root = root
    return top


@inlined
def push(rows: Records, shelves: Records, shelf: int, row: int) -> None:
    """Put a row that belongs to the queue into its heap."""
    rows[row].child = -1
    rows[row].sibling = -1
    rows[row].before = -1
    shelves[shelf].root = meld(rows, shelves[shelf].root, row)


@inlined
def put(desk: Desk, row: int, rank: int) -> None:
    """Make the row belong to the queue of its group and this rank, without pushing it."""
    group = desk.rows[row].group
    shelves = desk.shelves
    prev, s = -1, desk.groups[group].shelf
    while s >= 0 and shelves[s].rank > rank:
        prev, s = s, shelves[s].next
    if s < 0 or shelves[s].rank != rank:
        following, s = s, desk.meta[FREE_SHELF]
        desk.meta[FREE_SHELF] = shelves[s].next
        shelves[s].rank, shelves[s].group, shelves[s].root, shelves[s].size = rank, group, -1, 0
        shelves[s].prev, shelves[s].next = prev, following
        if prev >= 0:
            shelves[prev].next = s
        else:
            desk.groups[group].shelf = s
        if following >= 0:
            shelves[following].prev = s
    shelves[s].size += 1
    desk.rows[row].shelf = s


@inlined
def release(desk: Desk, row: int) -> None:
    """Make the row, which is out of its heap, belong to no queue; an empty queue is freed."""
    shelves = desk.shelves
    s = desk.rows[row].shelf
    desk.rows[row].shelf = -1
    shelves[s].size -= 1
    if shelves[s].size == 0:
        prev, following = shelves[s].prev, shelves[s].next
        if prev >= 0:
            shelves[prev].next = following
        else:
            desk.groups[shelves[s].group].shelf = following
        if following >= 0:
            shelves[following].prev = prev
        shelves[s].next = desk.meta[FREE_SHELF]
        desk.meta[FREE_SHELF] = s


@inlined
def dequeue(desk: Desk, row: int) -> None:
    """Take a row out of its queue, wherever in the heap it is; do nothing if it is in none."""
    rows, shelves = desk.rows, desk.shelves
    s = rows[row].shelf
    if s < 0:
        return
    below = meld_children(rows, row)
    if shelves[s].root == row:
        root = below
    else:
        before, sibling = rows[row].before, rows[row].sibling
        if rows[before].child == row:
            rows[before].child = sibling
        else:
            rows[before].sibling = sibling
        if sibling >= 0:
            rows[sibling].before = before
        root = meld(rows, shelves[s].root, below)
    if root >= 0:
        rows[root].before = -1
        rows[root].sibling = -1
    shelves[s].root = root
    release(desk, row)
