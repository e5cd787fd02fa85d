"""The names in a stream: codes, distinct items, and which final verdicts are remembered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.labels import Codes, Names, Repeats

__all__ = ["Finals", "codes_of", "distinct", "listed", "not_repeated", "numbered", "pick"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    """Each name once, numbered in order."""
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def pick(names: Names, index: Codes) -> list[Any]:
    """Some of the names, as Python objects."""
    if isinstance(names, np.ndarray):
        return list(names[index].tolist())
    return [names[i] for i in index.tolist()]


def listed(names: Names) -> list[Any]:
    """All of the names, as Python objects."""
    return pick(names, np.arange(len(names)))


def codes_of(known: dict[Hashable, int], names: list[Hashable]) -> Ints:
    """Codes of names; those that are new get the next ones.

    >>> codes_of({"ann": 0, "bob": 1}, ["eve", "bob", "zoe"]).tolist()
    [2, 1, 3]
    """
    new = iter(range(len(known), len(known) + len(names)))
    codes = (known[name] if name in known else next(new) for name in names)
    return np.fromiter(codes, dtype=np.int64)


def distinct(items: Names) -> tuple[list[Hashable], Ints]:
    """The distinct items, and the position of each among them.

    >>> distinct(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    if not isinstance(items, np.ndarray):
        seen = numbered(items)
        return list(seen), np.array([seen[name] for name in items], dtype=np.int64)
    unique, index = np.unique(items, return_inverse=True)
    return unique.tolist(), index


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
        """Add these, and drop the oldest beyond the limit."""
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


def not_repeated(index: Ints, labeler: Ints, repeats: Repeats) -> NDArray[np.bool_]:
    """Which labels to keep so that a batch has one of each labeler for an item: first or last.

    >>> not_repeated(np.array([0, 0, 1]), np.array([7, 7, 7]), "last").tolist()
    [False, True, True]
    """
    keep = np.ones(index.size, dtype=np.bool_)
    key = index * (labeler.max(initial=0) + 1) + labeler
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        keep[:] = False
        last = repeats == "last"
        chosen = np.unique(key[::-1] if last else key, return_index=True)[1]
        keep[index.size - 1 - chosen if last else chosen] = True
    return keep
