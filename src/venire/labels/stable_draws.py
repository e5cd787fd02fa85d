"""Draws that depend on names, not on the order of rows."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from venire.labels.table import LabelTable, Names
from venire.tools.splitmix import mix

__all__ = ["item_draws", "label_draws", "name_codes", "name_draws"]

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
