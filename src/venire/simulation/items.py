"""The items of a simulated stream, as arrays in order of arrival."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.simulation.arrivals import Counts

__all__ = ["Items"]


@dataclass(frozen=True, eq=False)
class Items:
    """What arrives: one entry per item, in order of arrival.

    `truth` is the class that a simulated label is drawn around; `truth_known` says whether
    anybody may be judged by it. `group` picks a set of labelers out of `groups` who alone may
    label the item; group 0 is everyone. `source` is the item's row in a recorded table.
    """

    arrival: NDArray[np.int64]
    weight: NDArray[np.float64]
    truth: NDArray[np.int16]
    truth_known: bool = True
    ids: tuple[Hashable, ...] | None = None
    source: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    group: NDArray[np.int32] | None = None
    groups: tuple[NDArray[np.int32], ...] = (np.zeros(0, np.int32),)

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.arrival)

    def first(self, slots: int) -> NDArray[np.int64]:
        """Entry t is the first item that arrives in slot t or later."""
        if len(self) and self.arrival[-1] >= slots:
            raise InputError(
                f"an item arrives in slot {self.arrival[-1]} and the last slot is {slots - 1}: "
                f"simulate at least {self.arrival[-1] + 1} slots"
            )
        return np.searchsorted(self.arrival, np.arange(slots + 1))

    def name(self, row: int) -> Hashable:
        """The item's id; its number where it has none."""
        return str(row) if self.ids is None else self.ids[row]


def arrivals_of(counts: Counts) -> NDArray[np.int64]:
    """The slot of each item, from the number of items in each slot."""
    return np.repeat(np.arange(len(counts)), counts)


def index_groups(
    eligible: Sequence[frozenset[int] | None],
) -> tuple[NDArray[np.int32], tuple[NDArray[np.int32], ...]]:
    """Give equal sets of labelers one number; None, everyone, is group 0."""
    numbers: dict[frozenset[int] | None, int] = {None: 0}
    group = np.array([numbers.setdefault(s, len(numbers)) for s in eligible], dtype=np.int32)
    members = tuple(np.array(sorted(s or ()), dtype=np.int32) for s in numbers)
    return group, members
