"""Slots from a monotonic clock, and how long labelers take.

    slot = slot_then + floor((now - then) / slot_seconds)

where `then` is the moment at which the stream was loaded, resumed, or given another slot length.
No slot passes while a stream is paused, or while no server runs it; nor do those that a server
could not close in time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

__all__ = ["LeadTimes", "SlotClock", "quantile"]

#: So many lead times of a labeler count.
RECENT: Final = 50

#: A lease lasts so many times the time in which most labels come, ...
TIMES: Final = 2.0

#: ... that is, so many of them.
MOST: Final = 0.9


class SlotClock:
    """Which slot it is.

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
        """When the next slot begins, if nothing happens; inf while paused."""
        if self.paused:
            return math.inf
        return self._then + (self.at(now) - self._slot + 1) * self._seconds

    def pause(self, now: float) -> None:
        """Stay in this slot."""
        self._slot, self.paused = self.at(now), True

    def resume(self, now: float) -> None:
        """Go on; the slot begins anew."""
        if self.paused:
            self._then, self.paused = now, False

    def fall_behind(self, slot: int, now: float) -> int:
        """Be in this earlier slot, which begins now; how many slots do not pass by that.

        >>> clock = SlotClock(slot=0, now=0.0, seconds=1.0)
        >>> clock.fall_behind(4, now=10.0), clock.at(10.9), clock.at(11.0)
        (6, 4, 5)
        """
        missed = self.at(now) - slot
        self._slot, self._then = slot, now
        return missed

    def rate(self, now: float, seconds: float) -> None:
        """Slots have another length from now on."""
        self._slot, self._then, self._seconds = self.at(now), now, seconds


def quantile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least this share of the values do not exceed; None of nothing.

    >>> quantile([4, 1, 3, 2], 0.5), quantile(range(1, 11), 0.9), quantile([], 0.5)
    (2, 9, None)
    """
    ranked = sorted(values)
    if not ranked:
        return None
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


class LeadTimes:
    """How long labelers take from lease to label, and how long a lease should last.

    A lease lasts twice the time in which the labeler gives nine of ten labels, within bounds.
    Of a labeler without labels the panel's times are taken, and with none at all the geometric
    mean of the bounds.

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
        self._all: deque[float] = deque(maxlen=RECENT)
        self._kept: dict[str | None, float | None] = {}

    def add(self, labeler: str, seconds: float) -> None:
        """A label came so long after its lease."""
        self._of.setdefault(labeler, deque(maxlen=RECENT)).append(seconds)
        self._all.append(seconds)
        self._kept.pop(labeler, None)
        self._kept.pop(None, None)

    def of(self, labeler: str) -> tuple[float, ...]:
        """The recent lead times of a labeler, the oldest first."""
        return tuple(self._of.get(labeler, ()))

    def ttl(self, labeler: str, floor: float, ceiling: float) -> float:
        """How long a lease of this labeler should last."""
        most = self._most(labeler)
        if most is None:
            return math.sqrt(floor * ceiling)
        return min(max(TIMES * most, floor), ceiling)

    def _most(self, labeler: str) -> float | None:
        who = labeler if labeler in self._of else None
        if who not in self._kept:
            self._kept[who] = quantile(self._all if who is None else self._of[who], MOST)
        return self._kept[who]
