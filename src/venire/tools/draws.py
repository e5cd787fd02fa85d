"""Random draws that depend on what they are for, not on when they are made.

A counter-based generator (SplitMix64's output function over a seed and two numbers): the label of
item 7 by labeler 3 is the same under every schedule, so that schedules are compared on the same
labels, and no state has to be stored or replayed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from venire.tools.compiling import inlined

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


_mix = inlined(mix)


@inlined
def uniform(seed: int | np.uint64, a: int, b: int) -> float:
    """A number in [0, 1), the same for the same three numbers."""
    z = _mix(np.uint64(seed) + GOLDEN * (np.uint64(a) + np.uint64(1)))
    z = _mix(z + GOLDEN * (np.uint64(b) + np.uint64(1)))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@inlined
def below(seed: int, a: int, b: int, n: int) -> int:
    """A whole number in 0..n-1, the same for the same four numbers."""
    return min(int(uniform(seed, a, b) * n), n - 1)
