"""What arrays hold, for annotations; scores as probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def softmax(scores: Floats) -> Floats:
    """Probabilities that are proportional to the exponentials, along the last axis.

    >>> softmax(np.log([[3.0, 1.0]])).tolist()
    [[0.75, 0.25]]
    """
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))
