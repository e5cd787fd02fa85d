"""The compiled loops of learning: one EM pass over a label table, and the search for triples."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["best_triples", "em_pass"]

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def em_pass(
    start: NDArray[np.int64],
    labeler: NDArray[np.int32],
    said: NDArray[np.int16],
    log_wrong: Floats,
    weight: Floats,
    right: Floats,
    odds: Floats,
    posteriors: Floats,
) -> float:
    """One fused pass over the items: E step, soft counts for the M step, log-likelihood.

    `log_wrong` is log((1 - p) / (K - 1)) and `weight` is log((K - 1) p / (1 - p)) of each
    labeler. `right` receives the expected number of right labels of each labeler, `odds` is
    scratch for the K classes, `posteriors` receives the items x K posteriors, or is empty
    where nobody wants them. Returns the log-likelihood of the labels.
    """
    classes = odds.size
    keep = posteriors.shape[0] > 0
    right[:] = 0.0
    total = 0.0
    for i in range(start.size - 1):
        odds[:] = 0.0
        base = 0.0
        for e in range(start[i], start[i + 1]):
            base += log_wrong[labeler[e]]
            odds[said[e]] += weight[labeler[e]]
        top = odds[0]
        for k in range(1, classes):
            top = max(top, odds[k])
        norm = 0.0
        for k in range(classes):
            odds[k] = math.exp(odds[k] - top)
            norm += odds[k]
        total += base + top + math.log(norm / classes)
        for e in range(start[i], start[i + 1]):
            right[labeler[e]] += odds[said[e]] / norm
        if keep:
            for k in range(classes):
                posteriors[i, k] = odds[k] / norm
    return total


@njit(cache=True, nogil=True)
def best_triples(
    first: NDArray[np.int64], second: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.int64]:
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
