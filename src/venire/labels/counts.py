"""How many labels each labeler gave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.labels.partitions import Table, total
from venire.labels.table import LabelTable

__all__ = ["labels_given", "said_counts"]


def said_counts(table: Table) -> NDArray[np.int64]:
    """How often each labeler said each class, labelers x classes.

    >>> said_counts(LabelTable.from_matrix([[0, 1], [1, -1]])).tolist()
    [[1, 1], [0, 1]]
    """
    counts: NDArray[np.int64] = total(table, _counts)
    return counts


def labels_given(table: Table) -> NDArray[np.int64]:
    """How many labels each labeler gave.

    >>> labels_given(LabelTable.from_matrix([[0, 1], [1, -1]])).tolist()
    [2, 1]
    """
    given: NDArray[np.int64] = total(table, _given)
    return given


def _counts(table: LabelTable) -> NDArray[np.int64]:
    M, K = len(table.labelers), len(table.classes)
    codes = table.labeler.astype(np.int64) * K + table.said
    return np.bincount(codes, minlength=M * K).reshape(M, K)


def _given(table: LabelTable) -> NDArray[np.int64]:
    return np.bincount(table.labeler, minlength=len(table.labelers))
