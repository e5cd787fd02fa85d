"""Accuracy and calibration of verdicts, where the truth is known.

A tie counts in part: where the right class is one of t most probable classes, the item counts as
1/t right, as a random choice among them would on average.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError
from venire.tools.arrays import Floats

#: Classes whose probabilities differ by no more than this from the largest are tied.
TIE: Final = 1e-9


def right_shares(posteriors: ArrayLike, truth: ArrayLike) -> Floats:
    """How right the verdict on each item is: 1, 0, or 1/t in a tie of t classes.

    Parameters
    ----------
    posteriors : array, items x classes
        The probability of each class for each item.
    truth : array of items
        The index of the right class; an index outside the columns is never right.

    Examples
    --------
    >>> right_shares([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [0, 0, 0]).tolist()
    [1.0, 0.5, 0.0]
    """
    q, right = np.asarray(posteriors, dtype=np.float64), np.asarray(truth, dtype=np.int64)
    if q.ndim != 2 or right.shape != q.shape[:1]:
        raise InputError(
            f"got posteriors of shape {q.shape} and truth of shape {right.shape}, "
            "expected items x classes and one class for each item"
        )
    top = q >= q.max(axis=1, keepdims=True) - TIE
    known = (right >= 0) & (right < q.shape[1])
    hit = top[np.arange(len(right)), np.where(known, right, 0)] & known
    return np.asarray(hit / top.sum(axis=1))


def error_rate(posteriors: ArrayLike, truth: ArrayLike) -> float:
    """The share of items whose most probable class is wrong, over items of known truth.

    `truth` is the index of the right class of each item, -1 where it is not known.

    >>> error_rate([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [0, 0, -1])
    0.25
    """
    q, right = np.asarray(posteriors, dtype=np.float64), np.asarray(truth, dtype=np.int64)
    known = right >= 0
    if not known.any():
        raise InputError("no item has a known truth, expected at least one")
    return float(1.0 - right_shares(q[known], right[known]).mean())


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 10) -> float:
    r"""The expected calibration error (ECE): the mean gap between confidence and accuracy.

        ECE = sum_b  n_b / n  * | mean of right in b  -  mean of confidence in b |

    over `bins` bins of equal width on [0, 1], as in Guo, Pleiss, Sun and Weinberger, *On
    Calibration of Modern Neural Networks* (2017), section 2; a bin holds its upper end.
    `right` is 1 or 0 for each verdict, or its share in a tie (`right_shares`).

    >>> round(expected_calibration_error([0.9, 0.9, 0.6, 0.6], [1, 1, 1, 0]), 3)
    0.1
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sure.ndim != 1 or sure.shape != hit.shape or not sure.size:
        raise InputError(
            f"got {sure.shape} confidences and {hit.shape} results, expected equal numbers, at "
            f"least one"
        )
    which = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(which, hit - sure, minlength=bins)
    return float(np.abs(gaps).sum() / sure.size)
