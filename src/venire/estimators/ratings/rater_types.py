r"""Types of rater: what one with a bias, a spread and a share of careless answers says.

A rater of bias b and spread s sees an item of class k (0 to K - 1) at k + b + s * noise, and says
the class whose interval that falls into; in a share `lapse` of the answers it says anything:

    T(l | k) = (1 - lapse) * [ Phi((l + 1/2 - k - b) / s) - Phi((l - 1/2 - k - b) / s) ] + lapse / K

with the first and the last interval open. In addition there are types who never look: one who
answers at random, and for each class one who nearly always says it.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["RaterTypes", "rater_types"]

Floats = NDArray[np.float64]

_BIASES: Final = np.linspace(-2.0, 2.0, 17)
_LAPSES: Final = (0.02, 0.1, 0.3, 0.6)

#: Spreads grow by this factor, from the first up to half of the classes, and at least to 2.
_FIRST, _FACTOR, _LEAST = 0.25, 4 / 3, 2.0

#: The share of other answers of a constant rater.
_CONSTANT: Final = 0.05


class RaterTypes:
    """The types: `tables` is types x K (truth) x K (said); `bias` and `spread` of each.

    For those who never look the bias is 0 and the spread infinite.
    """

    def __init__(self, tables: Floats, bias: Floats, spread: Floats) -> None:
        self.tables, self.bias, self.spread = tables, bias, spread


def rater_types(classes: int) -> RaterTypes:
    """All types of rater for this number of classes.

    >>> kinds = rater_types(5)
    >>> kinds.tables.shape, kinds.tables.sum(axis=2).round(9).min()
    ((686, 5, 5), np.float64(1.0))
    """
    from scipy.special import ndtr

    K, k = classes, np.arange(classes)
    steps = int(np.ceil(np.log(max(_LEAST, K / 2) / _FIRST) / np.log(_FACTOR))) + 1
    made = list(product(_BIASES, _FIRST * _FACTOR ** np.arange(steps), _LAPSES))
    bias, spread, lapse = np.array(made).T
    edge = np.concatenate([[-np.inf], k[:-1] + 0.5, [np.inf]])
    below = ndtr((edge - k[:, None] - bias[:, None, None]) / spread[:, None, None])
    careful = np.diff(below, axis=2)
    tables = careful + lapse[:, None, None] * (1 / K - careful)
    idle = (1 - _CONSTANT) * np.repeat(np.eye(K)[:, None], K, axis=1) + _CONSTANT / K
    idle = np.concatenate([idle, np.full((1, K, K), 1 / K)])
    return RaterTypes(
        np.concatenate([tables, idle]),
        np.concatenate([bias, np.zeros(K + 1)]),
        np.concatenate([spread, np.full(K + 1, np.inf)]),
    )
