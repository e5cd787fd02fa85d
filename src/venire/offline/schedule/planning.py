"""A schedule guided by prices: a lower bound on what can be earned with knowledge of the future.

Items go in order of arrival; each takes the set that is best for it at the prices, from the blocks
that are left. This is repeated with a decreasing share of the prices, in the end none: an item
returns its blocks, and takes the best of what is left, or the same again. Without prices no such
step earns less. Finally items trade (`offline/schedule/trading.py`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.offline.bound.one_item import Workspace, best_set, workspace_for
from venire.offline.instance import Block, Instance, Problem
from venire.offline.schedule.book import Book, replace
from venire.offline.schedule.trading import owners_for, trade
from venire.tools.compiling import inlined, kernel

__all__ = ["plan"]

Floats = NDArray[np.float64]

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
    """Make the blocks of an item available."""
    k = book.head[item]
    while k >= 0:
        t, m = book.slot[k], book.labeler[k]
        book.left[t, m] += 1
        book.toll[t, m] = share * price[t, m] + problem.money[m]
        k = book.next[k]


@inlined
def close_blocks(book: Book, item: int) -> None:
    """Make the blocks of an item unavailable again."""
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
