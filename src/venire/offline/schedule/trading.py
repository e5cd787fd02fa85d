"""Trades that improve a schedule: an item may take a block from another that loses less by it.

A block that is free costs nothing; one that another item holds costs what that item would lose
(of labelers with a capacity of one; the others' blocks are to be had only while some are left).
Items go in order of arrival. Each takes the set that is best for it at these costs, if it gains
more than the others really lose: who loses two blocks loses more than the sum of both. So every
trade raises what the schedule earns, and who lost a block looks for another in its turn.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.bound.one_item import Bench, best_set
from venire.offline.instance import Problem
from venire.offline.schedule.book import Book, replace
from venire.tools.compiling import inlined, kernel

__all__ = ["Counter", "lay_counter", "trade"]

#: A trade that gains less, as a share of the weight, is not worth its rounding.
LEAST: Final = 1e-9


class Counter(NamedTuple):
    """Who holds each block [slot, labeler], and room for the blocks of one trade."""

    owner: NDArray[np.int64]
    taken: NDArray[np.int64]
    loser: NDArray[np.int64]


def lay_counter(slots: int, labelers: int) -> Counter:
    """An empty counter."""
    one = np.full((slots, labelers), -1, np.int64)
    return Counter(one, np.zeros(labelers, np.int64), np.zeros(labelers, np.int64))


@inlined
def value(problem: Problem, book: Book, item: int, without: int) -> float:
    """What an item earns by all that it holds but one entry; -1 for all."""
    rest, last, k = 1.0, problem.arrival[item], book.head[item]
    while k >= 0:
        if k != without:
            t = book.slot[k]
            rest *= 1.0 - problem.reach[problem.phase[t], book.labeler[k]]
            last = max(last, t)
        k = book.next[k]
    return max(0.0, float(problem.weight[item] * (1.0 - rest) - (last - problem.arrival[item])))


@inlined
def post(problem: Problem, book: Book, counter: Counter, item: int) -> None:
    """Say what the blocks of an item cost the others."""
    all_of_it = value(problem, book, item, -1)
    k = book.head[item]
    while k >= 0:
        t, m = book.slot[k], book.labeler[k]
        if problem.capacity[m] == 1:
            counter.owner[t, m] = item
            book.toll[t, m] = max(0.0, all_of_it - value(problem, book, item, k))
        else:
            book.toll[t, m] = 0.0 if book.left[t, m] > 0 else np.inf
        k = book.next[k]


@inlined
def detach(book: Book, item: int, slot: int, labeler: int) -> int:
    """Take a block from an item; its entry."""
    before, k = -1, book.head[item]
    while book.slot[k] != slot or book.labeler[k] != labeler:
        before, k = k, book.next[k]
    if before < 0:
        book.head[item] = book.next[k]
    else:
        book.next[before] = book.next[k]
    return int(k)


@inlined
def take(problem: Problem, book: Book, counter: Counter, bench: Bench) -> tuple[int, float]:
    """Take the blocks on the bench from those who hold them: how many, and what that costs."""
    n, lost = 0, 0.0
    for i in range(bench.size[0]):
        m, t = bench.best[i, 0], bench.best[i, 1]
        if book.left[t, m] > 0:
            continue
        loser = counter.owner[t, m]
        before = value(problem, book, loser, -1)
        counter.taken[n] = detach(book, loser, t, m)
        counter.loser[n] = loser
        lost += before - value(problem, book, loser, -1)
        n += 1
    return n, lost


@inlined
def offer_own(book: Book, item: int, by: int) -> None:
    """Offer what an item holds to itself (by 1), or no more (by -1)."""
    k = book.head[item]
    while k >= 0:
        book.left[book.slot[k], book.labeler[k]] += by
        if by > 0:
            book.toll[book.slot[k], book.labeler[k]] = 0.0
        k = book.next[k]


@kernel
def trade(problem: Problem, book: Book, counter: Counter, bench: Bench) -> float:
    """One round over all items; by how much the schedule earns more."""
    slots, labelers = book.toll.shape
    for t in range(slots):
        for m in range(labelers):
            book.toll[t, m] = 0.0 if book.left[t, m] > 0 else np.inf
    for s in range(len(problem.weight)):
        post(problem, book, counter, s)
    total = 0.0
    for s in range(len(problem.weight)):
        least = value(problem, book, s, -1) + LEAST * problem.weight[s]
        offer_own(book, s, 1)
        gain, _ = best_set(problem, book.toll, s, bench)
        if gain > least:
            for i in range(bench.size[0]):
                gain += book.toll[bench.best[i, 1], bench.best[i, 0]]
            n, lost = take(problem, book, counter, bench)
            fair = gain - lost > least
            for i in range(n):
                k = counter.taken[i]
                if fair:
                    book.left[book.slot[k], book.labeler[k]] += 1
                    book.free[0] += 1
                    book.free[book.free[0]] = k
                else:
                    book.next[k] = book.head[counter.loser[i]]
                    book.head[counter.loser[i]] = k
            if fair:
                total += gain - lost - least
                replace(book, s, bench)
            for i in range(n):
                post(problem, book, counter, counter.loser[i])
        offer_own(book, s, -1)
        post(problem, book, counter, s)
    return total
