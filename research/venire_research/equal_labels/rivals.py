"""What venire is compared with: even overlap with random labelers, and Toloka's 2 + 1 rule.

Both buy labels of the same stream: where labelers can be chosen, those of random labelers of the
item, otherwise those of the visitors, in the order in which they come. Neither has a deadline or a
rate: an item takes labels until it has its share.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable
from venire_research.equal_labels.buying import Mode
from venire_research.equal_labels.replay import Ints, Replay

__all__ = ["even_overlap", "shares", "take", "two_plus_one"]

Bools = NDArray[np.bool_]

#: Whether each item wants one more label, given how many it has and whether they differ.
Wants = Callable[[Ints, Bools], Bools]


def even_overlap(replay: Replay, mode: Mode, labels: int, seed: int) -> LabelTable:
    """`labels` labels in total, the same number for each item, from random labelers.

    If the visits do not suffice, visitors without work are asked again for any item that they can
    label, so the total is always reached.

    >>> rows = [(i, w, i % 2) for i in range(40) for w in "abc"]
    >>> stream = Replay.of(LabelTable.from_rows(rows), np.arange(40) % 2, seed=0)
    >>> sorted(set(np.diff(even_overlap(stream, "come", 60, seed=0).start).tolist()))
    [1, 2]
    """
    rng = np.random.default_rng([seed, 1])
    share = shares(np.diff(replay.table.start), labels, rng)
    if mode == "chosen":
        return take(replay.table, _ranks(replay.table, rng) < share[replay.table.item])
    visits = replay.visits(labels / len(replay.table.items))
    taken = _by_visits(replay, visits, rng, lambda have, differ: have < share)
    rest = np.flatnonzero(~taken)
    taken[rng.permutation(rest)[: labels - int(taken.sum())]] = True
    return take(replay.table, taken)


def two_plus_one(replay: Replay, mode: Mode, seed: int) -> LabelTable:
    """Two labels for every item, and a third where they differ.

    >>> table = LabelTable.from_matrix([[0, 1, 1], [1, 1, 1]])
    >>> stream = Replay.of(table, np.array([0, 1]), seed=0)
    >>> np.diff(two_plus_one(stream, "chosen", seed=0).start).tolist()
    [3, 2]
    """
    rng = np.random.default_rng([seed, 2])

    def wants(have: Ints, differ: Bools) -> Bools:
        return np.asarray((have < 2) | ((have == 2) & differ))

    if mode == "come":
        return take(replay.table, _by_visits(replay, replay.visits(2.5), rng, wants))
    rank, (item, said) = _ranks(replay.table, rng), (replay.table.item, replay.table.said)
    differ = _differ(item[rank < 2], said[rank < 2], len(replay.table.items))
    return take(replay.table, (rank < 2) | ((rank == 2) & differ[item]))


def shares(held: Ints, labels: int, rng: np.random.Generator) -> Ints:
    """How many of the total labels each item gets, no item more than it has.

    As equal as possible; which items get one more is drawn.

    >>> shares(np.array([1, 5, 5]), 6, np.random.default_rng(0)).tolist()
    [1, 3, 2]
    """
    level = 0
    while np.minimum(held, level + 1).sum() <= labels and level < held.max():
        level += 1
    share = np.minimum(held, level)
    more = rng.permutation(np.flatnonzero(held > level))[: labels - share.sum()]
    share[more] += 1
    return np.asarray(share)


def _ranks(table: LabelTable, rng: np.random.Generator) -> Ints:
    """The place of each label among those of its item, in a random order."""
    order = np.lexsort((rng.random(len(table.said)), table.item))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - table.start[table.item]
    return rank


def _differ(item: Ints, said: NDArray[np.integer], items: int) -> Bools:
    """Of which items not all labels are the same."""
    least, most = np.full(items, np.iinfo(np.int64).max), np.full(items, -1)
    np.minimum.at(least, item, said)
    np.maximum.at(most, item, said)
    return least < most


def _by_visits(replay: Replay, visits: list[Ints], rng: np.random.Generator, wants: Wants) -> Bools:
    """Which labels are bought if each visitor gets one of the items that need a label.

    A random one of those with the fewest labels that the visitor may label and has not yet.
    """
    table = replay.table
    item, n = table.item, len(table.items)
    taken, have = np.zeros(len(item), np.bool_), np.zeros(n, np.int64)
    first, differ = np.full(n, -1), np.zeros(n, np.bool_)
    wanting = wants(have, differ)
    for slot, visitors in enumerate(visits):
        here = int(np.searchsorted(replay.arrival, slot, "right"))
        for m in visitors.tolist():
            entries = replay.entries(m)
            rows = item[entries]
            able = entries[wanting[rows] & ~taken[entries] & (rows < here)]
            if not len(able):
                continue
            fewest = have[item[able]]
            k = int(rng.choice(able[fewest == fewest.min()]))
            i, said = item[k], int(table.said[k])
            taken[k] = True
            have[i] += 1
            differ[i] |= first[i] not in (-1, said)
            first[i] = said
            wanting[i] = wants(have, differ)[i]
    return taken


def take(table: LabelTable, taken: Bools) -> LabelTable:
    """The labels that were bought, of the same items and labelers."""
    codes = table.item[taken], table.labeler[taken], table.said[taken]
    return LabelTable.from_codes(*codes, table.items, table.labelers, table.classes)
