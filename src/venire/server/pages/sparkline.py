"""Small charts without axes, for the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

#: The size of the chart, and the room for its line at the edges.
WIDTH, HEIGHT, EDGE = 90, 20, 2


def sparkline(values: Sequence[float]) -> str:
    """The points of a line from 0 to the most; where it goes on straight there are none.

    >>> sparkline([0, 0, 0, 4])
    '2,18 59.3,18 88,2'
    >>> sparkline([])
    ''
    """
    most, step = max(values, default=0) or 1, (WIDTH - 2 * EDGE) / max(len(values) - 1, 1)
    points = []
    for k, value in enumerate(values):
        inside = 0 < k < len(values) - 1
        if inside and values[k - 1] == value == values[k + 1]:
            continue
        y = EDGE + (1 - value / most) * (HEIGHT - 2 * EDGE)
        points.append(f"{_short(EDGE + step * k)},{_short(y)}")
    return " ".join(points)


def _short(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")
