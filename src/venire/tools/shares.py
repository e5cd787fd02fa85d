"""Intervals of shares."""

from __future__ import annotations

import math

__all__ = ["share_interval"]


def share_interval(right: float, n: int) -> tuple[float | None, float | None]:
    """Wilson's interval of 95 % for a share; half a success, as for a tie, may be counted.

    >>> share_interval(8, 10), share_interval(0, 0)
    ((0.4902, 0.9433), (None, None))
    """
    if n == 0:
        return None, None
    z = 1.96
    p, scale = right / n, 1 + z**2 / n
    middle = (p + z**2 / (2 * n)) / scale
    spread = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / scale
    return round(max(0.0, middle - spread), 4), round(min(1.0, middle + spread), 4)
