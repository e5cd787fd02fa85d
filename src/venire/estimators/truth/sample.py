"""The gold items: their truth, what labelers said of them, and what each aggregate says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable
from venire.labels.partitions import Table, pieces, total
from venire.tools.arrays import Floats, Ints

#: With more gold items than this, only this number, evenly spread, is learned from: by then every
#: weight is known, and a stream that learns anew all the time must not slow down.
MOST_GOLD: Final = 1000

#: A posterior below this is as good as 0: one that is wrong must not be beyond repair.
LEAST: Final = 1e-4


class Sample(NamedTuple):
    """Gold items with labels, in the order of the table.

    `scores` are the centred log-posteriors of each aggregate, aggregates x items x K, scaled so
    that they have the size 1 over all items of the table; `scales` are what they were divided by.
    `item`, `labeler` and `said` are the labels of these items; `item` counts from 0 here. `asked`
    are items that were chosen for what they tell, and are not a random sample.
    """

    truth: Ints
    scores: Floats
    scales: Floats
    item: Ints
    labeler: Ints
    said: Ints
    asked: NDArray[np.bool_]

    @property
    def hits(self) -> NDArray[np.bool_]:
        """Which of the labels are right."""
        return np.asarray(self.said == self.truth[self.item])


def centred(posteriors: Floats) -> Floats:
    """Log-posteriors less their mean over the classes.

    >>> centred(np.array([[0.5, 0.5], [0.9, 0.1]])).round(2).tolist()
    [[0.0, 0.0], [1.1, -1.1]]
    """
    logs = np.log(np.maximum(posteriors, LEAST))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def gold_sample(
    table: Table, known: Any, aggregates: list[Any], asked: Collection[Any] = ()
) -> Sample:
    """The gold items that somebody labelled; there may be none.

    `known` has the class of each item, -1 where it is not known.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1], [0, 0]])
    >>> q = np.array([[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]])
    >>> found = gold_sample(table, np.array([0, 1, -1]), [q])
    >>> found.truth.tolist(), found.hits.tolist(), found.scores[0].round(2).tolist()
    ([0, 1], [True, False, True, True], [[0.0, 0.0], [-0.87, 0.87]])
    """
    parts = list(pieces(table, _gold_rows, known, frozenset(asked), *aggregates))
    sizes = np.cumsum([0, *(len(part[0]) for part in parts)])
    truth = np.concatenate([part[0] for part in parts])
    rows = np.concatenate([part[1] for part in parts], axis=1)
    item = np.concatenate([part[2] + first for part, first in zip(parts, sizes, strict=False)])
    labeler, said = (np.concatenate([part[k] for part in parts]) for k in (3, 4))
    squares, items = total(table, _squares, *aggregates)
    scales = np.sqrt(squares / max(float(items), 1.0) / (rows.shape[2] - 1)).clip(1e-6)
    picked = np.concatenate([part[5] for part in parts])
    sample = Sample(truth, rows / scales[:, None, None], scales, item, labeler, said, picked)
    return sample if len(truth) <= MOST_GOLD else _thinned(sample)


def _gold_rows(
    table: LabelTable, known: Ints, asked: frozenset[Any], *aggregates: Floats
) -> tuple[Ints, Floats, Ints, Ints, Ints, NDArray[np.bool_]]:
    used = np.flatnonzero((known >= 0) & (np.diff(table.start) > 0))
    place = np.full(len(table.items), -1)
    place[used] = np.arange(len(used))
    item = place[table.item]
    there = item >= 0
    rows = np.array([centred(q[used]) for q in aggregates])
    own, who, said = (a[there].astype(np.int64) for a in (item, table.labeler, table.said))
    picked = np.array([table.items[i] in asked for i in used.tolist()], np.bool_)
    return known[used], rows, own, who, said, picked


def _squares(table: LabelTable, *aggregates: Floats) -> tuple[Floats, int]:
    """The sum of the squares of the scores of each aggregate, and items with labels."""
    there = np.diff(table.start) > 0
    return np.array([(centred(q[there]) ** 2).sum() for q in aggregates]), int(there.sum())


def _thinned(sample: Sample) -> Sample:
    keep = np.linspace(0, len(sample.truth) - 1, MOST_GOLD).astype(np.int64)
    place = np.full(len(sample.truth), -1)
    place[keep] = np.arange(len(keep))
    item = place[sample.item]
    there = item >= 0
    own, who, said = (a[there] for a in (item, sample.labeler, sample.said))
    scores, asked = sample.scores[:, keep], sample.asked[keep]
    return Sample(sample.truth[keep], scores, sample.scales, own, who, said, asked)
