"""Trades that improve a schedule: an item may take a block from another that loses less by it.

A free block costs only its money; one that another item holds also costs what that item would lose
(for labelers with a capacity of one; blocks of others are available only while some are left).
Items go in order of arrival. Each takes the set that is best for it at these costs, if it gains
more than the others actually lose: an item that loses two blocks loses more than the sum of both.
So every trade raises what the schedule earns, and an item that lost a block looks for another in
its turn.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.bound.one_item import Workspace, best_set
from venire.offline.instance import Problem
from venire.offline.schedule.book import Book, replace
from venire.tools.compiling import inlined, kernel

__all__ = ["Owners", "owners_for", "trade"]

#: A trade must gain more than this share of the weight, which is above the rounding error.
LEAST: Final = 1e-9


class Owners(NamedTuple):
    """The owner of each block [slot, labeler], and room for the blocks of one trade."""

    owner: NDArray[np.int64]
    taken: NDArray[np.int64]
    loser: NDArray[np.int64]


def owners_for(slots: int, labelers: int) -> Owners:
    """Nobody owns anything."""
    one = np.full((slots, labelers), -1, np.int64)
    return Owners(one, np.zeros(labelers, np.int64), np.zeros(labelers, np.int64))


@inlined
def value(problem: Problem, book: Book, item: int, without: int) -> float:
    """What an item earns by its blocks without one entry; -1: with all."""
    rest, paid, last, k = 1.0, 0.0, problem.arrival[item], book.head[item]
    while k >= 0:
        if k != without:
            t = book.slot[k]
            rest *= 1.0 - problem.reach[problem.phase[t], book.labeler[k]]
            paid += problem.money[book.labeler[k]]
            last = max(last, t)
        k = book.next[k]
    gained = problem.weight[item] * (1.0 - rest) - (last - problem.arrival[item])
    return max(0.0, float(gained - paid))


@inlined
def post(problem: Problem, book: Book, owners: Owners, item: int) -> None:
    """Write what the blocks of an item cost others."""
    all_of_it = value(problem, book, item, -1)
    k = book.head[item]
    while k >= 0:
        t, m = book.slot[k], book.labeler[k]
        if problem.capacity[m] == 1:
            owners.owner[t, m] = item
            lost = max(0.0, all_of_it - value(problem, book, item, k))
            book.toll[t, m] = lost + problem.money[m]
        else:
            book.toll[t, m] = problem.money[m] if book.left[t, m] > 0 else np.inf
        k = book.next[k]


@inlined
def detach(book: Book, item: int, slot: int, labeler: int) -> int:
    """Take a block from an item; returns its entry."""
    before, k = -1, book.head[item]
    while book.slot[k] != slot or book.labeler[k] != labeler:
        before, k = k, book.next[k]
    if before < 0:
        book.head[item] = book.next[k]
    else:
        book.next[before] = book.next[k]
    return int(k)


@inlined
def take(problem: Problem, book: Book, owners: Owners, space: Workspace) -> tuple[int, float]:
    """Take the blocks of the best set from their owners; returns how many, and their loss."""
    n, lost = 0, 0.0
    for i in range(space.size[0]):
        m, t = space.best[i, 0], space.best[i, 1]
        if book.left[t, m] > 0:
            continue
        loser = owners.owner[t, m]
        before = value(problem, book, loser, -1)
        owners.taken[n] = detach(book, loser, t, m)
        owners.loser[n] = loser
        lost += before - value(problem, book, loser, -1)
        n += 1
    return n, lost


@inlined
def offer_own(problem: Problem, book: Book, item: int, by: int) -> None:
    """Make the blocks of an item available to itself (by 1), or undo that (by -1)."""
    k = book.head[item]
    while k >= 0:
        book.left[book.slot[k], book.labeler[k]] += by
        if by > 0:
            book.toll[book.slot[k], book.labeler[k]] = problem.money[book.labeler[k]]
        k = book.next[k]


@kernel
def trade(problem: Problem, book: Book, owners: Owners, space: Workspace) -> float:
    """One round over all items; returns how much more the schedule earns."""
    slots, labelers = book.toll.shape
    for t in range(slots):
        for m in range(labelers):
            book.toll[t, m] = problem.money[m] if book.left[t, m] > 0 else np.inf
    for s in range(len(problem.weight)):
        post(problem, book, owners, s)
    total = 0.0
    for s in range(len(problem.weight)):
        least = value(problem, book, s, -1) + LEAST * problem.weight[s]
        offer_own(problem, book, s, 1)
        gain, _ = best_set(problem, book.toll, s, space)
        if gain > least:
            for i in range(space.size[0]):
                m = space.best[i, 0]
                gain += book.toll[space.best[i, 1], m] - problem.money[m]
            n, lost = take(problem, book, owners, space)
            fair = gain - lost > least
            for i in range(n):
                k = owners.taken[i]
                if fair:
                    book.left[book.slot[k], book.labeler[k]] += 1
                    book.free[0] += 1
                    book.free[book.free[0]] = k
                else:
                    book.next[k] = book.head[owners.loser[i]]
                    book.head[owners.loser[i]] = k
            if fair:
                total += gain - lost - least
                replace(book, s, space)
            for i in range(n):
                post(problem, book, owners, owners.loser[i])
        offer_own(problem, book, s, -1)
        post(problem, book, owners, s)
    return total
