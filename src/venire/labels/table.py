"""A table of labels as sparse arrays: who said what of which item.

The table holds one entry per label and never an items x labelers matrix. Entries are sorted by
item, then by labeler, so that the order of the rows given is irrelevant.

Parts of a table: some of its labels, or those of some of its items.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError, UnknownName

Names = Sequence[Any] | NDArray[Any]
Codes = NDArray[np.integer[Any]]
Repeats = Literal["error", "first", "last"]

#: Classes that the representation names.
_SHOWN: Final = 6

#: The number of labels from which a compiled sort pays.
_MANY: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelTable:
    """Labels by item: entries `start[i]:start[i + 1]` are those of item i.

    Names may be any sequence: a tuple, an array, or a range, which takes no memory. Codes are as
    narrow as the numbers of labelers and classes allow.

    >>> table = LabelTable.from_rows([("a", "ann", "yes"), ("b", "ann", "no"), ("a", "bob", "no")])
    >>> table.items, table.labelers, table.classes
    (('a', 'b'), ('ann', 'bob'), ('no', 'yes'))
    >>> table.start.tolist(), table.labeler.tolist(), table.said.tolist()
    ([0, 2, 3], [0, 1, 0], [1, 0, 0])
    >>> table
    LabelTable(3 labels of 2 items by 2 labelers, classes 'no', 'yes')
    """

    items: Names
    labelers: Names
    classes: Names
    start: NDArray[np.int64]
    labeler: Codes
    said: Codes

    def __repr__(self) -> str:
        some = [repr(name) for name in self.classes[:_SHOWN]]
        more = [f"and {len(self.classes) - _SHOWN} more"] if len(self.classes) > _SHOWN else []
        return (
            f"LabelTable({self.said.size:,} labels of {len(self.items):,} items by "
            f"{len(self.labelers):,} labelers, classes {', '.join([*some, *more])})"
        )

    @property
    def item(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.items)), np.diff(self.start))

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[Hashable, Hashable, Hashable]],
        classes: Sequence[Hashable] | None = None,
        repeats: Repeats = "error",
    ) -> LabelTable:
        """Build from (item, labeler, said) rows; names keep their order of first appearance.

        Classes not declared are those that occur, sorted. For `repeats` see `from_codes`.
        """
        triples = list(rows)
        if not triples:
            raise InputError("the table holds no labels, expected at least one row")
        items, item = _codes(r[0] for r in triples)
        labelers, labeler = _codes(r[1] for r in triples)
        if classes is None:
            classes = sorted({r[2] for r in triples}, key=sort_key)
        code = {name: i for i, name in enumerate(classes)}
        unknown = next((r for r in triples if r[2] not in code), None)
        if unknown is not None:
            raise InputError(
                f"labeler {unknown[1]!r} said {unknown[2]!r} of item {unknown[0]!r}, "
                f"expected one of the classes {list(classes)}"
            )
        said = np.array([code[r[2]] for r in triples])
        return cls.from_codes(item, labeler, said, items, labelers, tuple(classes), repeats=repeats)

    @classmethod
    def from_matrix(cls, said: ArrayLike, classes: int = 2) -> LabelTable:
        """Build from an items x labelers matrix of class indices, -1 where there is no label.

        >>> LabelTable.from_matrix([[0, 1], [-1, 1]]).start.tolist()
        [0, 2, 3]
        """
        matrix = np.asarray(said)
        item, labeler = np.nonzero(matrix >= 0)
        names = range(matrix.shape[0]), range(matrix.shape[1]), range(classes)
        return cls.from_codes(item, labeler, matrix[item, labeler], *names)

    @classmethod
    def from_codes(
        cls,
        item: ArrayLike,
        labeler: ArrayLike,
        said: ArrayLike,
        items: Names,
        labelers: Names,
        classes: Names,
        *,
        repeats: Repeats = "error",
        fewest: int = 2,
    ) -> LabelTable:
        """Build from integer codes into the three sequences of names.

        Parameters
        ----------
        item, labeler, said : arrays of int
            One entry per label, in any order. Arrays that are already sorted and of the narrowest
            type are not copied.
        items, labelers, classes : sequences of names
            What the codes stand for.
        repeats : "error", "first" or "last"
            What to do with a labeler who labels an item more than once.
        fewest : int
            The minimum number of classes: 1 for a part of a table.
        """
        _check(classes, repeats, fewest)
        arrays = (
            _narrow(item, items, np.uint32, np.int64),
            _narrow(labeler, labelers, np.uint16, np.int32, np.int64),
            _narrow(said, classes, np.uint8, np.int16, np.int32),
        )
        if len({a.size for a in arrays}) > 1:
            sizes = ", ".join(str(a.size) for a in arrays)
            raise InputError(f"got {sizes} items, labelers and classes, expected equal numbers")
        table = cls(items, labelers, classes, *_in_order(len(items), *arrays))
        twice = table._twice()
        return table._once(twice, repeats) if twice.size else table

    def _twice(self) -> NDArray[np.intp]:
        """The entries that are followed by one of the same item and labeler."""
        same = self.labeler[1:] == self.labeler[:-1]
        starts = self.start[1:-1]
        same[starts[(starts > 0) & (starts <= same.size)] - 1] = False
        return np.flatnonzero(same)

    def _once(self, twice: NDArray[np.intp], repeats: Repeats) -> LabelTable:
        """The same table with one entry for each item and labeler."""
        item = int(np.searchsorted(self.start, twice[0], side="right")) - 1
        if repeats == "error":
            raise InputError(
                f"labeler {self.labelers[self.labeler[twice[0]]]!r} labels item "
                f"{self.items[item]!r} more than once, expected one label of each labeler for an "
                'item: remove the repeated rows, or keep one with repeats="first" or "last"'
            )
        drop = twice + (repeats == "first")
        start = self.start - np.searchsorted(drop, self.start)
        labeler, said = np.delete(self.labeler, drop), np.delete(self.said, drop)
        return replace(self, start=start, labeler=labeler, said=said)


def _check(classes: Names, repeats: str, fewest: int) -> None:
    if len(classes) < fewest:
        many = "two" if fewest == 2 else str(fewest)
        raise InputError(f"got the classes {list(classes)}, expected at least {many}")
    if repeats not in get_args(Repeats):
        raise UnknownName("value of repeats", repeats, get_args(Repeats))


def _narrow(codes: ArrayLike, names: Names, *kinds: type[np.integer[Any]]) -> Codes:
    """The codes in the first of these integer types that can represent them."""
    given = np.asarray(codes)
    if given.size and not 0 <= given.min() <= given.max() < len(names):
        raise InputError(
            f"got codes from {given.min()} to {given.max()}, expected 0 to {len(names) - 1}"
        )
    narrow = next(kind for kind in kinds if len(names) - 1 <= np.iinfo(kind).max)
    return given.astype(narrow, copy=False)


def _in_order(
    items: int, item: Codes, labeler: Codes, said: Codes
) -> tuple[NDArray[np.int64], Codes, Codes]:
    """Where each item starts, and the labels by item, then labeler, then in the order given."""
    if item.size >= _MANY:
        from venire.labels.sorting import is_sorted, offsets, sort_labels

        start = offsets(item, items)
        if is_sorted(item, labeler):
            return start, labeler, said
        return start, *sort_labels(item, labeler, said, start)
    start = np.zeros(items + 1, dtype=np.int64)
    np.cumsum(np.bincount(item, minlength=items), out=start[1:])
    order = np.lexsort((labeler, item))
    return start, labeler[order], said[order]


def _codes(names: Iterable[Hashable]) -> tuple[tuple[Hashable, ...], NDArray[np.int64]]:
    seen: dict[Hashable, int] = {}
    codes = np.array([seen.setdefault(n, len(seen)) for n in names], dtype=np.int64)
    return tuple(seen), codes


def sort_key(name: Any) -> tuple[bool, Any]:
    """Numbers by size first, then everything else by its text.

    >>> sorted(["b", 10, 9, "a"], key=sort_key)
    [9, 10, 'a', 'b']
    """
    return (False, name) if isinstance(name, int | float) else (True, str(name))


def keep_labels(table: LabelTable, keep: NDArray[np.bool_]) -> LabelTable:
    """The table with some of its labels; items and labelers stay the same.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> keep_labels(table, np.array([True, False, True, True])).start.tolist()
    [0, 1, 3]
    """
    if keep.all():
        return table
    start = np.concatenate([[0], np.cumsum(keep)])[table.start]
    return replace(table, start=start, labeler=table.labeler[keep], said=table.said[keep])


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
    return replace(table, items=names, start=np.append(table.start[places], table.start[-1]))


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
