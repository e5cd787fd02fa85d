"""What posteriors imply about the labelers: confusion matrices by soft counts."""

from __future__ import annotations

from typing import Final

import numpy as np

from venire.estimators.base import Floats
from venire.estimators.passes.vote_counts import count_labels
from venire.labels import LabelTable
from venire.labels.partitions import Spread, Table, total

__all__ = ["PANEL_LABELS", "implied_confusions", "implied_skills", "soft_counts"]

#: Pseudo-labels of the whole panel in each row, so that one label makes nobody infallible.
PANEL_LABELS: Final = 2.0


def implied_confusions(
    table: Table, posteriors: Floats | Spread, pseudo: float = PANEL_LABELS
) -> Floats:
    r"""The confusion matrices that posteriors imply, labelers x K (truth) x K (said).

        P_mkl  ~  pseudo * C_kl + sum of q_sk over the items s of which m said l

    where row k of C is how the whole panel labels items of class k.

    >>> table = LabelTable.from_matrix([[0, 0], [1, 0], [1, 1], [1, -1]])
    >>> q = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    >>> implied_confusions(table, q).round(2).tolist()
    [[[0.98, 0.02], [0.08, 0.92]], [[0.98, 0.02], [0.35, 0.65]]]
    """
    counts: Floats = total(table, soft_counts, posteriors)
    panel = counts.sum(axis=0) + 0.1 + np.eye(len(table.classes)) * 0.5
    counts = counts + pseudo * panel / panel.sum(axis=1, keepdims=True)
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


def soft_counts(table: LabelTable, posteriors: Floats) -> Floats:
    """Labels weighted by the posteriors, labelers x K (truth) x K (said).

    >>> soft_counts(LabelTable.from_matrix([[0, 1]]), np.array([[0.9, 0.1]])).tolist()
    [[[0.9, 0.0], [0.1, 0.0]], [[0.0, 0.9], [0.0, 0.1]]]
    """
    K = posteriors.shape[1]
    counts = np.empty((len(table.labelers), K, K))
    count_labels(table.start, table.labeler, table.said, posteriors, counts)
    return counts


def implied_skills(confusions: Floats, priors: Floats) -> Floats:
    """The chance that a labeler is right about an item, sum_k pi_k P_mkk.

    >>> implied_skills(np.array([[[0.9, 0.1], [0.5, 0.5]]]), np.array([0.5, 0.5])).tolist()
    [0.7]
    """
    return np.asarray(np.einsum("mkk,k->m", confusions, priors))
