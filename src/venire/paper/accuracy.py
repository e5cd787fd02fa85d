r"""How much a label is worth, and what a set of labels says (paper, section 2).

For a labeler of competence p among K classes, with q = (1 - p) / (K - 1) the probability of
each wrong class:

    vote_weight = log(p / q)                    the weight of its vote in the optimal rule
    evidence    = (p - q) / 2 * log(p / q)      the paper's err_m, additive over labels
    accuracy    = 1 - exp(-c * total evidence)  the paper's proxy for the chance of being right

With K = 2 the evidence is the paper's (p - 1/2) log(p / (1 - p)). The form for any K is a
quarter of the symmetric Kullback-Leibler divergence between what the labeler says of two
different classes, which is what the paper's formula is when K = 2.

**The paper's range.** The paper wants 1/2 < p < 1 - rho. `clamp_competence` brings any p into
[1/K, 1 - rho]: a labeler at or below chance has no evidence and no vote, so it is never asked; one
who is never wrong counts as wrong once in 1/rho labels.

**The grid.** Evidence and vote weights are rounded to multiples of 2**-44 (an error below
3e-14). Sums of such numbers are exact in double precision, so the order of labels is
irrelevant to the last bit and equal sets of labels are exact ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError
from venire.tools.arrays import Floats

#: The lowest error rate that is believed: once in a million labels.
RHO: Final = 1e-6

_GRID: Final = 2.0**44


def clamp_competence(competence: ArrayLike, classes: int = 2, rho: float = RHO) -> Floats:
    """Bring competences into the paper's range, [1/K, 1 - rho].

    >>> clamp_competence([0.2, 0.7, 1.0], rho=0.01).tolist()
    [0.5, 0.7, 0.99]
    """
    if classes < 2:
        raise InputError(f"got {classes} classes, expected at least 2")
    p = np.asarray(competence, dtype=np.float64)
    if np.isnan(p).any():
        raise InputError("a competence is NaN, expected a probability")
    return np.clip(p, 1.0 / classes, 1.0 - rho)


def vote_weight(competence: ArrayLike, classes: int = 2, rho: float = RHO) -> Floats:
    """Log-odds of a labeler's label: its weight in the optimal vote (paper, eq. 1).

    >>> vote_weight([0.5, 0.9]).round(4).tolist()
    [0.0, 2.1972]
    """
    p = clamp_competence(competence, classes, rho)
    return on_grid(np.log(p) - np.log((1.0 - p) / (classes - 1)))


def evidence(competence: ArrayLike, classes: int = 2, rho: float = RHO) -> Floats:
    """How much one label is worth, additive over labels: err_m (paper, eq. 3).

    >>> evidence([0.5, 0.75, 0.9]).round(4).tolist()
    [0.0, 0.2747, 0.8789]
    """
    p = clamp_competence(competence, classes, rho)
    q = (1.0 - p) / (classes - 1)
    return on_grid((p - q) / 2.0 * (np.log(p) - np.log(q)))


def one_coin(competence: ArrayLike, classes: int = 2, rho: float = RHO) -> Floats:
    """The confusion matrix [labeler, truth, said] of a labeler who is equally good on every class.

    >>> one_coin([0.8], classes=3)[0].round(2).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    p = clamp_competence(competence, classes, rho)[:, None, None]
    same = np.eye(classes, dtype=bool)
    return np.where(same, p, (1.0 - p) / (classes - 1))


def clamp_confusions(confusions: ArrayLike, rho: float = RHO) -> Floats:
    """Clamp confusion matrices so that no entry is 0 or 1; rows sum to 1.

    >>> clamp_confusions([[[1.0, 0.0], [0.5, 0.5]]], rho=0.01).round(2).tolist()
    [[[0.99, 0.01], [0.5, 0.5]]]
    """
    p = np.asarray(confusions, dtype=np.float64)
    if np.isnan(p).any():
        raise InputError("a confusion matrix holds NaN, expected probabilities")
    p = np.clip(p, rho, 1.0 - rho)
    return np.asarray(p / p.sum(axis=2, keepdims=True))


def log_likelihoods(confusions: ArrayLike, rho: float = RHO) -> Floats:
    """The vote of a label for each class: [labeler, said, truth], the smallest of a row being 0.

    >>> log_likelihoods(one_coin([0.9]))[0].round(4).tolist()
    [[2.1972, 0.0], [0.0, 2.1972]]
    """
    logs = np.log(clamp_confusions(confusions, rho)).transpose(0, 2, 1)
    return on_grid(logs - logs.min(axis=2, keepdims=True))


def confusion_evidence(confusions: ArrayLike, rho: float = RHO) -> Floats:
    """The evidence of a confusion matrix: a quarter of the symmetric divergence of its rows.

    The mean over all pairs of classes. For a labeler equally good on every class it is `evidence`;
    one who is reliably wrong is worth as much as one who is reliably right.

    >>> float(confusion_evidence(one_coin([0.9]))[0].round(4)), float(evidence(0.9).round(4))
    (0.8789, 0.8789)
    """
    p = clamp_confusions(confusions, rho)
    logs = np.log(p)
    own = np.einsum("mks,mks->mk", p, logs)
    cross = np.einsum("mjs,mks->mjk", p, logs)
    both = own[:, :, None] + own[:, None, :] - cross - cross.transpose(0, 2, 1)
    classes = p.shape[1]
    return on_grid(both.sum(axis=(1, 2)) / (classes * (classes - 1)) / 4.0)


def pair_evidence(confusions: ArrayLike, rho: float = RHO) -> Floats:
    """How well a label tells each pair of classes apart: [labeler, class, class].

    Minus the logarithm of the Bhattacharyya coefficient of the two rows, which is how fast the
    geometric mean of two posteriors falls, on average, with each label.

    >>> pair_evidence(one_coin([0.8]))[0].round(4).tolist()
    [[0.0, 0.2231], [0.2231, 0.0]]
    """
    root = np.sqrt(clamp_confusions(confusions, rho))
    overlap = np.einsum("mjs,mks->mjk", root, root)
    return on_grid(np.maximum(-np.log(np.minimum(overlap, 1.0)), 0.0))


def on_grid(values: ArrayLike) -> Floats:
    """Round to multiples of 2**-44, so that sums are exact.

    >>> float(on_grid(0.1) + on_grid(0.2) - on_grid(0.3)) in (0.0, 2**-44)
    True
    """
    return np.asarray(np.round(np.asarray(values, dtype=np.float64) * _GRID) / _GRID)


def accuracy(total_evidence: ArrayLike, c: float = 1.0) -> Floats:
    """The chance that the verdict is right, by the paper's proxy (eq. 4); 0 without labels.

    >>> accuracy([0.0, 1.0]).round(4).tolist()
    [0.0, 0.6321]
    """
    return -np.expm1(-c * np.asarray(total_evidence, dtype=np.float64))


def accuracy_lower_bound(total_evidence: ArrayLike) -> Floats:
    """A lower bound on the accuracy of weighted majority: 1 - exp(-evidence / 2) (two classes).

    The paper's eq. 2 prints 1 - exp(-evidence), which is not a bound: its source has the half,
    and five good labelers are enough to fall below it (docs/errata.md).

    >>> float(accuracy_lower_bound(2.0).round(4))
    0.6321
    """
    return accuracy(total_evidence, c=0.5)


def accuracy_upper_bound(total_evidence: ArrayLike) -> Floats:
    """An upper bound on the accuracy of weighted majority (paper, eq. 2; two classes).

    >>> float(accuracy_upper_bound(2.0).round(6))
    0.999976
    """
    e = np.asarray(total_evidence, dtype=np.float64)
    return 1.0 - 0.375 * np.exp(-2.0 * e - 4.0 * np.sqrt(e))


def posterior(said: Sequence[int], competence: ArrayLike, classes: int = 2) -> Floats:
    """Probability of each class given the labels, every class equally likely beforehand.

    >>> posterior([0, 0, 1], [0.8, 0.6, 0.7]).round(4).tolist()
    [0.72, 0.28]
    """
    scores = _scores(said, competence, classes)
    odds = np.exp(scores - scores.max())
    return np.asarray(odds / odds.sum())


def verdict(said: Sequence[int], competence: ArrayLike, classes: int = 2) -> int | None:
    """Weighted majority (paper, eq. 1): the class of the largest sum of vote weights.

    A tie goes to the later class, as the paper gives a tie to the second of two. Without
    labels there is no verdict.

    >>> verdict([0, 1, 1], [0.9, 0.6, 0.6]), verdict([0, 1], [0.7, 0.7]), verdict([], [])
    (0, 1, None)
    """
    if not len(said):
        return None
    scores = _scores(said, competence, classes)
    return classes - 1 - int(np.argmax(scores[::-1]))


def _scores(said: Sequence[int], competence: ArrayLike, classes: int) -> Floats:
    weights = vote_weight(competence, classes)
    if weights.shape != (len(said),):
        raise InputError(
            f"got {len(said)} labels and {weights.size} competences, expected equal numbers"
        )
    sums = np.bincount(np.asarray(said, dtype=np.intp), weights, minlength=classes)
    return sums.astype(np.float64)
