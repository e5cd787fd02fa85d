"""Matching fitted classes to their names: EM may find the classes with their names exchanged.

The likelihood does not depend on the names; only the labels identify the classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import Floats

__all__ = ["best_names", "margin"]


def best_names(joint: Floats) -> NDArray[np.intp]:
    """The name of each class under which most labels are right; `joint` counts truth x said.

    >>> best_names(np.array([[1.0, 9.0], [8.0, 2.0]])).tolist()
    [1, 0]
    >>> best_names(np.eye(3)).tolist()
    [0, 1, 2]
    """
    K = len(joint)
    if (joint.argmax(axis=1) == np.arange(K)).all():
        return np.arange(K)
    from scipy.optimize import linear_sum_assignment

    names: NDArray[np.intp] = linear_sum_assignment(joint, maximize=True)[1]
    gained = joint[np.arange(K), names].sum() - np.trace(joint)
    return names if gained > 1e-9 * joint.sum() else np.arange(K)


def margin(joint: Floats) -> float:
    """How far two names are from being swapped: 1 if no label supports it, below 0 if most do.

    For the two classes that are closest to it, the share of right labels less that of labels that
    would be right if the two swapped names. Pairs with less than 1 % of the labels between them do
    not count.

    >>> margin(np.array([[50.0, 30.0], [0.0, 20.0]]))
    0.4
    """
    right = np.diag(joint)
    straight, swapped = right[:, None] + right, joint + joint.T
    mass = straight + swapped
    pairs = np.triu(mass > 0.01 * joint.sum(), 1)
    return float(((straight - swapped)[pairs] / mass[pairs]).min(initial=1.0))
