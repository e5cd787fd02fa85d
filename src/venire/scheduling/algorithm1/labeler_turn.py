"""A labeler's turn: take the best rows out of the queues, up to the labeler's capacity.

Only the first row of each queue competes; one for which the labeler is not eligible is set aside
until the turn ends. The policy says what "best" means: `make_turn` builds a turn out of its
functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venire.scheduling.algorithm1.ready_queues import pop, push, put, release
from venire.scheduling.state.desk import SERVING, TOUCHES, Desk, room
from venire.scheduling.state.eligibility import barred
from venire.tools.compiling import inlined

__all__ = ["begin_serving", "enqueue", "make_for_served", "make_turn", "move"]


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
