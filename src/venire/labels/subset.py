"""Parts of a table: some of its labels, or those of some of its items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.labels.table import LabelTable

__all__ = [
    "drop_empty",
    "has_several",
    "keep_items",
    "keep_labelers",
    "keep_labels",
    "several_labels",
    "slice_items",
]


def keep_labels(table: LabelTable, keep: NDArray[np.bool_]) -> LabelTable:
    """The table with some of its labels; items and labelers stay the same.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> keep_labels(table, np.array([True, False, True, True])).start.tolist()
    [0, 1, 3]
    """
    if keep.all():
        return table
    start = np.concatenate([[0], np.cumsum(keep)])[table.start]
    names = table.items, table.labelers, table.classes
    return LabelTable(*names, start, table.labeler[keep], table.said[keep])


def keep_items(table: LabelTable, keep: NDArray[np.bool_]) -> LabelTable:
    """The same table, with no labels for the items that are not kept.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> keep_items(table, np.array([False, True])).start.tolist()
    [0, 0, 2]
    """
    return keep_labels(table, np.repeat(keep, np.diff(table.start)))


def keep_labelers(table: LabelTable, keep: NDArray[np.bool_]) -> LabelTable:
    """The same table, with no labels by the labelers who are not kept.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> keep_labelers(table, np.array([False, True])).labeler.tolist()
    [1, 1]
    """
    return table if keep.all() else keep_labels(table, keep[table.labeler])


def has_several(table: LabelTable, known: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Whether each item has at least two labels, or a known class (-1: not known).

    >>> has_several(LabelTable.from_matrix([[0, 1], [1, -1]])).tolist()
    [True, False]
    """
    several = np.diff(table.start) >= 2
    return several if known is None else several | (known >= 0)


def several_labels(table: LabelTable, known: NDArray[np.int64] | None = None) -> LabelTable:
    """The same table, with no labels for the other items.

    >>> several_labels(LabelTable.from_matrix([[0, 1], [1, -1]])).start.tolist()
    [0, 2, 2]
    """
    return keep_items(table, has_several(table, known))


def drop_empty(table: LabelTable) -> LabelTable:
    """The items that have labels.

    >>> drop_empty(LabelTable.from_matrix([[0, 1], [-1, -1], [1, -1]])).items
    (0, 2)
    """
    places = np.flatnonzero(np.diff(table.start))
    if places.size == len(table.items):
        return table
    named = table.items
    picked = (named[i] for i in places.tolist())
    names = named[places] if isinstance(named, np.ndarray) else tuple(picked)
    start = np.append(table.start[places], table.start[-1])
    return LabelTable(names, table.labelers, table.classes, start, table.labeler, table.said)


def slice_items(table: LabelTable, first: int, last: int) -> LabelTable:
    """The items `first` to `last` - 1 with their labels, named by their numbers; nothing is copied.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1], [-1, 0]])
    >>> slice_items(table, 1, 3).start.tolist()
    [0, 2, 3]
    """
    start = table.start[first : last + 1]
    labels = slice(int(start[0]), int(start[-1]))
    names = range(first, last), table.labelers, table.classes
    return LabelTable(*names, start - start[0], table.labeler[labels], table.said[labels])
