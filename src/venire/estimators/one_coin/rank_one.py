r"""A start from the agreement of all pairs of labelers: a weighted rank-one fit.

Under the one-coin model, for any K and any class frequencies,

    K/(K-1) (agreement of a and b - 1/K) = r_a r_b,   r = (K p - 1) / (K - 1),

so the matrix of all pairs has rank one off its diagonal. The fit

    minimise  sum over pairs a < b of n_ab (A_ab - r_a r_b)**2

weighs a pair by the number n_ab of items that both have labelled, and uses every pair where
Algorithm 3 (`spectral_start`) uses one triple for each labeler.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from venire.estimators.base import Floats
from venire.estimators.one_coin.spectral import REACH, pair_counts
from venire.labels.partitions import Table

__all__ = ["rank_one_start"]

#: Rounds of the fit; EM refines the result.
_ROUNDS: Final = 50

#: Pseudo-items for each labeler, with the agreement of an average labeler.
_SHRINK: Final = 5.0


def rank_one_start(table: Table, reach: float = REACH) -> Floats:
    """Competences from the agreement of all pairs; see `spectral_start` for `reach`.

    Each round solves for every labeler's r with the others fixed, and goes half of the way, so the
    order of the labelers does not matter. A labeler who shares no item with anyone gets the mean of
    the others. If the mean is below chance, all signs are flipped.

    >>> from venire import LabelTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(20_000, 1))
    >>> said = np.where(rng.random((20_000, 4)) < [0.9, 0.8, 0.7, 0.4], truth, 1 - truth)
    >>> rank_one_start(LabelTable.from_matrix(said), reach=0.98).round(2).tolist()
    [0.9, 0.8, 0.7, 0.39]
    """
    K = len(table.classes)
    agree, shared = pair_counts(table)
    np.fill_diagonal(agree, 0.0)
    np.fill_diagonal(shared, 0.0)
    excess = (K * agree - shared) / (K - 1)
    mean = np.sqrt(max(excess.sum() / max(shared.sum(), 1.0), 1e-4))
    r = np.full(len(agree), mean)
    for _ in range(_ROUNDS):
        better = (excess @ r + _SHRINK * mean**3) / (shared @ r**2 + _SHRINK * mean**2)
        r = (r + better.clip(-1.0, 1.0)) / 2
    if r[shared.any(axis=1)].sum() < 0:
        r = -r
    low = -1 / (K - 1)
    return np.asarray((1 + (K - 1) * r.clip(reach * low, reach)) / K)
