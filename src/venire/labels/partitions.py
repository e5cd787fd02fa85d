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
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from venire.labels.table import LabelTable, Names
from venire.tools.arrays import mix


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
