r"""How sure a vote may be: what the overlap of labels has shown about a label.

The vote counts a lone label as certain, and a model that has learned from few items is nearly as
bold. What is known of a label without others beside it is how often labels like it, saying the
same class, agree with another label of their item. `agreements` finds the lower 5 % bound of that
share for each class (Wilson's, one item counting as one trial), and `capped` keeps items with a
single label below it.

The share of the votes is as sure of two labels that agree as of twenty. `prior_votes` says how many
votes, shared out evenly, to add to those of an item.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from venire.estimators.base import Floats
from venire.labels import LabelTable
from venire.labels.entropy import vote_counts
from venire.labels.partitions import Table, total

__all__ = ["agreements", "capped", "prior_votes"]

#: The normal quantile of the lower bound.
_Z: Final = 1.645

#: How far a verdict that is capped stays ahead of the next class.
_AHEAD: Final = 1.01

#: No panel is taken to be right more often than this.
_MOST: Final = 0.99


def agreements(table: Table) -> Floats:
    """The lower bound of how often a label of each class agrees with another label of its item.

    A bound is never below what keeps the verdict: a little above 1 / K.

    >>> said = np.array([[0, 0], [0, 0], [1, 1], [0, 1], [1, 1]] * 40)
    >>> agreements(LabelTable.from_matrix(said)).round(2).tolist()
    [0.73, 0.73]
    """
    K = len(table.classes)
    agree, pairs, items = total(table, _pairs)
    share = np.divide(agree, pairs, out=np.zeros(K), where=pairs > 0)
    n = np.maximum(items, 1e-9)
    middle = share + _Z**2 / (2 * n)
    reach = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    least = np.where(items > 0, (middle - reach) / (1 + _Z**2 / n), 0.0)
    return np.maximum(least, (1 / K + 0.1) / 1.1)


def prior_votes(table: Table) -> float:
    """Even votes that make the share of a single label how often labels are right.

    Labels that are right with probability p, and wrong evenly, agree with probability
    p^2 + (1 - p)^2 / (K - 1); so p follows from how often they do. With a prior votes the share of
    a single label is (1 + a / K) / (1 + a) = p.

    >>> said = np.array([[0, 0], [0, 0], [1, 1], [0, 1], [1, 1]] * 40)  # 80 % agree: p = 0.89
    >>> round(prior_votes(LabelTable.from_matrix(said)), 2)
    0.29
    """
    K = len(table.classes)
    agree, pairs, _ = total(table, _pairs)
    same = float(agree.sum() / max(pairs.sum(), 1e-9))
    p = (1 + np.sqrt(max((K - 1) * (K * same - 1), 0.0))) / K
    p = min(max(float(p), (1 / K + 0.1) / 1.1), _MOST)
    return (1 - p) / (p - 1 / K)


def _pairs(table: LabelTable) -> tuple[Floats, Floats, Floats]:
    """Agreeing pairs, all pairs, and items, by the class that was said; an item counts n - 1."""
    votes = vote_counts(table).astype(np.float64)
    n = votes.sum(axis=1)
    votes, n = votes[n >= 2], n[n >= 2]
    others = (n - 1)[:, None]
    agree = (votes * (votes - 1) / others).sum(axis=0)
    return agree, votes.sum(axis=0), (votes / n[:, None]).sum(axis=0)


def capped(table: LabelTable, posteriors: Floats, least: Floats) -> Floats:
    """Posteriors in which no item with one label is surer of it than `least` of its class.

    No verdict changes: it stays a little ahead of the next class.

    >>> table = LabelTable.from_matrix([[0, -1], [1, 1]])
    >>> capped(table, np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.8, 0.8])).round(2).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    here, best = np.arange(len(posteriors)), posteriors.argmax(axis=1)
    over = (np.diff(table.start) == 1) & (posteriors[here, best] > least[best])
    if not over.any():
        return posteriors
    best, here = best[over], np.arange(int(over.sum()))
    rest = posteriors[over]
    rest[here, best] = 0.0
    left = rest.sum(axis=1, keepdims=True)
    even = np.full_like(rest, 1 / (rest.shape[1] - 1))
    even[here, best] = 0.0
    rest = np.where(left > 1e-12, rest / np.maximum(left, 1e-12), even)
    next_best = rest.max(axis=1)
    limit = np.maximum(least[best], _AHEAD * next_best / (1 + _AHEAD * next_best))
    limit = np.minimum(limit, posteriors[over].max(axis=1))
    rest *= (1 - limit)[:, None]
    rest[here, best] = limit
    out = posteriors.copy()
    out[over] = rest
    return out
