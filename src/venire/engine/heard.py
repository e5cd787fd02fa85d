"""Labels that were heard since competences were learned last, in arrays: 16 bytes a label.

As tuples in a list they take 130, and a period of learning may hold a million of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

__all__ = ["Heard"]


class Heard:
    """For each label the number of its item, its labeler and its class.

    >>> heard = Heard([(7, 0, 1)])
    >>> heard.extend([(8, 2, 0)])
    >>> list(heard), heard.labelers.tolist()
    ([(7, 0, 1), (8, 2, 0)], [0, 2])
    """

    def __init__(self, labels: Iterable[Iterable[int]] = ()) -> None:
        self._items, self._labelers, self._said = array("q"), array("i"), array("i")
        self.extend(labels)

    def extend(self, labels: Iterable[Iterable[int]]) -> None:
        """More labels came."""
        for item, labeler, said in labels:
            self._items.append(item)
            self._labelers.append(labeler)
            self._said.append(said)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self._items, self._labelers, self._said, strict=True)

    @property
    def labelers(self) -> NDArray[np.int64]:
        """Who gave each label."""
        return np.array(self._labelers, np.int64)

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Items, labelers and classes."""
        return np.array(self._items, np.int64), self.labelers, np.array(self._said, np.int64)

    def copy(self) -> Heard:
        """An independent copy."""
        other = Heard()
        other._items, other._labelers = copy(self._items), copy(self._labelers)
        other._said = copy(self._said)
        return other
