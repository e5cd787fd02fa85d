"""The votes: majority, and weighted by how often a labeler agrees with the weighted vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.base import TIE, BaseEstimator, Monitor
from venire.estimators.gold import Gold, gold_votes, shares_by
from venire.estimators.passes import agreement_pass, count_labels
from venire.labels import LabelTable
from venire.labels.partitions import Spread, Table, each, labels_given, total
from venire.labels.sources import as_labels
from venire.tools.arrays import Floats

#: Pseudo-labels of the whole panel in each row, so that one label makes nobody infallible.
PANEL_LABELS: Final = 2.0


def implied_confusions(table: Table, posteriors: Floats | Spread) -> Floats:
    r"""The confusion matrices that posteriors imply, labelers x K (truth) x K (said).

        P_mkl  ~  2 C_kl + sum of q_sk over the items s of which m said l

    where row k of C is how the whole panel labels items of class k.

    >>> table = LabelTable.from_matrix([[0, 0], [1, 0], [1, 1], [1, -1]])
    >>> q = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    >>> implied_confusions(table, q).round(2).tolist()
    [[[0.98, 0.02], [0.08, 0.92]], [[0.98, 0.02], [0.35, 0.65]]]
    """
    counts: Floats = total(table, soft_counts, posteriors)
    panel = counts.sum(axis=0) + 0.1 + np.eye(len(table.classes)) * 0.5
    counts = counts + PANEL_LABELS * panel / panel.sum(axis=1, keepdims=True)
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


def soft_counts(table: LabelTable, posteriors: Floats) -> Floats:
    """Labels weighted by the posteriors, labelers x K (truth) x K (said).

    >>> soft_counts(LabelTable.from_matrix([[0, 1]]), np.array([[0.9, 0.1]])).tolist()
    [[[0.9, 0.0], [0.1, 0.0]], [[0.0, 0.9], [0.0, 0.1]]]
    """
    K = posteriors.shape[1]
    counts = np.empty((len(table.labelers), K, K))
    count_labels(table.start, table.labeler, table.said, posteriors, counts)
    return counts


def implied_skills(confusions: Floats, priors: Floats) -> Floats:
    """The chance that a labeler is right about an item, sum_k pi_k P_mkk.

    >>> implied_skills(np.array([[[0.9, 0.1], [0.5, 0.5]]]), np.array([0.5, 0.5])).tolist()
    [0.7]
    """
    return np.asarray(np.einsum("mkk,k->m", confusions, priors))


class VoteEstimator(BaseEstimator):
    """What methods without a likelihood share: skills are computed from the verdicts."""

    def _judge(
        self,
        table: Table,
        posteriors: Any,
        votes: Any = None,
        checked: Table | None = None,
        monitor: Monitor | None = None,
    ) -> Self:
        """The posteriors, and the matrices and skills that they imply, or these votes.

        `checked` are the labels that say something about who gave them, by default all.
        """
        votes = posteriors if votes is None else votes
        confusions = implied_confusions(table if checked is None else checked, votes)
        labelled, _, mass = total(table, posterior_mass, votes)
        K = len(table.classes)
        priors = mass / labelled if labelled else np.full(K, 1 / K)
        skills = implied_skills(confusions, priors)
        return self._settle(table, skills, posteriors, confusions, priors, monitor=monitor)


@dataclass(eq=False)
class MajorityVote(VoteEstimator):
    r"""The class that most labelers say.

        q_sk = share of the labels of s that say k

    A tie stays a tie in `posteriors_`; in `labels_` it is broken by a draw from `seed` and the
    names of item and class. Confusion matrices and skills are those that the shares imply
    (`implied_confusions`); there is no likelihood. It needs no assumption and learns nothing: no
    labeler is better than another, and a share is not a probability (seven labels against three are
    hardly ever wrong).

    Examples
    --------
    >>> rows = [("a", "ann", "yes"), ("a", "bob", "yes"), ("a", "cy", "no"), ("b", "ann", "no")]
    >>> vote = MajorityVote().fit(rows)
    >>> vote.labels_
    {'a': 'yes', 'b': 'no'}
    >>> vote.posteriors_.round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """

    name: ClassVar[str] = "majority"

    def fit(self, labels: Any) -> Self:
        """Count the votes."""
        table = as_labels(labels)
        return self._judge(table, each(table, vote_shares))


def vote_shares(table: LabelTable) -> Floats:
    """The share of the votes of each class, items x K.

    >>> vote_shares(LabelTable.from_matrix([[0, 0, 1, 1], [1, 1, 1, 0]])).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    return shares_by(table, np.ones(len(table.labelers)), None)


def posterior_mass(table: LabelTable, posteriors: Floats) -> tuple[int, int, Floats]:
    """How many items have labels, how many there are, and the sum of the former's posteriors.

    >>> posterior_mass(LabelTable.from_matrix([[0], [-1]]), np.array([[0.75, 0.25], [0.5, 0.5]]))
    (1, 2, array([0.75, 0.25]))
    """
    labelled = np.diff(table.start) > 0
    return int(labelled.sum()), labelled.size, posteriors[labelled].sum(axis=0)


Counts = NDArray[np.int64]

#: Pseudo-labels of the panel's mean agreement.
SHRINK: Final = 4.0


@dataclass(eq=False)
class WeightedMajority(VoteEstimator):
    r"""The class with the largest sum of weights, weights learned from the verdicts.

    From equal weights it repeats, until no weight moves by more than `tol`,

        verdict of s = the classes of the largest sum of weights (a tie counts as its share)
        a_m = ( shrink * panel's mean + times m said the verdict ) / ( shrink + labels of m )
        w_m = max( 0, (K a_m - 1) / (K - 1) )

    This is the iterative weighted majority vote of Li and Yu, *Error rate bounds and iterative
    weighted majority voting for crowdsourcing* (2014): the weight is linear in the agreement,
    0 at chance and 1 for one who always agrees. It minimises a bound on the error rate, and it
    does not let a few labelers decide, as log-odds do when agreement nears 1. Shrinking the
    agreement towards the panel's keeps labelers with few labels near the others.

    `posteriors_` are the shares of the weights. There is no likelihood.

    Parameters
    ----------
    max_iter : int
        The maximum number of rounds.
    tol : float
        Stop when the largest change of a weight is at most this.
    shrink : float
        Pseudo-labels of each labeler, with the panel's mean agreement.

    Attributes
    ----------
    weights_ : array
        The weight of each labeler, between 0 and 1.

    Notes
    -----
    Chosen among eight rules on 11 kinds of synthetic world, 12 worlds of each (mean error,
    majority 16.8 %): linear weights with hard verdicts 15.7, with shares in their place 15.7;
    log-odds 15.8 and 15.8; with the labeler's own vote left out of the verdict it is compared with,
    16.0, 15.8, 16.1 and 15.9.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=(400, 1))
    >>> wrong = (truth + rng.integers(1, 3, size=(400, 5))) % 3
    >>> said = np.where(rng.random((400, 5)) < [0.9, 0.8, 0.4, 0.4, 0.4], truth, wrong)
    >>> vote = WeightedMajority().fit(LabelTable.from_matrix(said, classes=3))
    >>> vote.weights_.round(2).tolist()
    [0.85, 0.74, 0.19, 0.19, 0.2]
    """

    name: ClassVar[str] = "weighted-majority"

    max_iter: int = 100
    tol: float = 1e-6
    shrink: float = SHRINK

    def fit(self, labels: Any, gold: Gold | None = None) -> Self:
        """Vote, weigh, and vote again.

        With `gold`, a mapping of item to class, the first weights are those by gold
        (`gold_votes`), and the verdicts on these items are known.
        """
        if not 0 <= self.shrink < np.inf:
            raise InputError(f"got shrink={self.shrink!r}, expected a finite count, 0 or more")
        table = as_labels(labels)
        monitor = Monitor(self.tol, self.max_iter)
        told = gold_votes(table, gold)
        weights = np.ones(len(table.labelers)) if told is None else told.weights
        known = None if told is None else told.known
        given, K = labels_given(table), len(table.classes)
        while not monitor.done:
            better = self._weigh(total(table, _agreed, weights, known), given, K)
            monitor.report(0.0, float(np.abs(better - weights).max()))
            weights = better
        self.weights_ = weights
        return self._judge(table, each(table, shares_by, weights, known), monitor=monitor)

    def _weigh(self, agreed: Floats, given: Counts, K: int) -> Floats:
        mean = agreed.sum() / max(given.sum(), 1)
        total = np.maximum(given + self.shrink, np.finfo(np.float64).tiny)
        agreement = (agreed + self.shrink * mean) / total
        weights = np.maximum(K * agreement - 1, 0.0) / (K - 1)
        return weights if weights.any() else np.ones(given.size)


def _agreed(table: LabelTable, weights: Floats, known: Counts | None) -> Floats:
    """How often each labeler said what the weighted vote says."""
    agreed = np.empty(weights.size)
    shares = shares_by(table, weights, known)
    agreement_pass(table.start, table.labeler, table.said, shares, TIE, agreed)
    return agreed
