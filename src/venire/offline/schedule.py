"""A schedule guided by prices: a lower bound on what can be earned with knowledge of the future.

Items go in order of arrival; each takes the set that is best for it at the prices, from the blocks
that are left. This is repeated with a decreasing share of the prices, in the end none: an item
returns its blocks, and takes the best of what is left, or the same again. Without prices no such
step earns less. Finally items trade (`offline/schedule.py`).

**Trades that improve a schedule: an item may take a block from another that loses less by it.**

A free block costs only its money; one that another item holds also costs what that item would lose
(for labelers with a capacity of one; blocks of others are available only while some are left).
Items go in order of arrival. Each takes the set that is best for it at these costs, if it gains
more than the others actually lose: an item that loses two blocks loses more than the sum of both.
So every trade raises what the schedule earns, and an item that lost a block looks for another in
its turn.

Which item has which blocks, while a schedule is built.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.instance import Block, Instance, Problem
from venire.offline.one_item import Workspace, best_set, workspace_for
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel


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


#: A trade must gain more than this share of the weight, which is above the rounding error.
LEAST: Final = 1e-9


class Owners(NamedTuple):
    """The owner of each block [slot, labeler], and room for the blocks of one trade."""

    owner: NDArray[np.int64]
    taken: NDArray[np.int64]
    loser: NDArray[np.int64]


def owners_for(slots: int, labelers: int) -> Owners:
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


#: The most rounds of trades, the most work they may be, and the gain of a round, as a share of the
#: weights, below which they end.
ROUNDS: Final = 30
WORK: Final = 4e9
LITTLE: Final = 1e-5


@inlined
def worth(problem: Problem, book: Book, item: int, price: Floats, share: float) -> float:
    """What an item gains by its blocks at a share of the prices, and the money they cost."""
    rest, paid, last = 1.0, 0.0, problem.arrival[item]
    k = book.head[item]
    if k < 0:
        return 0.0
    while k >= 0:
        t, m = book.slot[k], book.labeler[k]
        rest *= 1.0 - problem.reach[problem.phase[t], m]
        paid += share * price[t, m] + problem.money[m]
        last = max(last, t)
        k = book.next[k]
    return float(problem.weight[item] * (1.0 - rest) - (last - problem.arrival[item]) - paid)


@inlined
def open_blocks(problem: Problem, book: Book, item: int, price: Floats, share: float) -> None:
    k = book.head[item]
    while k >= 0:
        t, m = book.slot[k], book.labeler[k]
        book.left[t, m] += 1
        book.toll[t, m] = share * price[t, m] + problem.money[m]
        k = book.next[k]


@inlined
def close_blocks(book: Book, item: int) -> None:
    k = book.head[item]
    while k >= 0:
        t, m = book.slot[k], book.labeler[k]
        book.left[t, m] -= 1
        if book.left[t, m] == 0:
            book.toll[t, m] = np.inf
        k = book.next[k]


@kernel
def go_round(problem: Problem, price: Floats, share: float, book: Book, space: Workspace) -> None:
    """Every item takes the best of the blocks that are left, at a share of the prices."""
    slots, labelers = price.shape
    for t in range(slots):
        for m in range(labelers):
            toll = share * price[t, m] + problem.money[m]
            book.toll[t, m] = toll if book.left[t, m] > 0 else np.inf
    for s in range(len(problem.weight)):
        before = worth(problem, book, s, price, share)
        open_blocks(problem, book, s, price, share)
        found, _ = best_set(problem, book.toll, s, space)
        if found > before:
            replace(book, s, space)
        close_blocks(book, s)


def plan(
    instance: Instance,
    price: Floats,
    shares: tuple[float, ...] = (1.0, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.0, 0.0),
) -> list[Block]:
    """A feasible schedule, good where the prices are.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> plan(tiny, np.zeros((2, 2)))
    [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)]
    """
    problem, space = instance.problem(), workspace_for(instance.problem())
    most = min(instance.slots * int(instance.capacity.sum()), len(instance) * price.shape[1])
    book = Book(
        np.full(len(instance), -1, np.int64),
        np.full(most, -1, np.int64),
        np.zeros(most, np.int32),
        np.zeros(most, np.int64),
        np.concatenate([[most], np.arange(most)]),
        np.tile(instance.capacity, (instance.slots, 1)),
        np.zeros(price.shape),
    )
    for share in shares:
        go_round(problem, price, share, book, space)
    owners, little = owners_for(*price.shape), LITTLE * float(instance.weight.sum())
    for _ in range(_rounds(instance)):
        if trade(problem, book, owners, space) <= little:
            break
    return list(_blocks(book))


def _rounds(instance: Instance) -> int:
    """How many rounds of trades are affordable: every departure sorts the options again."""
    work = float((instance.patience * instance.options**2).sum())
    return int(min(ROUNDS, WORK / max(1.0, work)))


def _blocks(book: Book) -> list[Block]:
    blocks = []
    for s, first in enumerate(book.head.tolist()):
        k = first
        while k >= 0:
            blocks.append((s, int(book.labeler[k]), int(book.slot[k])))
            k = int(book.next[k])
    return sorted(blocks)
