"""When learning while serving updates its belief: periods, and their first slots.

Time is divided into periods that grow geometrically, each a quarter as long as all the time before
it, up to a longest one; from then on all have that length, so that change is followed however late
it comes. The first slots of a period, a small share of them, are for exploring. Competences are
updated at the end of a period and at the end of its exploration.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import Final

__all__ = ["GROWTH", "LONGEST", "Periods"]

#: The length of a period over all the time before it.
GROWTH: Final = 0.25

#: The usual length of the longest period, in slots.
LONGEST: Final = 100


@dataclass(frozen=True)
class Periods:
    """Periods of at most `longest` slots, a share `explore` of each for exploring.

    >>> periods = Periods(longest=100, explore=0.05)
    >>> [periods.of(slot) for slot in (0, 7, 50, 10_000)]
    [(0, 1), (7, 1), (41, 10), (9957, 100)]
    >>> periods.next_refresh(41), periods.next_refresh(42), periods.next_refresh(51)
    (41, 50, 51)
    """

    longest: int
    explore: float

    def of(self, slot: int) -> tuple[int, int]:
        """The first slot and the length of the period that this slot is in."""
        starts = _growing(self.longest)
        if slot >= starts[-1]:
            return slot - (slot - starts[-1]) % self.longest, self.longest
        k = bisect_right(starts, slot)
        return starts[k - 1], starts[k] - starts[k - 1]

    def next_refresh(self, slot: int) -> int:
        """The first slot, this one or a later one, that ends a period or its exploration."""
        start, length = self.of(slot)
        explored = start + math.ceil(self.explore * length) - 1
        return explored if slot <= explored else start + length - 1


@cache
def _growing(longest: int) -> tuple[int, ...]:
    """The first slots of the periods, up to the first one of the longest length."""
    starts = [0]
    while (length := max(1, int(GROWTH * starts[-1]))) < longest:
        starts.append(starts[-1] + length)
    return tuple(starts)
