"""The exact accuracy of weighted majority, which the paper bounds and replaces by a proxy.

With labelers of competence p_m the sum of signed vote weights takes 2^n values. Two halves of
the panel are enumerated, equal sums joined (vote weights lie on a grid, so that equal sums are
bit-equal), and the halves are combined by sorting: 2^(n/2) work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError
from venire.paper.accuracy import clamp_competence, evidence, vote_weight

__all__ = ["accuracy_by_size", "best_c", "exact_accuracy", "implied_c"]

Floats = NDArray[np.float64]

#: The most different sums of a half of the panel.
MOST_SUMS = 2**22


def exact_accuracy(competences: ArrayLike) -> float:
    """Probability that weighted majority is right, two classes equally likely.

    A tie is right half of the time: it goes to the second class.

    >>> round(exact_accuracy([0.8]), 12), round(exact_accuracy([0.8, 0.8, 0.8]), 12)
    (0.8, 0.896)
    >>> exact_accuracy([])
    0.5
    """
    p = np.sort(clamp_competence(_competent(competences)))
    left, right = _sums(p[0::2]), _sums(p[1::2])
    values, chances = right
    at_least = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
    above = at_least[np.searchsorted(values, -left[0], side="right")]
    reach = at_least[np.searchsorted(values, -left[0], side="left")]
    return float((left[1] * (above + reach) / 2).sum())


def _competent(competences: ArrayLike) -> Floats:
    """Reject competences below 1/2, whose votes would count the other way, and nan."""
    p = np.asarray(competences, dtype=np.float64)
    if not ((p >= 0.5) & (p <= 1.0)).all():
        wrong = float(p[~((p >= 0.5) & (p <= 1.0))].flat[0])
        raise InputError(
            f"got a competence of {wrong:g}, expected 1/2 to 1: of who is worse than chance, "
            "turn the labels round and give 1 - p"
        )
    return p


def _sums(p: Floats) -> tuple[Floats, Floats]:
    """The sums of signed votes, increasing, and the probability of each."""
    values: Floats = np.zeros(1)
    chances: Floats = np.ones(1)
    for weight, right in zip(vote_weight(p), p, strict=True):
        if 2 * len(values) > MOST_SUMS:
            raise InputError(f"got {len(p)} labelers in half a panel, too many to enumerate")
        both = np.concatenate([values + weight, values - weight])
        odds = np.concatenate([chances * right, chances * (1 - right)])
        values, place = np.unique(both, return_inverse=True)
        chances = np.bincount(place, odds, minlength=len(values)).astype(np.float64)
    return values, chances


def accuracy_by_size(competences: ArrayLike) -> tuple[Floats, Floats]:
    """For the best 1, 2, ..., n labelers: the evidence they hold, and the exact accuracy."""
    p = np.sort(np.asarray(competences, dtype=np.float64))[::-1]
    held = np.cumsum(evidence(p))
    return held, np.array([exact_accuracy(p[: k + 1]) for k in range(len(p))])


def implied_c(held: ArrayLike, accuracy: ArrayLike) -> Floats:
    """The c with which the proxy 1 - exp(-c evidence) gives this accuracy."""
    wrong = 1.0 - np.asarray(accuracy, dtype=np.float64)
    return np.asarray(-np.log(wrong) / np.asarray(held, dtype=np.float64))


def best_c(held: ArrayLike, accuracy: ArrayLike) -> float:
    """The c with the least squared error of the proxy, to three decimals.

    >>> e = np.array([0.5, 1.0, 2.0])
    >>> best_c(e, 1 - np.exp(-1.7 * e))
    1.7
    """
    grid = np.arange(0.05, 20.0, 0.001)
    e, right = np.asarray(held, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)
    error = sum((1.0 - np.exp(-grid * x) - a) ** 2 for x, a in zip(e, right, strict=True))
    return round(float(grid[np.argmin(error)]), 3)
