"""The compiled loops of the spectral starts: which labelers agree, and the search for triples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.tools.compiling import threaded

__all__ = ["best_triples", "count_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]


@threaded()
def best_triples(first: Ints, second: Ints, known: NDArray[np.bool_]) -> Ints:
    """For each labeler, the first pair of the list that it completes to a triple.

    `first` and `second` list the pairs, best first; `known[a, b]` says that the moment of a
    and b is defined. Returns the index of the pair for each labeler, -1 where there is none.
    """
    found = np.full(known.shape[0], -1, dtype=np.int64)
    for i in range(known.shape[0]):
        for j in range(first.size):
            a, b = first[j], second[j]
            if a != i and b != i and known[i, a] and known[i, b]:
                found[i] = j
                break
    return found


@threaded()
def count_pairs(start: Ints, labeler: Codes, said: Codes, agree: Floats, shared: Floats) -> None:
    """Add up, for a <= b, the items that labelers a and b both labelled, and alike."""
    for i in range(start.size - 1):
        for e in range(start[i], start[i + 1]):
            a, k = labeler[e], said[e]
            for f in range(e, start[i + 1]):
                shared[a, labeler[f]] += 1.0
                if said[f] == k:
                    agree[a, labeler[f]] += 1.0
