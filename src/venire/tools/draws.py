"""Random draws that depend on what they are for, not on when they are made.

A counter-based generator (SplitMix64's output function over a seed and two numbers): the label of
item 7 by labeler 3 is the same under every schedule, so that schedules are compared on the same
labels, and no state has to be stored or replayed.
"""

from __future__ import annotations

import numpy as np

from venire.tools.arrays import GOLDEN, mix
from venire.tools.compiling import inlined

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
