"""How many items arrive in each slot.

Each is a small frozen value with `draw(rng, slots)`. The first slots of a longer draw are those
of a shorter one with the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError

__all__ = ["Arrivals", "Bursty", "Fixed", "Poisson", "Trace"]

Counts = NDArray[np.int64]


class Arrivals(Protocol):
    """How many items arrive in each slot."""

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        """The number of arrivals in each of the slots."""
        ...


@dataclass(frozen=True)
class Poisson:
    """A Poisson number of items in each slot (the paper's synthetic set: rate 5).

    >>> Poisson(5).draw(np.random.default_rng(0), 4).tolist()
    [3, 7, 3, 4]
    """

    rate: float = 5.0

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise InputError(f"got an arrival rate of {self.rate}, expected a number above 0")

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        """The number of arrivals in each of the slots."""
        return rng.poisson(self.rate, slots)


@dataclass(frozen=True)
class Fixed:
    """The same number of items in each slot.

    >>> Fixed(2).draw(np.random.default_rng(0), 3).tolist()
    [2, 2, 2]
    """

    items: int = 1

    def __post_init__(self) -> None:
        if self.items < 0:
            raise InputError(f"got {self.items} items a slot, expected at least 0")

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        """The number of arrivals in each of the slots."""
        return np.full(slots, self.items, dtype=np.int64)


@dataclass(frozen=True)
class Bursty:
    """`size` items at once, every `every` slots, and a Poisson trickle in between.

    >>> Bursty(size=50, every=3).draw(np.random.default_rng(0), 5).tolist()
    [50, 0, 0, 50, 0]
    """

    size: int = 50
    every: int = 10
    trickle: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 0 or self.every < 1 or self.trickle < 0:
            raise InputError(
                f"got bursts of {self.size} every {self.every} slots and a trickle of "
                f"{self.trickle}, expected at least 0, 1 and 0"
            )

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        """The number of arrivals in each of the slots."""
        counts = rng.poisson(self.trickle, slots).astype(np.int64)
        counts[:: self.every] += self.size
        return counts


@dataclass(frozen=True)
class Trace:
    """Recorded counts of arrivals; nothing arrives after the last one.

    >>> Trace((3, 0, 1)).draw(np.random.default_rng(0), 5).tolist()
    [3, 0, 1, 0, 0]
    """

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(n < 0 for n in self.counts):
            raise InputError("a count of arrivals is negative, expected at least 0")

    def draw(self, rng: np.random.Generator, slots: int) -> Counts:
        """The number of arrivals in each of the slots."""
        if slots < len(self.counts):
            raise InputError(
                f"the trace has {len(self.counts)} slots and the horizon is {slots}: "
                "give at least as many slots as the trace has"
            )
        counts = np.zeros(slots, dtype=np.int64)
        counts[: len(self.counts)] = self.counts
        return counts
