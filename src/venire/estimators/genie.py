"""Competences that are given, not learned (the genie of the paper's section 3.1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from venire.errors import InputError
from venire.estimators.base import BaseEstimator, Monitor
from venire.labels import LabelTable
from venire.labels.partitions import each, total
from venire.labels.sources import as_labels
from venire.model import Labeler
from venire.paper.accuracy import vote_weight
from venire.tools.arrays import Floats, softmax


@dataclass(eq=False)
class Known(BaseEstimator):
    r"""The competences are given; `fit` only computes the posteriors of the items.

    The posterior of an item is that of `venire.paper.accuracy.posterior`: every class equally
    likely beforehand, each label counted with its vote weight (paper, eq. 1),

        P(class k | labels) ~ exp( sum of vote_weight_m over the labelers m who said k )

    with competences brought into the paper's range, so that a labeler below chance is
    ignored rather than inverted.

    Parameters
    ----------
    competences : mapping of labeler to competence, or sequence of Labeler
        It may contain labelers who are not in the table.

    Examples
    --------
    >>> rows = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "bob", "no")]
    >>> known = Known({"ann": 0.9, "bob": 0.6}).fit(LabelTable.from_rows(rows))
    >>> known.labels_
    {'a': 'yes', 'b': 'no'}
    >>> known.posteriors_.round(3).tolist()
    [[0.143, 0.857], [0.6, 0.4]]
    """

    competences: Mapping[Hashable, float] | Sequence[Labeler]

    def fit(self, labels: Any) -> Self:
        """Look up the competences and compute the posteriors of the items."""
        table = as_labels(labels)
        given = self._by_name()
        missing = [name for name in table.labelers if name not in given]
        if missing:
            raise InputError(
                f"no competence is given for labeler {missing[0]!r} "
                f"({len(missing)} in all), expected one for each labeler of the table"
            )
        competences = np.array([given[name] for name in table.labelers], dtype=np.float64)
        posteriors = each(table, _posteriors, competences)
        height = float(total(table, _log_likelihood, competences))
        settled = Monitor(reason="converged")
        return self._settle(table, competences, posteriors, log_likelihood=height, monitor=settled)

    def _by_name(self) -> dict[Hashable, float]:
        given: dict[Hashable, float] = {}
        pairs = (
            self.competences.items()
            if isinstance(self.competences, Mapping)
            else ((labeler.id, labeler.competence) for labeler in self.competences)
        )
        for name, p in pairs:
            if p is None or not 0 <= p <= 1:
                raise InputError(
                    f"labeler {name!r} has competence {p!r}, expected a known probability"
                )
            given[name] = float(p)
        return given


def _posteriors(table: LabelTable, competences: Floats) -> Floats:
    return softmax(_scores(table, competences))


def _log_likelihood(table: LabelTable, competences: Floats) -> float:
    n, K = len(table.items), len(table.classes)
    scores = _scores(table, competences)
    top = scores.max(axis=1, keepdims=True)
    norm = np.exp(scores - top).sum(axis=1, keepdims=True)
    # p = exp(weight) * q and p + (K - 1) q = 1, so the chance of one wrong class is:
    log_wrong = -np.log(np.exp(vote_weight(competences, K)) + (K - 1))
    height = (top + np.log(norm)).sum() - n * np.log(K) + log_wrong[table.labeler].sum()
    return float(height)


def _scores(table: LabelTable, competences: Floats) -> Floats:
    """The sum of the weights of those who said each class, items x K."""
    n, K = len(table.items), len(table.classes)
    weight = vote_weight(competences, K)
    cell = table.item * K + table.said
    scores = np.bincount(cell, weight[table.labeler], minlength=n * K)
    return scores.reshape(n, K).astype(np.float64)
