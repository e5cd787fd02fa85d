"""The clocks of the service: a monotonic one to measure with, a wall clock for people.

Slots, leases and backoff are measured on the monotonic clock, so a wall clock that jumps by
an hour changes nothing. Wall-clock times are only stored in rows, for people to read.

    slot = slot_then + floor((now - then) / slot_seconds)

where `then` is when the stream was loaded, resumed, or its slot length changed. The clock of slots
stands still while a stream is paused or no server runs it, and skips slots that could not be closed
in time.
"""

from __future__ import annotations

import math
import time
from typing import Protocol


class Clock(Protocol):
    """Where the service reads the time."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""

    def wall(self) -> float:
        """Seconds since 1970 (UTC), by the machine's clock."""


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class ManualClock:
    """A clock that is advanced by hand, for tests and for replaying a recorded stream.

    >>> clock = ManualClock()
    >>> clock.advance(90)
    >>> clock.monotonic(), clock.wall() - ManualClock().wall()
    (90.0, 90.0)
    >>> clock.jump(-3600)  # someone sets the wall clock back
    >>> clock.monotonic()
    90.0
    """

    def __init__(self, wall: float = 1_800_000_000.0) -> None:
        self._monotonic, self._wall = 0.0, wall

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._wall += seconds

    def jump(self, seconds: float) -> None:
        self._wall += seconds


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
