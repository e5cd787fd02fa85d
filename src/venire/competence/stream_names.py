"""The items of a stream by name: who has which place, and which final verdicts are remembered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

__all__ = ["Finals", "Places"]

Floats = NDArray[np.float64]


class Places:
    """Items and their places; a place that is left is given to another item.

    >>> places = Places()
    >>> places.add(["a", "b"]), places.leave([0]), places.add(["c", "d"])
    ([0, 1], ['a'], [0, 2])
    """

    def __init__(self) -> None:
        self.of: dict[Hashable, int] = {}
        self.names: list[Hashable] = []
        self.free: list[int] = []

    def add(self, names: Iterable[Hashable]) -> list[int]:
        """Give new items a place each."""
        return [self._add(name) for name in names]

    def _add(self, name: Hashable) -> int:
        if self.free:
            place = self.free.pop()
            self.names[place] = name
        else:
            place = len(self.names)
            self.names.append(name)
        self.of[name] = place
        return place

    def find(self, names: list[Hashable]) -> NDArray[np.int64]:
        """The place of each item, -1 for those that have none."""
        get = self.of.get
        return np.array([get(name, -1) for name in names], dtype=np.int64)

    def leave(self, places: list[int]) -> list[Hashable]:
        """Free these places; the names of those who had them."""
        left = [self.names[p] for p in places]
        for name in left:
            del self.of[name]
        self.free += sorted(places, reverse=True)
        return left


class Finals:
    """The latest final posteriors, at most `limit` of them (None: all), in a ring of rows.

    >>> finals = Finals(limit=2)
    >>> finals.add(["a", "b", "c"], np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]))
    >>> list(finals.of), finals.posteriors(["c"], classes=3).tolist()
    (['b', 'c'], [[0.3, 0.7, 0.0]])
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.of: dict[Hashable, int] = {}
        self._rows: Floats = np.zeros((0, 0))
        self._next = 0

    def add(self, names: list[Hashable], posteriors: Floats) -> None:
        """Remember these, and forget the oldest that there is no room for."""
        if self.limit is not None:
            names = names[max(0, len(names) - self.limit) :]
            over = len(self.of) + len(names) - self.limit
            for name in list(islice(self.of, max(0, over))):
                del self.of[name]
        self._make_room(len(names), posteriors.shape[1])
        rows = np.arange(self._next, self._next + len(names)) % max(1, len(self._rows))
        self._rows[rows, : posteriors.shape[1]] = posteriors[len(posteriors) - len(names) :]
        self.of.update(zip(names, rows.tolist(), strict=True))
        self._next = int(rows[-1]) + 1 if len(names) else self._next

    def _make_room(self, number: int, classes: int) -> None:
        """More rows, as long as the ring is not complete, and columns for new classes."""
        most = self.limit if self.limit is not None else self._next + number
        have, wide = self._rows.shape
        want = have if have >= most or self._next + number <= have else self._next + number
        want = min(max(want, 2 * have), most) if want > have else have
        if want > have or classes > wide:
            self._rows = np.pad(self._rows, ((0, want - have), (0, max(0, classes - wide))))

    def posteriors(self, names: Iterable[Hashable], classes: int) -> Floats:
        """Their posteriors as an array; a class that came later has none."""
        rows = [self.of[name] for name in names]
        out = np.zeros((len(rows), classes))
        out[:, : self._rows.shape[1]] = self._rows[rows] if rows else 0.0
        return out
