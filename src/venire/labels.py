"""A table of labels as sparse arrays: who said what of which item.

The table holds one entry per label and never an items x labelers matrix. Entries are sorted by
item, then by labeler, so that the order of the rows given is irrelevant.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError

__all__ = ["LabelTable"]


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Labels by item: entries `start[i]:start[i + 1]` are those of item i.

    >>> table = LabelTable.from_rows([("a", "ann", "yes"), ("b", "ann", "no"), ("a", "bob", "no")])
    >>> table.items, table.labelers, table.classes
    (('a', 'b'), ('ann', 'bob'), ('no', 'yes'))
    >>> table.start.tolist(), table.labeler.tolist(), table.said.tolist()
    ([0, 2, 3], [0, 1, 0], [1, 0, 0])
    """

    items: tuple[Hashable, ...]
    labelers: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]
    start: NDArray[np.int64]
    labeler: NDArray[np.int32]
    said: NDArray[np.int16]

    @property
    def item(self) -> NDArray[np.int64]:
        """The item of each entry."""
        return np.repeat(np.arange(len(self.items)), np.diff(self.start))

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[Hashable, Hashable, Hashable]],
        classes: Sequence[Hashable] | None = None,
    ) -> LabelTable:
        """Build from (item, labeler, said) rows; names keep their order of first appearance.

        Classes not declared are those that occur, sorted.
        """
        triples = list(rows)
        if not triples:
            raise InputError("the table holds no labels, expected at least one row")
        items, item = _codes(r[0] for r in triples)
        labelers, labeler = _codes(r[1] for r in triples)
        if classes is None:
            classes = sorted({r[2] for r in triples}, key=_sort_key)
        code = {name: i for i, name in enumerate(classes)}
        unknown = next((r for r in triples if r[2] not in code), None)
        if unknown is not None:
            raise InputError(
                f"labeler {unknown[1]!r} said {unknown[2]!r} of item {unknown[0]!r}, "
                f"expected one of the classes {list(classes)}"
            )
        said = np.array([code[r[2]] for r in triples])
        return cls.from_codes(item, labeler, said, items, labelers, tuple(classes))

    @classmethod
    def from_matrix(cls, said: ArrayLike, classes: int = 2) -> LabelTable:
        """Build from an items x labelers matrix of class indices, -1 where there is no label.

        >>> LabelTable.from_matrix([[0, 1], [-1, 1]]).start.tolist()
        [0, 2, 3]
        """
        matrix = np.asarray(said)
        item, labeler = np.nonzero(matrix >= 0)
        names = tuple(range(matrix.shape[0])), tuple(range(matrix.shape[1]))
        return cls.from_codes(item, labeler, matrix[item, labeler], *names, tuple(range(classes)))

    @classmethod
    def from_codes(
        cls,
        item: ArrayLike,
        labeler: ArrayLike,
        said: ArrayLike,
        items: tuple[Hashable, ...],
        labelers: tuple[Hashable, ...],
        classes: tuple[Hashable, ...],
    ) -> LabelTable:
        """Build from integer codes into the three tuples of names."""
        if len(classes) < 2:
            raise InputError(f"got the classes {list(classes)}, expected at least two")
        i, m, s = (np.asarray(a, dtype=np.int64) for a in (item, labeler, said))
        for what, codes, names in (
            ("item", i, items),
            ("labeler", m, labelers),
            ("class", s, classes),
        ):
            if codes.size and not (codes.min() >= 0 and codes.max() < len(names)):
                raise InputError(
                    f"got {what} codes from {codes.min()} to {codes.max()}, "
                    f"expected 0 to {len(names) - 1}: there are {len(names)}"
                )
        order = np.lexsort((m, i))
        i, m, s = i[order], m[order], s[order]
        twice = np.flatnonzero((np.diff(i) == 0) & (np.diff(m) == 0))
        if twice.size:
            k = twice[0]
            raise InputError(
                f"labeler {labelers[m[k]]!r} labels item {items[i[k]]!r} more than once, "
                "expected one label of each labeler for an item: remove the repeated rows"
            )
        start = np.zeros(len(items) + 1, dtype=np.int64)
        np.cumsum(np.bincount(i, minlength=len(items)), out=start[1:])
        return cls(items, labelers, classes, start, m.astype(np.int32), s.astype(np.int16))


def _check_codes(what: str, codes: NDArray[np.int64], names: Sequence[Hashable]) -> None:
    if codes.size and not (codes.min() >= 0 and codes.max() < len(names)):
        raise InputError(
            f"got {what} codes from {codes.min()} to {codes.max()}, expected 0 to "
            f"{len(names) - 1}: there are {len(names)}"
        )


def _codes(names: Iterable[Hashable]) -> tuple[tuple[Hashable, ...], NDArray[np.int64]]:
    seen: dict[Hashable, int] = {}
    codes = np.array([seen.setdefault(n, len(seen)) for n in names], dtype=np.int64)
    return tuple(seen), codes


def _sort_key(name: Any) -> tuple[bool, Any]:
    """Numbers before everything else, then by their text."""
    return (False, name) if isinstance(name, int | float) else (True, str(name))
