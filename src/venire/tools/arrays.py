"""What arrays hold, for annotations; scores as probabilities; the mixing of SplitMix64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: The step of SplitMix64: 2**64 over the golden ratio.
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)

_FACTOR_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2: Final = np.uint64(0x94D049BB133111EB)


def softmax(scores: Floats) -> Floats:
    """Probabilities that are proportional to the exponentials, along the last axis.

    >>> softmax(np.log([[3.0, 1.0]])).tolist()
    [[0.75, 0.25]]
    """
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def mix(z: Any) -> Any:
    """Let every bit of the input reach every bit of the output; numbers or arrays of `uint64`.

    It compiles, too: `inlined(mix)`.

    >>> mix(np.array([1, 2], np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    z = (z ^ (z >> np.uint64(30))) * _FACTOR_1
    z = (z ^ (z >> np.uint64(27))) * _FACTOR_2
    return z ^ (z >> np.uint64(31))
