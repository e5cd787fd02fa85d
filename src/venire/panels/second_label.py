r"""What a second label of the same labeler would bring, if its errors were new ones.

With q the probability of each class of an item, and P the confusion matrix of a labeler, one more
label l of it comes with probability sum_k q_k P_kl, and the verdict is right with probability
max_k q_k P_kl of that. So a second label of an item brings, on average,

    sum_l max_k q_k P_kl  -  max_k q_k.

This takes for granted that the second label errs independently of the first and of everybody
else's. A program that answers the same again brings nothing, and one that is hard to convince
brings less: read it as an upper bound, and try it on a few items before paying for it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from venire.panels.yardstick import Estimate

__all__ = ["second_labels"]

Floats = NDArray[np.float64]


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
