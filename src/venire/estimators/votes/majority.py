"""Majority vote: every label counts the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from venire.estimators.base import BaseEstimator, Floats
from venire.estimators.convergence import Monitor
from venire.estimators.passes.vote_counts import vote_pass
from venire.estimators.votes.implied import implied_confusions, implied_skills
from venire.labels import LabelTable
from venire.labels.partitions import Table, each, total
from venire.labels.sources import as_labels

__all__ = ["MajorityVote", "VoteEstimator", "one_iteration", "posterior_mass", "vote_shares"]


class VoteEstimator(BaseEstimator):
    """What methods without a likelihood share: skills are computed from the verdicts."""

    def _judge(self, table: Table, posteriors: Any, monitor: Monitor, votes: Any = None) -> Self:
        """The posteriors, and the matrices and skills that they imply, or these votes."""
        votes = posteriors if votes is None else votes
        confusions = implied_confusions(table, votes)
        labelled, _, mass = total(table, posterior_mass, votes)
        K = len(table.classes)
        priors = mass / labelled if labelled else np.full(K, 1 / K)
        skills = implied_skills(confusions, priors)
        return self._settle(table, skills, posteriors, None, monitor, confusions, priors)


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
        return self._judge(table, each(table, vote_shares), one_iteration())


def vote_shares(table: LabelTable) -> Floats:
    """The share of the votes of each class, items x K.

    >>> vote_shares(LabelTable.from_matrix([[0, 0, 1, 1], [1, 1, 1, 0]])).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    shares = np.empty((len(table.items), len(table.classes)))
    vote_pass(table.start, table.labeler, table.said, np.ones(len(table.labelers)), shares)
    return shares


def posterior_mass(table: LabelTable, posteriors: Floats) -> tuple[int, int, Floats]:
    """How many items have labels, how many there are, and the sum of the former's posteriors.

    >>> posterior_mass(LabelTable.from_matrix([[0], [-1]]), np.array([[0.75, 0.25], [0.5, 0.5]]))
    (1, 2, array([0.75, 0.25]))
    """
    labelled = np.diff(table.start) > 0
    return int(labelled.sum()), labelled.size, posteriors[labelled].sum(axis=0)


def one_iteration() -> Monitor:
    """The monitor of a fit without iterations."""
    monitor = Monitor(0.0, 1)
    monitor.report(0.0, 0.0)
    return monitor
