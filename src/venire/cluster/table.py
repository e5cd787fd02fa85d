"""A table of labels in partitions, on a cluster or in this process.

**Whether all labels of an item are in one partition; and partitions in which they are.**

Items are compared by 64 bits of a hash of their names, in buckets of some millions, so that no
process needs all of them; where two hashes are the same, the names decide.

A partition where it lies, and functions of it that are added up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.dawid_skene import FullModel
from venire.estimators.gold import Soft
from venire.estimators.one_coin import CoinModel, Hits
from venire.labels import LabelTable, Names, Repeats
from venire.labels.partitions import Partitions, Spread, whole_table
from venire.labels.table import Codes
from venire.tools.arrays import Floats, Ints

if TYPE_CHECKING:
    from venire.cluster.partitions import Place, Progress


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


Hashes = NDArray[np.uint64]

#: About as many items are compared at a time.
BUCKET: Final = 1 << 22


def divided_item(
    place: Place, parts: Sequence[Any], items: int, progress: Progress | None = None
) -> tuple[Any, int, int] | None:
    """An item that lies in two partitions, and which; None if there is none.

    >>> from venire.cluster.partitions import Here
    >>> one, two = (LabelTable.from_rows([(i, "ann", 0), (9, "ann", 1)]) for i in (1, 2))
    >>> divided_item(Here(), [Part(one), Part(two)], 4)
    (9, 0, 1)
    """
    hashes = [place.submit(_hashes, part) for part in parts]
    place.finish(hashes, progress)
    buckets = 1 + items // BUCKET
    twice = [
        place.submit(_twice, [place.submit(_bucket, some, b, buckets) for some in hashes])
        for b in range(buckets)
    ]
    for found in place.results(twice):
        for code, first, second in found:
            asked = [place.submit(_named, parts[i], code) for i in (first, second)]
            one, other = place.results(asked)
            both = sorted(set(one) & set(other), key=str)
            if both:
                return both[0], first, second
    return None


def shuffled(
    place: Place, parts: Sequence[Any], repeats: Repeats, progress: Progress | None = None
) -> list[Any]:
    """As many partitions, in which every item is whole: by the hashes of the names.

    Of two labels of a labeler for an item, the one of the earlier partition is the first.
    """
    n = len(parts)
    split = [place.submit(_split, part, n) for part in parts]
    place.finish(split, progress)
    made = [
        place.submit(_merged, [place.submit(_take, pieces, j) for pieces in split], repeats)
        for j in range(n)
    ]
    place.finish(made, progress)
    return made


def _hashes(part: Part) -> Hashes:
    names = plain(part.table.items)
    codes = (blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(codes), np.uint64)


def _bucket(hashes: Hashes, bucket: int, buckets: int) -> Hashes:
    return hashes[hashes % np.uint64(buckets) == bucket] if buckets > 1 else hashes


def _twice(found: list[Hashes]) -> list[tuple[int, int, int]]:
    """Hashes in two partitions, and which; a few of them."""
    codes = np.concatenate(found)
    part = np.repeat(np.arange(len(found)), [len(some) for some in found])
    order = np.argsort(codes, kind="stable")
    codes, part = codes[order], part[order]
    same = np.flatnonzero((codes[1:] == codes[:-1]) & (part[1:] != part[:-1]))[:100]
    return [(int(codes[i]), int(part[i]), int(part[i + 1])) for i in same]


def _named(part: Part, code: int) -> list[Any]:
    places = np.flatnonzero(_hashes(part) == np.uint64(code)).tolist()
    names = plain(part.table.items)
    return [names[i] for i in places]


def _split(part: Part, parts: int) -> list[LabelTable]:
    """The items of each new partition."""
    table, to = part.table, _hashes(part) % np.uint64(parts)
    names, sizes = np.array(plain(table.items), object), np.diff(table.start)
    of_label = np.repeat(to, sizes)
    pieces = []
    for j in range(parts):
        start = np.concatenate([[0], np.cumsum(sizes[to == j])]).astype(np.int64)
        labels = table.labeler[of_label == j], table.said[of_label == j]
        items = compact(tuple(names[to == j]))
        pieces.append(LabelTable(items, table.labelers, table.classes, start, *labels))
    return pieces


def _take(pieces: list[LabelTable], j: int) -> LabelTable:
    return pieces[j]


def _merged(pieces: list[LabelTable], repeats: Repeats) -> Part:
    places: dict[Any, int] = {}
    codes = [
        np.array([places.setdefault(name, len(places)) for name in plain(piece.items)], np.int64)
        for piece in pieces
    ]
    item = np.concatenate([own[piece.item] for own, piece in zip(codes, pieces, strict=True)])
    labeler, said = (
        np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("labeler", "said")
    )
    names = compact(tuple(places)), pieces[0].labelers, pieces[0].classes
    return Part(LabelTable.from_codes(item, labeler, said, *names, repeats=repeats, fewest=1))


#: How many sums a step of the tree adds up.
FAN: Final = 8


class Rows(Spread):
    """Arrays of the items of each partition, behind handles."""

    def __init__(self, place: Place, handles: Sequence[Any]) -> None:
        self._place, self.handles = place, list(handles)

    def gather(self) -> NDArray[Any]:
        return np.concatenate(self._place.results(self.handles))


def _gathered(name: str) -> Any:
    return property(lambda table: getattr(table.gather(), name))


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
        return self.spread(of_table, function, *arguments)

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.sum(of_table, function, *arguments)

    def kept(self, function: Callable[..., LabelTable], *arguments: Any) -> PartitionedTable:
        parts = self._map(_kept, function, *arguments)
        names = self.labelers, self.classes
        return PartitionedTable(self._place, parts, self._counts, names, self.sources)

    def gathered(self, function: Callable[..., LabelTable], *arguments: Any) -> LabelTable:
        first = Rows(self._place, np.cumsum([0, *self._counts[:-1]]).tolist())
        return joined(self._place.results(self._map(of_table, function, first, *arguments)))

    def model(self, kind: type[Any]) -> Any:
        return SpreadModel(self, kind)

    def spread(self, function: Callable[..., Any], *arguments: Any) -> Rows:
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
        return self._whole

    @cached_property
    def _whole(self) -> LabelTable:
        return self.gathered(whole_table)

    items: Names = _gathered("items")
    start: Ints = _gathered("start")
    labeler: Codes = _gathered("labeler")
    said: Codes = _gathered("said")
    item: Ints = _gathered("item")

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


#: The counts that a model returns.
COUNTS: dict[type[Any], Any] = {FullModel: Soft, CoinModel: Hits}


class SpreadModel:
    """Sums of the models of the partitions; attributes and methods are theirs."""

    def __init__(self, table: PartitionedTable, kind: type[Any]) -> None:
        self._table, self._kind, self._counts = table, kind, COUNTS[kind]
        self.labelers, self.classes = len(table.labelers), len(table.classes)
        self.rows = table.rows
        items, self.given = table.sum(_given, kind)
        self.items = float(items)

    def shares(self) -> Any:
        return self._counts(*self._table.sum(_asked, self._kind, "shares"))

    def weigh(self, posteriors: Any) -> Any:
        """Counts with given posteriors, which lie where the items are."""
        if not isinstance(posteriors, Spread):
            raise InputError(
                "labels in partitions cannot start from posteriors: start from confusions, or "
                "from the vote"
            )
        return self._counts(*self._table.sum(_asked, self._kind, "weigh", posteriors))

    def expect(self, *parameters: Floats) -> tuple[float, Any]:
        height, counts = self._table.sum(_asked, self._kind, "expect", *parameters)
        return float(height), self._counts(*counts)

    def conclude(self, *parameters: Floats) -> tuple[float, Any, Spread]:
        return *self.expect(*parameters), self._table.spread(_posteriors, self._kind, *parameters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def _given(part: Part, kind: type[Any]) -> tuple[float, Floats]:
    model = part.model(kind)
    return model.items, model.given


def _asked(part: Part, kind: type[Any], method: str, *arguments: Any) -> Any:
    return getattr(part.model(kind), method)(*arguments)


def _posteriors(part: Part, kind: type[Any], *parameters: Floats) -> Floats:
    posteriors: Floats = part.model(kind).conclude(*parameters)[2]
    return posteriors
