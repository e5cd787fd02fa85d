"""The output function of SplitMix64, for those who draw without compiling: it needs no Numba."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: The step of SplitMix64: 2**64 over the golden ratio.
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)

_FACTOR_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2: Final = np.uint64(0x94D049BB133111EB)


def mix(z: Any) -> Any:
    """Let every bit of the input reach every bit of the output; numbers or arrays of `uint64`.

    It compiles, too: `inlined(mix)`.

    >>> mix(np.array([1, 2], np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    z = (z ^ (z >> np.uint64(30))) * _FACTOR_1
    z = (z ^ (z >> np.uint64(27))) * _FACTOR_2
    return z ^ (z >> np.uint64(31))
