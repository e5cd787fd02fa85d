"""Cells of items whose judges say alike, in which trusted labels are counted.

Cells are nested: first by the verdict, then by halves and quarters of what the judges say, as many
as the number of trusted labels carries. Who draws and who estimates cut the same cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cells_of", "halvings", "merged"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Trusted labels from which cells are halved once more.
ENOUGH = (80, 240)

#: A cell with fewer trusted labels is joined with its neighbour.
LEAST = 2


def halvings(gold: int) -> int:
    """How often the cells of a verdict are halved, given the number of trusted labels.

    >>> halvings(50), halvings(100), halvings(500)
    (0, 1, 2)
    """
    return sum(gold >= enough for enough in ENOUGH)


def cells_of(said: Floats, score: Floats, times: int) -> Ints:
    """The cell of each item, numbered by what the judges say.

    `said` is the value of its verdict, `score` what its value is expected to be. Those of equal
    score are never parted.

    >>> said, score = np.array([0, 0, 1, 1, 1, 1.0]), np.array([0, 0.2, 0.6, 0.7, 0.7, 0.9])
    >>> cells_of(said, score, 0).tolist(), cells_of(said, score, 1).tolist()
    ([0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 3, 3])
    """
    cells = np.unique(said, return_inverse=True)[1].astype(np.int64)
    for _ in range(times):
        upper = np.zeros(len(cells), np.int64)
        for cell in range(int(cells.max(initial=-1)) + 1):
            inside = np.flatnonzero(cells == cell)
            values = np.sort(score[inside])
            middle = values[len(values) // 2]
            if middle > values[0]:  # the side of ties is the upper one
                upper[inside] = score[inside] >= middle
            elif values[-1] > middle:
                upper[inside] = score[inside] > middle
        cells = np.unique(2 * cells + upper, return_inverse=True)[1].astype(np.int64)
    return cells


def merged(cells: Ints, place: Ints, least: int = LEAST) -> Ints:
    """The cells, those with too few trusted labels joined with a neighbour.

    >>> merged(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 3, 4])).tolist()
    [0, 0, 1, 1, 1]
    """
    counts = np.bincount(cells[place], minlength=int(cells.max()) + 1)
    new, cell, seen = np.zeros(len(counts), np.int64), 0, 0
    for k, count in enumerate(counts.tolist()):
        new[k], seen = cell, seen + count
        if seen >= least and k + 1 < len(counts):
            cell, seen = cell + 1, 0
    if seen < least:
        new[new == cell] = max(cell - 1, 0)
    return np.asarray(new[cells])
