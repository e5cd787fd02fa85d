"""Breaking ties between the most probable classes: by a draw, not by the order of the classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.estimators.scoring import TIE
from venire.labels import Names
from venire.labels.stable_draws import name_draws

__all__ = ["winners"]


def winners(
    posteriors: NDArray[np.float64], items: Names, classes: Names, seed: int = 0
) -> NDArray[np.int64]:
    """The most probable class of each item, by its index; a tie is broken by a draw.

    The draw is made from the seed and the names of item and class, so that neither the order of
    rows or classes nor the other items matter.

    >>> q = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    >>> items = ["post-1", "post-2", "post-3", "post-4"]
    >>> winners(q, items, ["no", "yes"]).tolist()
    [0, 0, 0, 0]
    >>> winners(q, items, ["no", "yes"], seed=1).tolist()
    [0, 0, 0, 1]
    """
    top = posteriors >= posteriors.max(axis=1, keepdims=True) - TIE
    best = np.argmax(posteriors, axis=1)
    tied = np.flatnonzero(top.sum(axis=1) > 1)
    if tied.size:
        drawn = name_draws([items[i] for i in tied.tolist()], classes, seed)
        best[tied] = np.argmax(np.where(top[tied], drawn, -1.0), axis=1)
    return np.asarray(best, np.int64)
