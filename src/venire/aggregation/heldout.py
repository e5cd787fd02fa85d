r"""How well models predict labels that they have not seen, and the blend that does it best.

A label of labeler m on item s is held out; a model fitted to the others has posteriors q_s from
the other labels of s and confusion matrices P from all of them, and gives what was said the
probability

    sum_k q_sk P_mk(said).

The blend (stacking: Wolpert 1992; Yao, Vehtari, Simpson and Gelman, *Using stacking to average
Bayesian predictive distributions*, 2018) takes the weights under which the mixture of the
models' predictions makes the held-out labels most probable. Every label is predicted by itself,
so that labels which are copies of each other are not rewarded for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.aggregation.draws import label_draws
from venire.aggregation.implied import implied_confusions
from venire.competence.base import BaseEstimator, Floats
from venire.labels import LabelTable

__all__ = ["held_out_predictions", "keep_labels", "stacking_weights"]

#: A table of fewer labels is predicted whole, in five parts; of a larger one a tenth is.
WHOLE: Final = 200_000
PARTS: Final = 5
TENTH: Final = 0.1

#: The weights are found on at most so many predictions.
MOST: Final = 50_000


def held_out_predictions(
    table: LabelTable, models: Mapping[str, BaseEstimator], seed: int = 0
) -> Floats:
    """The probability that each model gives to each held-out label, labels x models.

    Labels of items that have no other label are left out. Which labels are held out together is
    drawn from names, so that the order of the rows is irrelevant.

    >>> from venire.aggregation import MajorityVote
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 1]] * 10)
    >>> held_out_predictions(table, {"majority": MajorityVote()}).mean().round(1)
    np.float64(1.0)
    """
    draw = label_draws(table, seed)
    if draw.size < WHOLE:
        part = np.floor(draw * PARTS).astype(np.int64)
        parts = [part == j for j in range(PARTS)]
    else:
        parts = [draw < TENTH]
    found = [_predict(table, held, models) for held in parts if held.any()]
    return np.concatenate(found) if found else np.empty((0, len(models)))


def _predict(
    table: LabelTable, held: NDArray[np.bool_], models: Mapping[str, BaseEstimator]
) -> Floats:
    rest = keep_labels(table, ~held)
    item = table.item
    known = held & (np.diff(rest.start)[item] > 0)
    s, m, said = item[known], table.labeler[known], table.said[known]
    out = np.empty((s.size, len(models)))
    if not s.size:
        return out
    for j, model in enumerate(models.values()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = model.fit(rest).posteriors_
        confusions = implied_confusions(rest, q)
        out[:, j] = np.einsum("ek,ek->e", q[s], confusions[m, :, said])
    return out


def keep_labels(table: LabelTable, keep: NDArray[np.bool_]) -> LabelTable:
    """The table with some of its labels; items and labelers stay the same.

    >>> table = LabelTable.from_matrix([[0, 1], [1, 1]])
    >>> keep_labels(table, np.array([True, False, True, True])).start.tolist()
    [0, 1, 3]
    """
    start = np.concatenate([[0], np.cumsum(keep)])[table.start]
    return LabelTable(
        table.items, table.labelers, table.classes, start, table.labeler[keep], table.said[keep]
    )


def stacking_weights(predictions: Floats, max_iter: int = 200, tol: float = 1e-4) -> Floats:
    """The weights of the mixture that makes the held-out labels most probable.

    By EM, with one pseudo-label for each model: with nothing held out the weights are equal.

    >>> stacking_weights(np.array([[0.9, 0.1]] * 50 + [[0.2, 0.7]] * 30)).round(1).tolist()
    [0.8, 0.2]
    """
    thin = predictions[:: 1 + len(predictions) // MOST]
    n, models = thin.shape
    weights = np.full(models, 1 / models)
    for _ in range(max_iter):
        share = thin * weights + np.finfo(np.float64).tiny
        share /= share.sum(axis=1, keepdims=True)
        better = (share.sum(axis=0) + 1) / (n + models)
        moved = np.abs(better - weights).max()
        weights = better
        if moved <= tol:
            break
    return weights
