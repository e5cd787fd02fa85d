"""A table of labels in partitions, on a cluster or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.cluster.part import Part, add, joined, of_table
from venire.cluster.placing import Place
from venire.labels import LabelTable, Names
from venire.labels.partitions import Partitions, Spread, whole_table
from venire.labels.table import Codes

__all__ = ["PartitionedTable", "Rows"]

#: How many sums a step of the tree adds up.
FAN: Final = 8


class Rows(Spread):
    """Arrays of the items of each partition, behind handles."""

    def __init__(self, place: Place, handles: Sequence[Any]) -> None:
        self._place, self.handles = place, list(handles)

    def gather(self) -> NDArray[Any]:
        """All of them as one array."""
        return np.concatenate(self._place.results(self.handles))


class PartitionedTable(Partitions):
    """Labels in partitions that hold whole items; `partitioned` loads one.

    Every estimator that learns from sums takes it in the place of a `LabelTable`; its results are
    those of one process up to rounding, and the same to the bit on any number of workers. `items`,
    `start`, `labeler` and `said` are those of `gather()`: reading one of them brings all labels
    into this process.

    Attributes
    ----------
    rows : int
        How many items there are.
    sources : tuple of str
        What each partition was read from.
    """

    def __init__(
        self,
        place: Place,
        parts: Sequence[Any],
        counts: Sequence[int],
        names: tuple[Names, Names],
        sources: Sequence[str],
    ) -> None:
        self._place, self._parts, self._counts = place, list(parts), list(counts)
        self.labelers, self.classes = names
        self.rows, self.sources = sum(counts), tuple(sources)

    def each(self, function: Callable[..., Any], *arguments: Any) -> Rows:
        """What a function of each table returns; it stays where it is."""
        return self.spread(of_table, function, *arguments)

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum over the tables of an array, or of a tuple of arrays."""
        return self.sum(of_table, function, *arguments)

    def kept(self, function: Callable[..., LabelTable], *arguments: Any) -> PartitionedTable:
        """The partitions that a function makes of these."""
        parts = self._map(_kept, function, *arguments)
        names = self.labelers, self.classes
        return PartitionedTable(self._place, parts, self._counts, names, self.sources)

    def gathered(self, function: Callable[..., LabelTable], *arguments: Any) -> LabelTable:
        """One table of what a function keeps of each partition."""
        first = Rows(self._place, np.cumsum([0, *self._counts[:-1]]).tolist())
        return joined(self._place.results(self._map(of_table, function, first, *arguments)))

    def model(self, kind: type[Any]) -> Any:
        """A model over all partitions."""
        from venire.cluster.model import SpreadModel

        return SpreadModel(self, kind)

    def spread(self, function: Callable[..., Any], *arguments: Any) -> Rows:
        """What a function of each `Part` returns."""
        return Rows(self._place, self._map(function, *arguments))

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum of what a function of each `Part` returns.

        By a tree of a fixed form: the same to the bit wherever the partitions are.
        """
        level = self._map(function, *arguments)
        while len(level) > 1:
            groups = [level[i : i + FAN] for i in range(0, len(level), FAN)]
            level = [self._place.submit(add, group) for group in groups]
        return self._place.results(level)[0]

    def pieces(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What a function of each table returns, brought here one after the other."""
        for i in range(len(self._parts)):
            one = self._map(of_table, function, *arguments, only=[i])
            yield self._place.results(one)[0]

    def _map(
        self, function: Callable[..., Any], *arguments: Any, only: Sequence[int] | None = None
    ) -> list[Any]:
        """Handles of the results; an argument that is spread is handed over part by part."""
        spread = [n for n, a in enumerate(arguments) if isinstance(a, Rows)]
        fixed = self._place.share(_Fixed(arguments, spread))
        submit, which = self._place.submit, range(len(self._parts)) if only is None else only
        return [
            submit(_call, function, self._parts[i], fixed, *own)
            for i in which
            for own in [[arguments[n].handles[i] for n in spread]]
        ]

    def gather(self) -> LabelTable:
        """All labels as one table, in this process."""
        return self._whole

    @cached_property
    def _whole(self) -> LabelTable:
        return self.gathered(whole_table)

    @property
    def items(self) -> Names:
        """The names of the items, gathered."""
        return self._whole.items

    @property
    def start(self) -> NDArray[np.int64]:
        """Where the labels of each item begin, gathered."""
        return self._whole.start

    @property
    def labeler(self) -> Codes:
        """The labeler of each label, gathered."""
        return self._whole.labeler

    @property
    def said(self) -> Codes:
        """What each label says, gathered."""
        return self._whole.said

    @property
    def item(self) -> NDArray[np.int64]:
        """The item of each label, gathered."""
        return self._whole.item

    def __repr__(self) -> str:
        return (
            f"PartitionedTable({len(self._parts)} partitions, {self.rows:,} items, "
            f"{len(self.labelers):,} labelers, {len(self.classes)} classes)"
        )


class _Fixed:
    """Arguments that are the same for all partitions, opaque to Dask."""

    def __init__(self, arguments: Sequence[Any], spread: Sequence[int]) -> None:
        self._values: list[Any] = [None if n in spread else a for n, a in enumerate(arguments)]
        self._spread = spread

    def __sizeof__(self) -> int:
        """Of arrays and of names, roughly."""
        return sum(
            a.nbytes if isinstance(a, np.ndarray) else 100 * len(a)
            for a in self._values
            if hasattr(a, "__len__")
        )

    def beside(self, own: Sequence[Any]) -> list[Any]:
        """All arguments, with the partition's own in their places."""
        arguments = list(self._values)
        for place, value in zip(self._spread, own, strict=True):
            arguments[place] = value
        return arguments


def _call(function: Callable[..., Any], part: Part, fixed: _Fixed, *own: Any) -> Any:
    return function(part, *fixed.beside(own))


def _kept(part: Part, function: Callable[..., LabelTable], *arguments: Any) -> Part:
    table = function(part.table, *arguments)
    return part if table is part.table else Part(table)
