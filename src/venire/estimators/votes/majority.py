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
from venire.labels.sources import as_table

__all__ = ["MajorityVote", "VoteEstimator", "one_iteration", "vote_shares"]


class VoteEstimator(BaseEstimator):
    """What methods without a likelihood share: skills are computed from the verdicts."""

    def _judge(self, table: LabelTable, posteriors: Floats, monitor: Monitor) -> Self:
        confusions = implied_confusions(table, posteriors)
        labelled = np.diff(table.start) > 0
        K = len(table.classes)
        priors = posteriors[labelled].mean(axis=0) if labelled.any() else np.full(K, 1 / K)
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
        table = as_table(labels)
        return self._judge(table, vote_shares(table), one_iteration())


def vote_shares(table: LabelTable) -> Floats:
    """The share of the votes of each class, items x K.

    >>> vote_shares(LabelTable.from_matrix([[0, 0, 1, 1], [1, 1, 1, 0]])).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    shares = np.empty((len(table.items), len(table.classes)))
    vote_pass(table.start, table.labeler, table.said, np.ones(len(table.labelers)), shares)
    return shares


def one_iteration() -> Monitor:
    """The monitor of a fit without iterations."""
    monitor = Monitor(0.0, 1)
    monitor.report(0.0, 0.0)
    return monitor
