"""Labels of an item that depend on each other are worth fewer independent ones.

A label model that takes labels for independent, given the class, is overconfident where they are
not. How far they depend on each other can be seen without the truth, and says how many independent
labels they amount to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError
from venire.estimators.base import BaseEstimator
from venire.estimators.passes.vote_counts import dependence_pass
from venire.estimators.votes import implied_confusions
from venire.labels import LabelTable
from venire.labels.partitions import Spread, Table, each, total
from venire.tools.arrays import Floats, softmax


def temper(posteriors: ArrayLike, temperature: ArrayLike) -> Floats:
    """Posteriors to the power `temperature`, normalised: below 1 less confident, same order.

    `temperature` multiplies the log-odds; one number, or one for each item.

    >>> temper([[0.9, 0.1], [0.5, 0.5]], 0.5).round(3).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    q, t = np.asarray(posteriors, dtype=np.float64), np.asarray(temperature, dtype=np.float64)
    if not ((t > 0) & np.isfinite(t)).all():
        raise InputError(f"got the temperature {temperature!r}, expected numbers above 0")
    logs = np.log(np.maximum(q, np.finfo(np.float64).tiny)) * t.reshape(-1, 1)
    return softmax(logs)


def residual_dependence(
    table: Table, posteriors: Floats | Spread, confusions: Floats | None = None
) -> float:
    r"""The mean correlation of two labels of an item, given its class.

    With r = (indicator of what m said of s) - (row k of m's confusion matrix), the mean over
    pairs of labels of the same item and over the posteriors of its class k,

        rho = sum_s sum_k q_sk sum_{m != n} r_m . r_n  /  sum_s sum_k q_sk sum_{m != n} |r_m| |r_n|

    with the norms as expected; `confusions` are by default those that the posteriors imply. Where
    labels are independent given the class, and the posteriors right, it is 0 up to chance; items
    that are hard for everyone, families of labelers and classes that hide several kinds of item
    all make it positive.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(2000, 1))
    >>> sure = np.eye(2)[truth[:, 0]]
    >>> said = np.where(rng.random((2000, 5)) < 0.8, truth, 1 - truth)
    >>> round(abs(residual_dependence(LabelTable.from_matrix(said), sure)), 2)
    0.0
    >>> hard = rng.random((2000, 1)) < 0.3
    >>> said = np.where(rng.random((2000, 5)) < np.where(hard, 0.4, 0.9), truth, 1 - truth)
    >>> round(residual_dependence(LabelTable.from_matrix(said), sure), 2)
    0.31
    """
    rows = implied_confusions(table, posteriors) if confusions is None else confusions
    products, scale = total(table, _dependence, posteriors, rows)
    return float(products / scale) if scale > 0 else 0.0


def _dependence(table: LabelTable, posteriors: Floats, confusions: Floats) -> tuple[float, float]:
    labels = table.start, table.labeler, table.said
    products, scale = dependence_pass(*labels, posteriors, confusions)
    return products, scale


#: How much stronger the dependence of labels is than the posteriors show, and the number of pairs
#: of labels at which half of the observed dependence is believed.
HIDDEN, HALF_BELIEVED = 30.0, 300.0


def certainty(table: Table, posteriors: Floats | Spread, confusions: Floats | None = None) -> float:
    r"""What to multiply the log-odds of every verdict by, 1 where labels err independently.

    1 / (1 + 30 rho), where rho is the `residual_dependence`, shrunk towards 0 while it rests on few
    pairs of labels of the same item, rho P / (P + 300). It is one number for all items, so no
    verdict changes, however many labels an item has; a schedule can use it. The two constants were
    chosen on the 21 sets of docs/real-data.md, where posteriors themselves hide most of the
    dependence: errors that labelers share pass for the truth.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(2000, 1))
    >>> sure = np.eye(2)[truth[:, 0]]
    >>> said = np.where(rng.random((2000, 5)) < 0.8, truth, 1 - truth)
    >>> round(certainty(LabelTable.from_matrix(said), sure), 1)
    1.0
    >>> hard = rng.random((2000, 1)) < 0.1
    >>> said = np.where(rng.random((2000, 5)) < np.where(hard, 0.4, 0.8), truth, 1 - truth)
    >>> round(certainty(LabelTable.from_matrix(said), sure), 1)
    0.3
    """
    pairs = float(total(table, _pairs))
    if not pairs:
        return 1.0
    rho = max(residual_dependence(table, posteriors, confusions), 0.0)
    return 1 / (1 + HIDDEN * rho * pairs / (pairs + HALF_BELIEVED))


def _pairs(table: LabelTable) -> float:
    labels = np.diff(table.start).astype(np.float64)
    return float((labels * (labels - 1)).sum() / 2)


def calibrated(estimator: BaseEstimator) -> Floats:
    r"""The posteriors of a fitted label model, tempered by the dependence that it leaves.

    n labels whose errors have correlation rho are worth n / (1 + (n - 1) rho) independent ones
    (the design effect), so the log-odds of an item with n labels are divided by
    1 + (n - 1) rho. Verdicts stay the same. The truth is not used.

    >>> from venire.estimators import OneCoin
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> hard = rng.random((500, 1)) < 0.3
    >>> said = np.where(rng.random((500, 9)) < np.where(hard, 0.4, 0.9), truth, 1 - truth)
    >>> learned = OneCoin().fit(LabelTable.from_matrix(said))
    >>> right = (learned.posteriors_.argmax(axis=1) == truth[:, 0]).mean()
    >>> before, after = (_sure(q) for q in (learned.posteriors_, calibrated(learned)))
    >>> [round(float(x), 2) for x in (right, before, after)]
    [0.8, 0.98, 0.96]
    """
    table = estimator.table_
    found: Floats = discounted(table, estimator.posteriors_)
    return found


def discounted(table: Table, posteriors: Any) -> Any:
    """Posteriors with the log-odds divided by the design effect of each item."""
    rho = max(residual_dependence(table, posteriors), 0.0)
    return each(table, _tempered, posteriors, rho)


def _tempered(table: LabelTable, posteriors: Floats, rho: float) -> Floats:
    others = np.maximum(np.diff(table.start) - 1, 0)
    return temper(posteriors, 1 / (1 + others * rho))


def _sure(posteriors: Floats) -> float:
    return float(posteriors.max(axis=1).mean())
