"""Counts over a table: labels of each labeler, disagreement on each item, draws by name."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from venire.labels.partitions import Table, total
from venire.labels.table import LabelTable, Names
from venire.tools.splitmix import mix

__all__ = [
    "item_draws",
    "label_draws",
    "labels_given",
    "name_codes",
    "name_draws",
    "said_counts",
    "vote_counts",
    "vote_entropies",
]

Codes = NDArray[np.uint64]


def name_codes(names: Names, seed: int = 0) -> Codes:
    """A number for each name, the same in every run and independent of the other names.

    >>> name_codes(["ann", "bob"]).tolist() == name_codes(["bob", "ann"])[::-1].tolist()
    True
    """
    raw = np.fromiter((crc32(str(n).encode()) for n in names), np.uint64, len(names))
    return _mix(raw + np.uint64(seed * 0x9E3779B9 % 2**64))


def label_draws(table: LabelTable, seed: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each label, drawn from the names of its item and its labeler.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> label_draws(table).round(2).tolist()
    [0.47, 0.22, 0.85, 0.75]
    """
    item = np.repeat(name_codes(table.items, seed), np.diff(table.start))
    labeler = name_codes(table.labelers, seed + 1)[table.labeler]
    return np.asarray(_mix(item ^ _mix(labeler)) >> np.uint64(11)) * 2.0**-53


def item_draws(table: LabelTable, seed: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each item, drawn from its name.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> item_draws(table).round(2).tolist()
    [0.41, 0.72]
    """
    return np.asarray(name_codes(table.items, seed) >> np.uint64(11)) * 2.0**-53


def name_draws(rows: Names, columns: Names, seed: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each pair of names, rows x columns.

    >>> name_draws(["post-1", "post-2"], ["spam", "ok"]).round(2).tolist()
    [[0.55, 0.95], [0.39, 0.57]]
    """
    pairs = name_codes(rows, seed)[:, None] ^ _mix(name_codes(columns, seed + 1))[None, :]
    return np.asarray(_mix(pairs) >> np.uint64(11)) * 2.0**-53


def _mix(x: Codes) -> Codes:
    with np.errstate(over="ignore"):
        return np.asarray(mix(x))


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
