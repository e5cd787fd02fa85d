"""Time for the service: one clock that only goes forward, and one for people.

Slots, leases and back-off are measured on the monotonic clock, so a wall clock that jumps by
an hour changes nothing. The wall clock is only written into rows, for people to read.
"""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """What the service asks for the time."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def wall(self) -> float:
        """Seconds since 1970 in UTC, as far as the machine knows."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970 in UTC, as far as the machine knows."""
        return time.time()


class ManualClock:
    """A clock that is moved by hand, for tests and for replaying a recorded stream.

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
        """Seconds since the clock was made."""
        return self._monotonic

    def wall(self) -> float:
        """Seconds since 1970."""
        return self._wall

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._monotonic += seconds
        self._wall += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock; no time passes."""
        self._wall += seconds
