"""The clocks of the service: a monotonic one to measure with, a wall clock for people.

Slots, leases and backoff are measured on the monotonic clock, so a wall clock that jumps by
an hour changes nothing. Wall-clock times are only stored in rows, for people to read.
"""

from __future__ import annotations

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
        """Advance both clocks."""
        self._monotonic += seconds
        self._wall += seconds

    def jump(self, seconds: float) -> None:
        """Move the wall clock only."""
        self._wall += seconds
