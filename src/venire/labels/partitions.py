"""Labels in partitions that hold whole items: what estimators ask of a table adds up over them.

An estimator is written once, in two words:

    each(table, function, ...)    something for every item: posteriors, known classes
    total(table, function, ...)   arrays of the labelers and classes, added up over the items

`function` is called with a `LabelTable` and the other arguments. For a `LabelTable` that is all.
For `Partitions` it is called for each of them, where it lies; what `each` returns then stays
there, as a `Spread`, and is handed to `function` part by part when it is an argument later.
`venire.cluster` has the partitions of a Dask cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from numpy.typing import NDArray

from venire.labels.table import LabelTable, Names

__all__ = [
    "Partitions",
    "Spread",
    "Table",
    "each",
    "gathered",
    "kept",
    "pieces",
    "sizes",
    "total",
    "whole_table",
]


class Spread(ABC):
    """Arrays with a row for each item, one for each partition, that stay where they are."""

    @abstractmethod
    def gather(self) -> NDArray[Any]:
        """All of them as one array, in the order of the partitions."""


class Partitions(ABC):
    """Tables of labels with the same labelers and classes; all labels of an item are in one."""

    labelers: Names
    classes: Names

    @abstractmethod
    def each(self, function: Callable[..., Any], *arguments: Any) -> Spread:
        """What `function(table, *arguments)` returns for each partition."""

    @abstractmethod
    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum over the partitions of an array, or of a tuple of arrays."""

    @abstractmethod
    def kept(self, function: Callable[..., LabelTable], *arguments: Any) -> Partitions:
        """Partitions with the tables that `function` makes of these: the same items in each."""

    @abstractmethod
    def gathered(self, function: Callable[..., LabelTable], *arguments: Any) -> LabelTable:
        """One table of what `function(table, first, *arguments)` keeps of each partition."""

    @abstractmethod
    def pieces(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What `function(table, *arguments)` returns, brought here one after the other."""

    @abstractmethod
    def model(self, kind: type[Any]) -> Any:
        """A model, such as `FullModel`, over all partitions."""


#: A table of labels, in one piece or in partitions.
Table: TypeAlias = LabelTable | Partitions


def each(table: Table, function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function` returns for the items of the table: an array, or a `Spread`.

    >>> each(LabelTable.from_matrix([[0, 1], [1, -1]]), lambda table: table.start.tolist())
    [0, 2, 3]
    """
    if isinstance(table, Partitions):
        return table.each(function, *arguments)
    return function(table, *arguments)


def total(table: Table, function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function` counts, over all items: an array, or a tuple of arrays.

    >>> total(LabelTable.from_matrix([[0, 1], [1, -1]]), lambda table: len(table.said))
    3
    """
    if isinstance(table, Partitions):
        return table.total(function, *arguments)
    return function(table, *arguments)


def kept(table: Table, function: Callable[..., LabelTable], *arguments: Any) -> Any:
    """The table that `function` makes, with the same items: some of the labels, for example.

    >>> table = LabelTable.from_matrix([[0, 1], [1, -1]])
    >>> kept(table, lambda table: table) is table
    True
    """
    if isinstance(table, Partitions):
        return table.kept(function, *arguments)
    return function(table, *arguments)


def gathered(table: Table, function: Callable[..., LabelTable], *arguments: Any) -> LabelTable:
    """A table in one piece, small enough for this process: a sample.

    `function` gets the number of the first item of its partition as second argument.

    >>> table = LabelTable.from_matrix([[0, 1], [1, -1]])
    >>> gathered(table, lambda table, first: table) is table
    True
    """
    if isinstance(table, Partitions):
        return table.gathered(function, *arguments)
    return function(table, 0, *arguments)


def pieces(table: Table, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    """What `function` returns, brought here: for the table, or for one partition after the other.

    >>> list(pieces(LabelTable.from_matrix([[0, 1], [1, -1]]), lambda table: table.said.tolist()))
    [[0, 1, 1]]
    """
    if isinstance(table, Partitions):
        yield from table.pieces(function, *arguments)
    else:
        yield function(table, *arguments)


def whole_table(table: LabelTable, first: int = 0) -> LabelTable:
    """The table itself: what to gather of each partition for all labels.

    >>> gathered(LabelTable.from_matrix([[0, 1]]), whole_table).said.tolist()
    [0, 1]
    """
    return table


def sizes(table: Table) -> tuple[int, int]:
    """How many items and labels there are.

    >>> sizes(LabelTable.from_matrix([[0, 1], [1, -1]]))
    (2, 3)
    """
    items, labels = total(table, _sizes)
    return int(items), int(labels)


def _sizes(table: LabelTable) -> tuple[int, int]:
    return len(table.items), len(table.said)
