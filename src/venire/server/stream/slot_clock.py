"""The slot clock, and labelers' lead times.

    slot = slot_then + floor((now - then) / slot_seconds)

where `then` is when the stream was loaded, resumed, or its slot length changed. The clock stands
still while a stream is paused or no server runs it, and skips slots that could not be closed in
time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

#: How many of a labeler's latest lead times to keep.
KEPT_TIMES: Final = 50

#: The length of a lease: this factor times this quantile of the lead times.
LEASE_FACTOR, LEASE_QUANTILE = 2.0, 0.9


class SlotClock:
    """Converts the monotonic clock to slots.

    >>> clock = SlotClock(slot=7, now=100.0, seconds=10.0)
    >>> clock.at(129.9), clock.next_at(129.9)
    (9, 130.0)
    >>> clock.pause(125.0)
    >>> clock.at(500.0)
    9
    >>> clock.resume(500.0)
    >>> clock.at(509.9), clock.at(510.0)
    (9, 10)
    """

    def __init__(self, slot: int, now: float, seconds: float, paused: bool = False) -> None:
        self._slot, self._then, self._seconds, self.paused = slot, now, seconds, paused

    def at(self, now: float) -> int:
        """The slot at a moment."""
        if self.paused:
            return self._slot
        return self._slot + max(0, math.floor((now - self._then) / self._seconds))

    def next_at(self, now: float) -> float:
        """When the next slot begins; inf while paused."""
        if self.paused:
            return math.inf
        return self._then + (self.at(now) - self._slot + 1) * self._seconds

    def pause(self, now: float) -> None:
        """Stop the clock in the current slot."""
        self._slot, self.paused = self.at(now), True

    def resume(self, now: float) -> None:
        """Restart the clock; the current slot starts again."""
        if self.paused:
            self._then, self.paused = now, False

    def fall_behind(self, slot: int, now: float) -> int:
        """Set the clock back to an earlier slot that starts now; how many slots are skipped.

        >>> clock = SlotClock(slot=0, now=0.0, seconds=1.0)
        >>> clock.fall_behind(4, now=10.0), clock.at(10.9), clock.at(11.0)
        (6, 4, 5)
        """
        missed = self.at(now) - slot
        self._slot, self._then = slot, now
        return missed

    def rate(self, now: float, seconds: float) -> None:
        """Change the length of slots from now on."""
        self._slot, self._then, self._seconds = self.at(now), now, seconds


def quantile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least this share of the values do not exceed; None if empty.

    >>> quantile([4, 1, 3, 2], 0.5), quantile(range(1, 11), 0.9), quantile([], 0.5)
    (2, 9, None)
    """
    ranked = sorted(values)
    if not ranked:
        return None
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


class LeadTimes:
    """Labelers' times from lease to label, and the length of the next lease.

    A lease lasts twice the labeler's 90th percentile, within bounds. For a labeler without labels
    the whole panel's times are used, and without any the geometric mean of the bounds.

    >>> times = LeadTimes()
    >>> times.ttl("ann", 10, 1000)
    100.0
    >>> for seconds in range(30, 40):
    ...     times.add("ann", seconds)
    >>> times.ttl("ann", 10, 1000), times.ttl("bob", 10, 1000), times.ttl("ann", 10, 60)
    (76.0, 76.0, 60)
    """

    def __init__(self) -> None:
        self._of: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=KEPT_TIMES)
        self._kept: dict[str | None, float | None] = {}

    def add(self, labeler: str, seconds: float) -> None:
        """Record the time from a lease to its label."""
        self._of.setdefault(labeler, deque(maxlen=KEPT_TIMES)).append(seconds)
        self._all.append(seconds)
        self._kept.pop(labeler, None)
        self._kept.pop(None, None)

    def of(self, labeler: str) -> tuple[float, ...]:
        """The recent lead times of a labeler, oldest first."""
        return tuple(self._of.get(labeler, ()))

    def ttl(self, labeler: str, floor: float, ceiling: float) -> float:
        """How long the next lease of this labeler lasts."""
        typical = self._typical(labeler)
        if typical is None:
            return math.sqrt(floor * ceiling)
        return min(max(LEASE_FACTOR * typical, floor), ceiling)

    def _typical(self, labeler: str) -> float | None:
        who = labeler if labeler in self._of else None
        if who not in self._kept:
            self._kept[who] = quantile(self._all if who is None else self._of[who], LEASE_QUANTILE)
        return self._kept[who]
