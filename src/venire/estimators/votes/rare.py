r"""A rare class near the vote: how rare it is, and what its labels look like.

Where one item in fifty is toxic and labelers are right nine times in ten, most labels that say
"toxic" are errors. The vote counts an ok item with one such label of three as a third toxic, so a
learner that stays near the vote makes the rare class too frequent and fills its rows of the
confusion matrices with what labelers say of the other class. How often two labels of an item agree
does not depend on how frequent the classes are: if all labelers were right with probability p on
every class, and wrong in all ways alike,

    A   = p^2 + (1 - p)^2 / (K - 1)           the share of pairs of labels that agree
    f_k = s_k p + (1 - s_k) (1 - p) / (K - 1)  the share of labels that say k

and both together say how frequent each class is. Real labelers are not like that, so `Anchored`
takes this only as another place to start from.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from venire.estimators.base import Floats
from venire.labels import LabelTable
from venire.labels.entropy import vote_counts
from venire.labels.partitions import Spread, Table, total
from venire.paper.accuracy import one_coin

__all__ = ["agreed_shares", "clearly_rarer", "purity", "unmixed"]

#: A class is clearly rarer if its share is lower by this many standard errors.
CLEAR: Final = 3.0

#: Labels better than chance by less than this say nothing about the class shares.
FAINT: Final = 1e-3


def agreed_shares(table: Table) -> Floats:
    """The class shares that follow from how often labels agree, with one more item of each class.

    An item with n labels counts n - 1 times, so one with a single label does not count.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((3000, 1)) < 0.05
    >>> said = np.where(rng.random((3000, 3)) < 0.9, truth, ~truth).astype(int)
    >>> said.mean().round(2), agreed_shares(LabelTable.from_matrix(said)).round(2).tolist()
    (np.float64(0.14), [0.95, 0.05])
    """
    K = len(table.classes)
    (items, weight, agree), said = total(table, _agreeing)
    weight = max(float(weight), 1.0)
    agree, said = float(agree) / weight, said / weight
    p = (1 + np.sqrt(max((K - 1) * (K * agree - 1), 0.0))) / K
    wrong = (1 - p) / (K - 1)
    shares = np.maximum(said - wrong, 0.0) / max(p - wrong, FAINT) * items + 1.0
    return np.asarray(shares / shares.sum())


def _agreeing(table: LabelTable) -> tuple[Floats, Floats]:
    """Items with several labels, their weight, their agreement; and how often each is said."""
    votes = vote_counts(table).astype(np.float64)
    n = votes.sum(axis=1, keepdims=True)
    several = n[:, 0] >= 2
    votes, n = votes[several], n[several]
    agree = (votes * (votes - 1) / n).sum()
    return np.array([len(n), (n - 1).sum(), agree]), (votes * (n - 1) / n).sum(axis=0)


def clearly_rarer(shares: Floats, than: Floats, items: int) -> bool:
    """Whether some class has a share that is clearly lower, for so many items.

    >>> clearly_rarer(np.array([0.9, 0.1]), np.array([0.8, 0.2]), items=100)
    False
    >>> clearly_rarer(np.array([0.9, 0.1]), np.array([0.8, 0.2]), items=200)
    True
    """
    error = np.sqrt(than * (1 - than) / max(items, 1))
    return bool((than - shares > CLEAR * error).any())


def purity(table: Table, posteriors: Floats | Spread) -> Floats:
    """How pure each class is: the mean posterior of an item of this class, sum q^2 / sum q.

    >>> table = LabelTable.from_matrix([[0], [0], [0]])
    >>> purity(table, np.array([[1.0, 0.0], [0.75, 0.25], [0.75, 0.25]])).round(2).tolist()
    [0.85, 0.25]
    """
    squares, sums = total(table, _powers, posteriors)
    return np.asarray(squares / np.maximum(sums, 1e-9))


def _powers(table: LabelTable, posteriors: Floats) -> tuple[Floats, Floats]:
    return (posteriors**2).sum(axis=0), posteriors.sum(axis=0)


def unmixed(rows: Floats, counts: Floats, pure: Floats) -> Floats:
    """The rows, [labeler, truth, said], of a class drawn to one rate as far as it is mixed.

    `pure` is the `purity` of each class. The rest of its row is what the labeler would say if it
    were right as often as on all classes together, by the soft `counts`.

    >>> rows = np.array([[[0.9, 0.1], [0.6, 0.4]]])
    >>> counts = np.array([[[86.0, 10.0], [1.0, 0.0]]])
    >>> unmixed(rows, counts, np.array([0.85, 0.25])).round(2).tolist()
    [[[0.9, 0.1], [0.24, 0.76]]]
    """
    K = len(pure)
    right, given = np.einsum("mkk->m", counts) + 2.0, counts.sum(axis=(1, 2)) + 3.0
    coins = one_coin(np.clip(right / given, 1 / K, 0.99), K)
    pure = pure[None, :, None]
    return np.asarray(pure * rows + (1 - pure) * coins)
