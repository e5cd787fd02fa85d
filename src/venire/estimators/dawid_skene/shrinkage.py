r"""Pseudo-counts for confusion matrices, learned from the panel itself (empirical Bayes).

A labeler with few labels says little about its own K x K confusion matrix; the panel says more.
The row of labeler m for items whose class is k is drawn from a Dirichlet distribution,

    P_mk ~ Dirichlet(1 + s C_mk),

so s C_mk are pseudo-labels that every M step adds to the labeler's own (MAP). The centre C_mk
starts from the pooled row of the panel for that class. Where labelers differ in skill more than in
type of error, the labeler's labels on the *other* classes say how good it is, and its chance of
being right moves with them on the logit scale; errors are distributed like the panel's. A row never
contributes to its own centre, so nothing is counted twice.

How much to trust the centre (s), and how much the other rows (t pseudo-labels of the panel
against them; infinite means not at all), is what makes the counts most probable: the
Dirichlet-multinomial likelihood, with a flat log-normal hyper-prior around s = 2.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["START_STRENGTH", "centre", "fitted_prior", "pooled_prior"]

Floats = NDArray[np.float64]

#: The pseudo-labels of a row before the panel is known. On 28 kinds of synthetic panel 2, 5 and K
#: end up the same (mean error 5.15, 5.14 and 5.15 %, four worlds each).
START_STRENGTH: Final = 2.0

#: Pseudo-labels of the panel against a labeler's own other rows.
_TRUST: Final = (np.inf, 80.0, 20.0, 5.0)

#: Strengths that are tried, and the width of the hyper-prior in factors of e.
_STEP, _LEAST, _MOST, _WIDTH = 2**0.25, 2**-3, 2.0**12, 2.0

#: The other rows are used only if that makes the counts this many times more probable.
_EVIDENCE: Final = np.log(10.0)

#: The most cells of counts that are used; a larger panel is sampled evenly.
_CELLS: Final = 200_000


def pooled_prior(counts: Floats, strength: float = START_STRENGTH) -> Floats:
    """Pseudo-labels, `strength` per row, distributed like the panel's; [labeler, said, truth].

    >>> counts = np.array([[[8.0, 1.0], [0.0, 9.0]], [[2.0, 0.0], [0.0, 0.0]]])
    >>> pooled_prior(counts)[1].round(2).tolist()
    [[1.98, 0.2], [0.02, 1.8]]
    """
    return strength * centre(counts, np.inf)


def fitted_prior(counts: Floats) -> Floats:
    """The pseudo-labels that make the panel's counts most probable; [labeler, said, truth].

    >>> same = np.tile([[[80.0, 10.0], [20.0, 90.0]]], (30, 1, 1))
    >>> fitted_prior(same)[0].sum(axis=0).round().tolist()  # all alike: the centre counts for much
    [1722.0, 1722.0]
    """
    thin = slice(None, None, 1 + counts.size // _CELLS)
    best, found = -np.inf, (np.inf, START_STRENGTH)
    strength = START_STRENGTH
    for trust in _TRUST:
        strength, value = _strength(counts[thin], centre(counts, trust)[thin], strength)
        value -= _EVIDENCE if np.isfinite(trust) else 0.0
        if value > best:
            best, found = value, (trust, strength)
    return found[1] * centre(counts, found[0])


def centre(counts: Floats, trust: float) -> Floats:
    """The centre of each row, [labeler, said, truth]; columns of truth sum to 1.

    >>> counts = np.array([[[8.0, 1.0], [2.0, 9.0]], [[50.0, 0.0], [50.0, 0.0]]])
    >>> centre(counts, np.inf)[1].round(2).tolist()
    [[0.53, 0.1], [0.47, 0.9]]
    >>> centre(counts, 5.0)[1].round(2).tolist()  # wrong on the first class, so also on the other
    [[0.53, 0.11], [0.47, 0.89]]
    """
    K = counts.shape[1]
    pooled = counts.sum(axis=0) + 0.1 + np.eye(K)
    pooled /= pooled.sum(axis=0)
    if not np.isfinite(trust) or K < 2:
        return np.broadcast_to(pooled, counts.shape)
    right = np.diag(pooled)
    wrong = pooled * (1 - np.eye(K)) / (1 - right)
    own = _expit(np.log(right / (1 - right)) + _shift(counts, right, trust))
    return np.asarray(wrong * (1 - own)[:, None, :] + np.eye(K) * own[:, None, :])


def _shift(counts: Floats, right: Floats, trust: float) -> Floats:
    """By how much a labeler is better, in logits, judged by its other rows; [labeler, truth].

    The root in z of  sum_j (n_j + trust w_j) sigmoid(logit_j + z) = sum_j right_j + trust w_j p_j
    over the other classes j, by Newton's method.
    """
    other = 1 - np.eye(len(right))
    given, hits = counts.sum(axis=1), np.einsum("mkk->mk", counts)
    share = (given.sum(axis=0) + 1e-9) * other
    share /= share.sum(axis=1, keepdims=True)
    weight = given[:, None, :] * other + trust * share
    wanted = hits @ other + trust * (share @ right)
    logit = np.log(right / (1 - right))
    z = np.zeros_like(given)
    for _ in range(12):
        p = _expit(logit + z[:, :, None])
        step = (wanted - (weight * p).sum(axis=2)) / (weight * p * (1 - p)).sum(axis=2)
        z = (z + step.clip(-2.0, 2.0)).clip(-6.0, 6.0)
    return np.asarray(z)


def _strength(counts: Floats, centres: Floats, start: float) -> tuple[float, float]:
    """The most probable strength and its log-likelihood: uphill on a geometric grid."""
    from scipy.special import gammaln

    given = counts.sum(axis=1)

    def value(s: float) -> float:
        a = s * centres
        rows = gammaln(s) - gammaln(given + s) + (gammaln(counts + a) - gammaln(a)).sum(axis=1)
        return float(rows.sum() - (np.log(s / START_STRENGTH) / _WIDTH) ** 2 / 2)

    s, best = start, value(start)
    for factor in (_STEP**4, 1 / _STEP**4, _STEP, 1 / _STEP):
        while _LEAST <= s * factor <= _MOST and (tried := value(s * factor)) > best:
            s, best = s * factor, tried
    return s, best


def _expit(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))
