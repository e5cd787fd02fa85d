"""The compiled loops of aggregation: votes, soft counts, and what errors have in common."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.tools.arrays import Floats
from venire.tools.compiling import threaded

Ints = NDArray[np.integer[Any]]


@threaded()
def vote_pass(start: Ints, labeler: Ints, said: Ints, weight: Floats, shares: Floats) -> None:
    """The share of the weighted votes of each class, items x K.

    Where no labeler with a weight has voted, the votes count the same; without any label every
    class has the same share.
    """
    classes = shares.shape[1]
    for i in range(start.size - 1):
        total = 0.0
        shares[i, :] = 0.0
        for e in range(start[i], start[i + 1]):
            shares[i, said[e]] += weight[labeler[e]]
            total += weight[labeler[e]]
        if total <= 0.0:
            shares[i, :] = 0.0
            for e in range(start[i], start[i + 1]):
                shares[i, said[e]] += 1.0
            total = float(start[i + 1] - start[i])
        for k in range(classes):
            shares[i, k] = shares[i, k] / total if total > 0.0 else 1.0 / classes


@threaded()
def agreement_pass(
    start: Ints, labeler: Ints, said: Ints, shares: Floats, tie: float, agreed: Floats
) -> None:
    """How often each labeler said what has the largest share; 1/t where t classes have it."""
    classes = shares.shape[1]
    agreed[:] = 0.0
    for i in range(start.size - 1):
        top = shares[i, 0]
        for k in range(1, classes):
            top = max(top, shares[i, k])
        tied = 0
        for k in range(classes):
            if shares[i, k] >= top - tie:
                tied += 1
        for e in range(start[i], start[i + 1]):
            if shares[i, said[e]] >= top - tie:
                agreed[labeler[e]] += 1.0 / tied


@threaded()
def count_labels(
    start: Ints, labeler: Ints, said: Ints, posteriors: Floats, counts: Floats
) -> None:
    """Soft counts, labelers x K (truth) x K (said): labels weighted by the posteriors."""
    counts[:] = 0.0
    for i in range(start.size - 1):
        for e in range(start[i], start[i + 1]):
            for k in range(posteriors.shape[1]):
                counts[labeler[e], k, said[e]] += posteriors[i, k]


@threaded()
def dependence_pass(
    start: Ints, labeler: Ints, said: Ints, posteriors: Floats, confusions: Floats
) -> tuple[float, float]:
    """Products of the residuals of all pairs of labels of an item, and their largest values.

    The residual of a label, given class k, is the indicator of what was said less row k of the
    labeler's confusion matrix; a pair's product is the inner product of two of them.
    """
    classes = posteriors.shape[1]
    total = np.zeros(classes)
    products = 0.0
    scale = 0.0
    for i in range(start.size - 1):
        if start[i + 1] - start[i] < 2:
            continue
        for k in range(classes):
            q = posteriors[i, k]
            if q < 1e-9:
                continue
            total[:] = 0.0
            own = 0.0
            spread = 0.0
            spread_own = 0.0
            for e in range(start[i], start[i + 1]):
                row = confusions[labeler[e], k]
                square = 0.0
                for s in range(classes):
                    r = (1.0 if said[e] == s else 0.0) - row[s]
                    total[s] += r
                    own += r * r
                    square += row[s] * row[s]
                v = max(1.0 - square, 0.0)
                spread += math.sqrt(v)
                spread_own += v
            both = 0.0
            for s in range(classes):
                both += total[s] * total[s]
            products += q * (both - own)
            scale += q * (spread * spread - spread_own)
    return products, scale
