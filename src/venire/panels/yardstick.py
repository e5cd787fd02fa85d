"""What panels are compared by: the truth where it is known, elsewhere the whole panel.

**What panels are compared by: one probability of each class for each item, the same for all.**

Every panel is judged by the same yardstick, never by its own confidence: a panel of copies is
surer of its verdicts than one of independent labelers, and no better. Where the truth is known,
the yardstick is the truth. Elsewhere it is the posterior q of the whole panel, calibrated for
labels that share their errors (`Auto`): if q is right, then the probability that a verdict v(s)
is right is q_s(v(s)), whoever it comes from, since v is a function of labels that q has seen.

By that yardstick no smaller panel is better than the whole one. So it does not find a labeler
whose labels make verdicts worse; it finds those whose labels change nothing that matters.

**What a second label of the same labeler would bring, if its errors were new ones.**

With q the probability of each class of an item, and P the confusion matrix of a labeler, one more
label l of it comes with probability sum_k q_k P_kl, and the verdict is right with probability
max_k q_k P_kl of that. So a second label of an item brings, on average,

    sum_l max_k q_k P_kl  -  max_k q_k.

This takes for granted that the second label errs independently of the first and of everybody
else's. A program that answers the same again brings nothing, and one that is hard to convince
brings less: read it as an upper bound, and try it on a few items before paying for it.

**A panel against the truth: how many independent votes it amounts to, and agreement with
experts.**

With errors e (1 where a label is wrong) on the items of known truth, and rho the mean over pairs of
labelers of the correlation of their errors on the items that both labelled, k labelers are worth

    n_eff = k / (1 + (k - 1) rho)

independent ones (arXiv 2605.29800). Kappa is Cohen's: agreement with the experts beyond chance.

A labeler leans towards a class if it says it more often than it is true of the same items. With
pairs, whose classes are the sides, that is its position bias.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.base import TIE, BaseEstimator
from venire.labels import LabelTable
from venire.tools.arrays import Floats

#: The share of each class in the verdict on each item, items x classes: 1 for the verdict, 1/t
#: each in a tie of t, and nothing in the row of an item that nobody labelled.
Verdicts = Floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its standard error.

    >>> print(Estimate(-0.0123, 0.004))
    -0.0123 ± 0.0040
    """

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


def verdicts_of(fitted: BaseEstimator) -> Verdicts:
    """The verdicts of a fitted estimator; ties in parts, items without a label not at all.

    >>> from venire import MajorityVote
    >>> rows = [("a", "ann", 0), ("a", "bob", 1), ("b", "ann", 1)]
    >>> verdicts_of(MajorityVote().fit(rows)).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    q = fitted.posteriors_
    top = (q >= q.max(axis=1, keepdims=True) - TIE) & (np.diff(fitted.table_.start) > 0)[:, None]
    return np.asarray(top / np.maximum(top.sum(axis=1, keepdims=True), 1))


@dataclass(frozen=True, eq=False)
class Yardstick:
    """The probability of each class for each item, `q`, items x classes, of the items in `used`."""

    q: Floats
    used: NDArray[np.bool_]

    @classmethod
    def of_truth(cls, truth: NDArray[np.int64], classes: int) -> Self:
        """The truth, as the index of the class of each item; -1 where it is not known.

        >>> Yardstick.of_truth(np.array([1, -1, 0]), 2).q.tolist()
        [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
        """
        used = truth >= 0
        if not used.any():
            raise InputError(
                "no item has a known truth, expected at least one: leave the truth out"
            )
        q = np.zeros((truth.size, classes))
        said = used & (truth < classes)  # nobody is right where nobody ever says the right class
        q[said, truth[said]] = 1.0
        return cls(q, used)

    @classmethod
    def of_posteriors(cls, posteriors: Floats) -> Self:
        return cls(posteriors, np.ones(len(posteriors), np.bool_))

    def only(self, some: NDArray[np.bool_]) -> Self:
        return type(self)(self.q, self.used & some)

    def accuracy(self, verdicts: Verdicts) -> Estimate:
        """The share of right verdicts, with its standard error over items and over the truth.

        >>> rule = Yardstick.of_posteriors(np.array([[0.9, 0.1], [0.2, 0.8]]))
        >>> print(rule.accuracy(np.array([[1.0, 0.0], [1.0, 0.0]])))
        0.5500 ± 0.3518
        """
        v, q = verdicts[self.used], self.q[self.used]
        mean = float((v * q).sum(axis=1).mean())
        spread = float((v * v * q).sum(axis=1).mean()) - mean * mean
        return Estimate(mean, math.sqrt(max(spread, 0.0) / len(q)))

    def change(self, before: Verdicts, after: Verdicts) -> Estimate:
        """How much more of the verdicts `after` are right; of the same items, so paired.

        >>> rule = Yardstick.of_posteriors(np.array([[0.9, 0.1], [0.2, 0.8]]))
        >>> one, other = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
        >>> rule.change(one, one), str(rule.change(one, other))
        (Estimate(value=0.0, error=0.0), '-0.3000 ± 0.4528')
        """
        return self.accuracy(after - before)


def second_labels(q: Floats, confusions: Floats) -> list[Estimate]:
    """The gain in accuracy if each labeler labelled every item once more, by labeler.

    Parameters
    ----------
    q : array, items x classes
        The probability of each class for each item.
    confusions : array, labelers x K (truth) x K (said)
        How each labeler labels.

    Examples
    --------
    >>> coin, expert = [[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]
    >>> q = np.array([[0.7, 0.3], [0.6, 0.4], [0.99, 0.01]])
    >>> [str(gain) for gain in second_labels(q, np.array([coin, expert]))]
    ['0.0000 ± 0.0000', '0.1667 ± 0.0720']
    """
    before = q.max(axis=1)
    gains = (_after(q, rows) - before for rows in confusions)
    return [_mean(np.maximum(gain, 0.0)) for gain in gains]


def _after(q: Floats, rows: Floats) -> Floats:
    """The expected confidence of the verdict on each item after another label."""
    said = ((q * rows[:, label]).max(axis=1) for label in range(rows.shape[1]))
    return np.asarray(sum(said))


def _mean(values: Floats) -> Estimate:
    return Estimate(float(values.mean()), float(values.std()) / math.sqrt(len(values)))


#: Pairs of labelers are compared if they share at least this number of items of known truth.
FEWEST_SHARED: Final = 5


@dataclass(frozen=True, slots=True)
class AgainstTruth:
    """What known labels say of a panel.

    `items` are those with a label and a known class; `labelers` are those that are compared,
    `correlation` the mean of the correlations of their errors (None if no pair can be compared),
    `votes` how many independent votes they amount to. `kappa` is each labeler's agreement with the
    truth beyond chance, None for those without labels there; `leaning` how much more often it says
    each class than it is true of the items it labelled, as a share of these.
    """

    items: int
    labelers: int
    correlation: float | None
    votes: float | None
    kappa: dict[Hashable, float | None]
    leaning: dict[Hashable, dict[Hashable, float]]

    @property
    def words(self) -> str:
        """In one sentence."""
        if self.votes is None or self.correlation is None:
            return f"against {self.items:,} known labels no two labelers can be compared"
        return (
            f"against {self.items:,} known labels, {self.labelers} labelers are worth "
            f"{self.votes:.1f} independent votes (mean correlation of errors "
            f"{self.correlation:.2f})"
        )

    def record(self) -> dict[str, Any]:
        kappa = {str(name): value for name, value in self.kappa.items()}
        leaning = {str(m): {str(k): x for k, x in own.items()} for m, own in self.leaning.items()}
        return asdict(self) | {"kappa": kappa, "leaning": leaning}


def against_truth(table: LabelTable, truth: NDArray[np.int64]) -> AgainstTruth:
    """Compare the labels with the class of each item, -1 where it is not known.

    >>> said = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> found = against_truth(LabelTable.from_matrix(said), np.array([0, 1, 0, 1, 0, 1]))
    >>> round(found.correlation, 2), round(found.votes, 2)
    (0.12, 2.41)
    >>> [round(k, 2) for k in found.kappa.values()]
    [0.33, 0.33, 0.67]
    >>> {k: round(x, 2) for k, x in found.leaning[2].items()}  # it says 1 a sixth more often
    {0: -0.17, 1: 0.17}
    """
    known = truth >= 0
    there = known[table.item]
    item, who = table.item[there], table.labeler[there].astype(np.int64)
    wrong = table.said[there] != truth[item]
    used, place = np.unique(item, return_inverse=True)
    M = len(table.labelers)
    correlation, compared = _correlation(place, who, wrong.astype(np.float64), len(used), M)
    votes = None
    if correlation is not None:
        votes = compared / max(1 + (compared - 1) * correlation, 1e-9)
    K = len(table.classes)  # a class that nobody said counts as one more
    said, right = (
        np.bincount(who * (K + 1) + np.minimum(k, K), minlength=M * (K + 1)).reshape(M, K + 1)
        for k in (table.said[there], truth[item])
    )
    given = said.sum(axis=1)
    more = (said - right)[:, :K] / np.maximum(given, 1)[:, None]
    by_chance = (said * right).sum(axis=1) / np.maximum(given, 1) ** 2
    agreed = np.bincount(who, ~wrong, minlength=M) / np.maximum(given, 1)
    kappas: dict[Hashable, float | None] = dict.fromkeys(table.labelers)
    leaning: dict[Hashable, dict[Hashable, float]] = {}
    for m in np.flatnonzero(given).tolist():
        leaning[table.labelers[m]] = dict(zip(table.classes, more[m].tolist(), strict=True))
        if by_chance[m] < 1:
            kappas[table.labelers[m]] = float((agreed[m] - by_chance[m]) / (1 - by_chance[m]))
    return AgainstTruth(len(used), compared, correlation, votes, kappas, leaning)


def _correlation(
    item: NDArray[np.int64], who: NDArray[np.int64], wrong: Floats, items: int, labelers: int
) -> tuple[float | None, int]:
    """The mean correlation of the errors of pairs, and how many labelers are in one."""
    errors, given = np.zeros((items, labelers)), np.zeros((items, labelers))
    errors[item, who], given[item, who] = wrong, 1.0
    shared = given.T @ given
    own = errors.T @ given  # errors of the first on the items of both
    both = errors.T @ errors
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = own / shared, own.T / shared
        covariance = both / shared - first * second
        spread = np.sqrt(first * (1 - first) * second * (1 - second))
        found = np.where(spread > 0, covariance / spread, np.nan)
    upper = np.triu(shared >= FEWEST_SHARED, 1) & np.isfinite(found)
    if not upper.any():
        return None, 0
    members = int((upper.any(axis=0) | upper.any(axis=1)).sum())
    return float(found[upper].mean()), members
