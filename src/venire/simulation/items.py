"""The items of a simulated stream, as arrays in order of arrival."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.simulation.arrivals import Counts

__all__ = ["Items"]


#: The most excluded labelers that are listed for an item; with more it gets a group.
FEW = 4


@dataclass(frozen=True, eq=False)
class Masks:
    """Who may label which item.

    `group` picks a set of labelers out of `groups`, who alone may label the item; group 0, like
    None, is everyone. `barred` are pairs of an item and a labeler who may not label it.
    """

    group: NDArray[np.int32] | None = None
    groups: tuple[NDArray[np.int32], ...] = (np.zeros(0, np.int32),)
    barred: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))

    @classmethod
    def of(cls, allowed: Sequence[frozenset[int] | None], labelers: int) -> Masks:
        """One set of labelers for each item, None for everyone.

        A set that lacks only a few ("anyone but the author") is everyone with those barred;
        other sets that are equal share a group.
        """
        everyone = frozenset(range(labelers))
        numbers: dict[frozenset[int] | None, int] = {None: 0}
        group = np.zeros(len(allowed), np.int32)
        barred: list[tuple[int, int]] = []
        for i, members in enumerate(allowed):
            lacking = frozenset() if members is None else everyone - members
            if len(lacking) <= FEW and len(lacking) < labelers:
                barred += [(i, m) for m in sorted(lacking)]
            else:
                group[i] = numbers.setdefault(members, len(numbers))
        groups = tuple(np.array(sorted(s or ()), dtype=np.int32) for s in numbers)
        return cls(group, groups, np.array(barred, np.int32).reshape(-1, 2))

    def take(self, rows: NDArray[np.int32]) -> Masks:
        """The masks of these items, in this order; items may repeat."""
        if self.group is None:
            return self
        places: dict[int, list[int]] = {}
        for i, m in self.barred.tolist():
            places.setdefault(i, []).append(m)
        barred = [(k, m) for k, i in enumerate(rows.tolist()) for m in places.get(i, ())]
        return Masks(self.group[rows], self.groups, np.array(barred, np.int32).reshape(-1, 2))

    def may_label(self, item: int) -> tuple[NDArray[np.int32] | None, NDArray[np.int32]]:
        """The only labelers who may label the item (None: anyone), and those who may not."""
        g = 0 if self.group is None else int(self.group[item])
        return self.groups[g] if g else None, self.barred[self.barred[:, 0] == item, 1]


@dataclass(frozen=True, eq=False)
class Items:
    """What arrives: one entry per item, in order of arrival.

    `truth` is the class that a simulated label is drawn around; `truth_known` says whether
    it is used to judge verdicts. `source` is the item's row in a recorded table.
    """

    arrival: NDArray[np.int64]
    weight: NDArray[np.float64]
    truth: NDArray[np.int16]
    truth_known: bool = True
    ids: tuple[Hashable, ...] | None = None
    source: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    masks: Masks = field(default_factory=lambda: Masks())

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
    if counts.sum(dtype=np.float64) >= 2**31:
        raise InputError(
            f"got {counts.sum(dtype=np.float64):.3g} items, expected fewer than 2**31: "
            "fewer slots, or fewer arrivals"
        )
    return np.repeat(np.arange(len(counts)), counts)
