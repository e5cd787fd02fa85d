"""How far the labelers of an item disagree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.labels.table import LabelTable

__all__ = ["vote_counts", "vote_entropies"]


def vote_counts(table: LabelTable) -> NDArray[np.int64]:
    """How many labelers gave each item each class, items x classes.

    >>> vote_counts(LabelTable.from_matrix([[0, 0, 1], [1, 1, -1]])).tolist()
    [[2, 1], [0, 2]]
    """
    n, K = len(table.items), len(table.classes)
    cell = table.item * K + table.said
    return np.bincount(cell, minlength=n * K).reshape(n, K)


def vote_entropies(table: LabelTable) -> NDArray[np.float64]:
    r"""The entropy of the votes on each item, in bits.

        H_s = - sum_k v_sk log2 v_sk,    v_sk the share of the labels of s that say k

    0 where all agree (or there is no label), log2(K) where every class has the same number of
    votes.

    >>> vote_entropies(LabelTable.from_matrix([[0, 0, 0, 1], [0, 1, 1, 0], [1, -1, -1, -1]])).round(
    ...     3
    ... ).tolist()
    [0.811, 1.0, 0.0]
    """
    counts = vote_counts(table)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return np.asarray(np.maximum(-(shares * logs).sum(axis=1), 0.0))
