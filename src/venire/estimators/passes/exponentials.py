"""Exponentials of many scores at once, and the logarithm of what they add up to."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.tools.compiling import threaded

__all__ = ["CHUNK", "odds_shares", "sigmoids"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Items whose sigmoids are taken together.
CHUNK: Final = 512

_LOG2E: Final = 1.4426950408889634
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_LN2: Final = 0.6931471805599453
#: Adding 1.5 * 2**52 rounds to a whole number, which then stands in the lowest bits.
_ROUND: Final = 6755399441055744.0


@threaded(fastmath={"contract"})
def sigmoids(x: Floats, grown: Floats, bits: Ints, power: Floats, size: int) -> float:
    """Replace x by 1 / (1 + exp(-x)); returns the sum of log(1 + exp(x)).

    exp(-abs(x)) = 2**k exp(r) by the power series of exp(r) to order 12, good to the last bits;
    `power` is a view of `bits`. Written so that the compiler can do several at a time.
    """
    for j in range(size):
        a = max(-abs(x[j]), -700.0)
        k = a * _LOG2E + _ROUND
        power[j] = k
        k -= _ROUND
        r = (a - k * _LN2_HIGH) - k * _LN2_LOW
        p = 1 / 479001600
        p = p * r + 1 / 39916800
        p = p * r + 1 / 3628800
        p = p * r + 1 / 362880
        p = p * r + 1 / 40320
        p = p * r + 1 / 5040
        p = p * r + 1 / 720
        p = p * r + 1 / 120
        p = p * r + 1 / 24
        p = p * r + 1 / 6
        p = p * r + 0.5
        p = p * r + 1.0
        grown[j] = p * r + 1.0
    for j in range(size):
        bits[j] = (bits[j] + 1023) << 52
    for j in range(size):
        small = grown[j] * power[j]
        grown[j] = 1.0 + small
        power[j] = max(x[j], 0.0)
        x[j] = (1.0 if x[j] >= 0.0 else small) / (1.0 + small)
    p0 = p1 = p2 = p3 = 1.0
    s0 = s1 = s2 = s3 = 0.0
    for j in range(0, size - 3, 4):
        p0 *= grown[j]
        p1 *= grown[j + 1]
        p2 *= grown[j + 2]
        p3 *= grown[j + 3]
        s0 += power[j]
        s1 += power[j + 1]
        s2 += power[j + 2]
        s3 += power[j + 3]
    for j in range(size - size % 4, size):
        p0 *= grown[j]
        s0 += power[j]
    return (s0 + s1) + (s2 + s3) + (math.log(p0) + math.log(p1)) + (math.log(p2) + math.log(p3))


@threaded()
def odds_shares(x: Floats, bits: Ints, grown: Floats, size: int) -> float:
    """Replace x by x / (1 + x); returns the sum of log(1 + x).

    The exponents of 1 + x are added up, their mantissas multiplied; `grown` is a view of `bits`.
    """
    for j in range(size):
        grown[j] = 1.0 + x[j]
        x[j] /= grown[j]
    exponents = 0
    for j in range(size):
        exponents += (bits[j] >> 52) - 1023
        bits[j] = (bits[j] & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
    p0 = p1 = p2 = p3 = 1.0
    for j in range(0, size - 3, 4):
        p0 *= grown[j]
        p1 *= grown[j + 1]
        p2 *= grown[j + 2]
        p3 *= grown[j + 3]
    for j in range(size - size % 4, size):
        p0 *= grown[j]
    return exponents * _LN2 + (math.log(p0) + math.log(p1)) + (math.log(p2) + math.log(p3))
