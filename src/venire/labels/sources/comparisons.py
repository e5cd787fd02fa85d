"""Pairwise comparisons of any form: dataframes, arrays, rows, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.labels import Names
from venire.labels.sources.build import coded_columns
from venire.labels.sources.coding import Coded

__all__ = ["COMPARISON_COLUMNS", "TIES", "Comparisons", "as_comparisons"]

Ints = NDArray[np.int64]

#: What the columns of a table of comparisons are called.
COMPARISON_COLUMNS: Final = ("left", "right", "worker", "winner")

#: What a winner is called where neither side won.
TIES: Final = ("tie", "draw")

_TIE, _NOBODY = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Who was compared with whom, by whom; `won_left` is 1, 0, or 1/2 for a tie."""

    things: Names
    labelers: Names
    left: Ints
    right: Ints
    labeler: Ints
    won_left: NDArray[np.float64]

    def met_and_won(self) -> tuple[Ints, NDArray[np.float64]]:
        """How often each thing was compared, and how often it won; a tie is half a win."""
        n = len(self.things)
        met = np.bincount(self.left, minlength=n) + np.bincount(self.right, minlength=n)
        won = np.bincount(self.left, self.won_left, minlength=n)
        won = won + np.bincount(self.right, 1 - self.won_left, minlength=n)
        return met.astype(np.int64), np.asarray(won, np.float64)


def as_comparisons(source: Any, columns: Sequence[str] = COMPARISON_COLUMNS) -> Comparisons:
    """Rows of (left, right, labeler, winner), in any form that `as_table` takes.

    The winner is the name of one of the two, or "tie" or "draw". A labeler may compare the same
    two more than once.

    >>> data = as_comparisons([("a", "b", "ann", "a"), ("c", "a", "bob", "tie")])
    >>> data.things, data.won_left.tolist()
    (('a', 'c', 'b'), [1.0, 0.5])
    >>> as_comparisons([("a", "b", "ann", "c")])
    Traceback (most recent call last):
    venire.errors.InputError: row 0 (the first is 0): winner is 'c', expected 'a', 'b' or 'tie': ...
    """
    if isinstance(source, Comparisons):
        return source
    (left, right, worker, winner), blame = coded_columns(source, columns, "comparisons")
    things: dict[str, Any] = {}  # by their text: a column with a "tie" in it is text
    for name in (*left.names, *right.names):
        things.setdefault(str(name), name)
    place = {text: i for i, text in enumerate(things)}
    first, second = _placed(left, place), _placed(right, place)
    same = np.flatnonzero(first == second)
    if same.size:
        what = left.names[left.codes[same[0]]]
        raise blame(int(same[0]), f"{what!r} is compared with itself, expected two: drop the row")
    names = tuple(things.values())
    who = _placed(winner, place)
    wrong = np.flatnonzero((who != first) & (who != second) & (who != _TIE))
    if wrong.size:
        row = int(wrong[0])
        expected = f"{names[first[row]]!r}, {names[second[row]]!r} or 'tie'"
        got = winner.names[winner.codes[row]]
        raise blame(row, f"{columns[3]} is {got!r}, expected {expected}: correct or drop the row")
    won_left = np.where(who == _TIE, 0.5, (who == first).astype(np.float64))
    labeler = worker.codes.astype(np.int64)
    return Comparisons(names, worker.names, first, second, labeler, won_left)


def _placed(column: Coded, place: dict[str, int]) -> Ints:
    """The codes of a column in the numbering of all things."""
    texts = [str(name) for name in column.names]
    moved = [place.get(text, _TIE if text.lower() in TIES else _NOBODY) for text in texts]
    return np.array(moved, np.int64)[column.codes]
