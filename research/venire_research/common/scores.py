"""Accuracy and calibration of verdicts, and of what a method concludes from the same labels.

All items of known truth count. A tie counts in part (`venire.estimators.metrics`), and so does a
missing verdict: 1 / K, as a random class would on average.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import BaseEstimator, right_shares
from venire.estimators.metrics import expected_calibration_error
from venire.labels import LabelTable

__all__ = ["SURE", "aggregated", "score", "streamed"]

#: From this confidence on a verdict counts as sure.
SURE: Final = 0.95

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]


def streamed(verdict: Ints, confidence: Floats, classes: int) -> Floats:
    """Verdicts, -1 for none, as posteriors: items x classes.

    >>> streamed(np.array([1, -1]), np.array([0.9, 0.0]), 2).round(2).tolist()
    [[0.1, 0.9], [0.5, 0.5]]
    """
    given = verdict >= 0
    sure = np.where(given, np.maximum(confidence, 1 / classes), 1 / classes)
    q = np.repeat(((1 - sure) / (classes - 1))[:, None], classes, axis=1)
    q[np.arange(len(verdict)), np.where(given, verdict, 0)] = sure
    rest = np.arange(len(verdict))[given]
    q[rest, verdict[given]] += 1e-6  # a verdict at chance is a verdict, not a tie
    return q


def aggregated(table: LabelTable, method: BaseEstimator) -> Floats:
    """The posteriors that a method finds in the labels; even ones for items without any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few labels cause warnings; their result is scored
        q = method.fit(table).posteriors_.copy()
    q[np.diff(table.start) == 0] = 1 / q.shape[1]
    return q


def score(posteriors: Floats, truth: Ints) -> dict[str, Any]:
    """Accuracy, calibration error, the share of sure verdicts, and how many of those are wrong.

    `truth` is -1 where it is not known; `sure_wrong` is None where nothing is sure.

    >>> score(np.array([[0.99, 0.01], [0.98, 0.02], [0.3, 0.7]]), np.array([0, 1, -1]))
    {'accuracy': 0.5, 'ece': 0.485, 'sure': 1.0, 'sure_wrong': 0.5}
    """
    known = truth >= 0
    q, right = posteriors[known], right_shares(posteriors[known], truth[known])
    confidence = np.minimum(q.max(axis=1), 1.0)
    sure = confidence >= SURE
    return {
        "accuracy": float(right.mean()),
        "ece": expected_calibration_error(confidence, right),
        "sure": float(sure.mean()),
        "sure_wrong": float(1 - right[sure].mean()) if sure.any() else None,
    }
