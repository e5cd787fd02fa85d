"""A partition where it lies, and functions of it that are added up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from venire.labels import LabelTable, Names
from venire.labels.table import Codes

__all__ = ["Part", "add", "compact", "joined", "of_table", "plain"]


class Part:
    """The table of a partition, and the model of it that was asked for last.

    A model takes some time to lay out and is used in every iteration, so it stays here; it is not
    sent along when the partition is.
    """

    def __init__(self, table: LabelTable) -> None:
        self.table = table
        self._model: Any = None

    def model(self, kind: type[Any]) -> Any:
        """The model of this kind. Workers have several partitions, and each of them one thread."""
        if type(self._model) is not kind:
            self._model = kind(self.table, threads=1)
        return self._model

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (self.table,)

    def __sizeof__(self) -> int:
        """With the arrays, so that Dask does not take it for small and moves it about."""
        table = self.table
        arrays = table.start.nbytes + 2 * (table.labeler.nbytes + table.said.nbytes)
        named = table.items
        names = named.nbytes if isinstance(named, np.ndarray) else 64 * len(named)
        return arrays + (sys.getsizeof(named) if isinstance(named, range) else names)


def of_table(part: Part, function: Callable[..., Any], *arguments: Any) -> Any:
    """A function of the table of a partition."""
    return function(part.table, *arguments)


def add(found: Sequence[Any]) -> Any:
    """The sum of arrays, or of tuples of arrays, in their order.

    >>> add([(1, np.array([1.0, 2.0])), (2, np.array([3.0, 4.0]))])
    (3, array([4., 6.]))
    """
    if isinstance(found[0], tuple):
        return tuple(add(column) for column in zip(*found, strict=True))
    total = found[0]
    for more in found[1:]:
        total = total + more
    return total


def compact(names: Names) -> Names:
    """Names as an array: a tuple of text takes four times the memory.

    >>> compact(("a", "b"))
    array(['a', 'b'], dtype=StringDType())
    >>> compact(range(3))
    range(0, 3)
    """
    if isinstance(names, range | np.ndarray):
        return names
    kinds = {type(name) for name in names}
    if kinds == {str}:
        return np.array(names, dtype=np.dtypes.StringDType())
    return np.array(names) if kinds == {int} else names


def plain(names: Names) -> list[Any]:
    """Names as Python has them."""
    return names.tolist() if isinstance(names, np.ndarray) else list(names)


def joined(tables: Sequence[LabelTable]) -> LabelTable:
    """The tables below each other; they have the same labelers and classes.

    >>> joined([LabelTable.from_matrix([[0, 1]]), LabelTable.from_matrix([[1, 1]])]).start.tolist()
    [0, 2, 4]
    """
    items = tuple(name for table in tables for name in plain(table.items))
    ends = np.cumsum([0, *(len(table.said) for table in tables)])
    starts = [table.start[:-1] + end for table, end in zip(tables, ends[:-1], strict=True)]
    start = np.concatenate([*starts, ends[-1:]]).astype(np.int64)
    labeler: Codes = np.concatenate([table.labeler for table in tables])
    said: Codes = np.concatenate([table.said for table in tables])
    return LabelTable(items, tables[0].labelers, tables[0].classes, start, labeler, said)
