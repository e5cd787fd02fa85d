"""The queues of outstanding rows (`desk.shelves`): pairing heaps, by group of labelers and rank.

All rows of a queue have the same group and the same rank, so only the first of each queue can be
the best of it for any labeler. For Algorithm 1 the rank is the slot of the last label and the key
is the residual: the gain is a line in the labeler's reach, `key * reach - delay`, and the delay
depends on the rank alone.

A pairing heap is three links on the row itself, so a queue of a million rows needs no memory of
its own. Order: largest key first, then the lowest row, which is the earliest arrival.

In its turn a labeler takes the best rows out of the queues, up to its capacity. Only the first row
of each queue competes; one for which the labeler is not eligible is set aside until the turn ends.
The policy says what "best" means: `make_turn` builds a turn out of its functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.scheduling.kernel.desk import FREE_SHELF, SERVING, TOUCHES, Desk, Records, room
from venire.scheduling.kernel.rows import barred
from venire.tools.compiling import inlined


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


@inlined
def never(desk: Desk, labeler: int, row: int) -> bool:
    """No row refuses anybody."""
    return False


def make_turn(
    score: Callable[..., Any],
    bound: Callable[..., Any],
    take: Callable[..., Any],
    refile: Callable[..., Any],
    refused: Callable[..., Any] = never,
) -> Callable[[Desk, int, int, float], None]:
    """Build `take_turn(desk, labeler, slot, floor)`: take rows that score above `floor`.

    score(desk, labeler, row, rank, slot)   how good a row is; it must not increase down a heap,
                                            so that the first row bounds the whole queue
    bound(desk, labeler, rank, slot)        no row in a queue of this rank, or of a lower one,
                                            scores more
    take(desk, labeler, row, slot)          assign the row to the labeler, by `touch`
    refile(desk, row, slot)                 put a row that is out of its heap where it belongs
    refused(desk, labeler, row)             whether the row does not want this labeler
    """

    @inlined
    def best_in_queue(
        desk: Desk, labeler: int, slot: int, shelf: int, best: int, value: float, aside: int
    ) -> tuple[int, float, int]:
        rows, shelves = desk.rows, desk.shelves
        row = shelves[shelf].root
        while row >= 0:
            here = score(desk, labeler, row, shelves[shelf].rank, slot)
            if here < value or (here == value and (best < 0 or row > best)):
                break
            if not barred(desk, row, labeler) and not refused(desk, labeler, row):
                return row, here, aside
            pop(rows, shelves, shelf)
            rows[row].sibling = aside
            aside = row
            row = shelves[shelf].root
        return best, value, aside

    @inlined
    def best_in_group(
        desk: Desk, labeler: int, slot: int, group: int, best: int, value: float, aside: int
    ) -> tuple[int, float, int]:
        shelf = desk.groups[group].shelf
        while shelf >= 0 and bound(desk, labeler, desk.shelves[shelf].rank, slot) >= value:
            best, value, aside = best_in_queue(desk, labeler, slot, shelf, best, value, aside)
            shelf = desk.shelves[shelf].next
        return best, value, aside

    @inlined
    def best_row(desk: Desk, labeler: int, slot: int, floor: float, aside: int) -> tuple[int, int]:
        best, value, aside = best_in_group(desk, labeler, slot, 0, -1, floor, aside)
        e = desk.panel[labeler].edge
        while e >= 0:
            group = desk.edges[e].group
            best, value, aside = best_in_group(desk, labeler, slot, group, best, value, aside)
            e = desk.edges[e].of_labeler
        return best, aside

    @inlined
    def take_turn(desk: Desk, labeler: int, slot: int, floor: float) -> None:
        aside = -1
        while room(desk, labeler) > 0:
            row, aside = best_row(desk, labeler, slot, floor, aside)
            if row < 0:
                break
            pop(desk.rows, desk.shelves, desk.rows[row].shelf)
            desk.rows[row].sibling = aside
            aside = row
            take(desk, labeler, row, slot)
        while aside >= 0:
            row = aside
            aside = desk.rows[row].sibling
            refile(desk, row, slot)

    turn: Callable[[Desk, int, int, float], None] = take_turn
    return turn


@inlined
def move(desk: Desk, row: int, rank: int) -> None:
    """Put a row that is out of its heap into the queue of this rank."""
    s = desk.rows[row].shelf
    if desk.shelves[s].rank != rank:
        release(desk, row)
        put(desk, row, rank)
        s = desk.rows[row].shelf
    push(desk.rows, desk.shelves, s, row)


@inlined
def enqueue(desk: Desk, row: int, rank: int) -> None:
    """Put a row that is in no queue into the queue of this rank."""
    put(desk, row, rank)
    push(desk.rows, desk.shelves, desk.rows[row].shelf, row)


@inlined
def begin_serving(desk: Desk) -> int:
    """Begin a serving: touches from the returned one on belong to it."""
    first: int = desk.meta[TOUCHES]
    desk.meta[SERVING] = first
    return first


def make_for_served(
    act: Callable[[Desk, int, int], None],
) -> Callable[[Desk, int, int], None]:
    """Build `for_served(desk, first, slot)`: `act(desk, row, slot)` on every row served.

    That is, once on each row that was given to anybody since touch `first`.
    """

    @inlined
    def for_served(desk: Desk, first: int, slot: int) -> None:
        for k in range(first, desk.meta[TOUCHES]):
            row = desk.touches[k].row
            if desk.rows[row].head == k:
                act(desk, row, slot)

    built: Callable[[Desk, int, int], None] = for_served
    return built


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
