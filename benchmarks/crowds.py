"""Synthetic crowds for the benchmarks, made in pieces so that little memory is needed.

It needs NumPy only: the peers' own environment imports it too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 0
LABELS = 5
_PIECE = 1 << 18

Arrays = tuple[NDArray[np.uint16], NDArray[np.uint8]]


def crowd(items: int, labelers: int, classes: int) -> Arrays:
    """(labeler, said), five labels an item, items in order, labelers in order within an item."""
    rng = np.random.default_rng(SEED)
    low, high = (0.55, 0.9) if classes == 2 else (0.4, 0.8)
    competence = rng.uniform(low, high, labelers)
    labeler = np.empty((items, LABELS), np.uint16)
    said = np.empty((items, LABELS), np.uint8)
    fifth = labelers // LABELS
    for first in range(0, items, _PIECE):
        n = min(_PIECE, items - first)
        who = rng.integers(fifth, size=(n, LABELS)) + fifth * np.arange(LABELS)
        truth = rng.integers(classes, size=(n, 1))
        wrong = (truth + rng.integers(1, classes, size=(n, LABELS))) % classes
        right = rng.random((n, LABELS)) < competence[who]
        labeler[first : first + n] = who
        said[first : first + n] = np.where(right, truth, wrong)
    return labeler.ravel(), said.ravel()
