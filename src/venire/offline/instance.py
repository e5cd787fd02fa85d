"""An offline problem: everything that will arrive, and everyone who could label it.

A schedule gives labelers to items: item s may have labeler m in slot t >= a_s, every pair at
most once, at most `capacity[m]` items for each labeler and slot. An item that ends with the
blocks R, the last of them in slot D(R), earns

    u_s(R) = max(0, w_s (1 - exp(-sum of evidence)) - (D(R) - a_s) - sum of money)

With knowledge of the future an item leaves with its last useful label, so the largest utility on
the way (the paper's u_s) and the utility at the exit have the same optimum, OPT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.tools.arrays import Floats, Ints

#: An item, a labeler and the slot in which it labels the item.
Block = tuple[int, int, int]


class Problem(NamedTuple):
    """An instance in the form that the kernels read; a list of lists is its starts and contents."""

    weight: Floats
    arrival: Ints
    group: NDArray[np.int32]
    start: Ints
    members: NDArray[np.int32]
    barred_start: Ints
    barred: NDArray[np.int32]
    phase: NDArray[np.int32]
    evidence: Floats
    reach: Floats
    capacity: Ints
    money: Floats


@dataclass(frozen=True, eq=False)
class Instance:
    """Items in order of arrival, a panel, and `slots` slots.

    `evidence[i, m]` is what a label of m is worth from slot `since[i]` on. `group[s]` picks the
    labelers who may label item s out of `groups`; None and group 0 are everyone. `barred` are
    pairs of an item and a labeler who may not label it. `money[m]` is what a label of m costs, in
    slots of delay; empty: nothing.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> len(tiny), tiny.may_label(0)
    (2, [0, 1])
    """

    weight: Floats
    arrival: Ints
    slots: int
    evidence: Floats
    capacity: Ints
    since: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    group: NDArray[np.int32] | None = None
    groups: Sequence[NDArray[np.int32]] = (np.zeros(0, np.int32),)
    barred: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    money: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name, kind in (("weight", np.float64), ("arrival", np.int64), ("since", np.int64)):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), kind))
        object.__setattr__(self, "evidence", np.atleast_2d(np.asarray(self.evidence, np.float64)))
        most = np.minimum(np.asarray(self.capacity, np.int64), max(1, len(self)))
        object.__setattr__(self, "capacity", most)
        money = np.asarray(self.money, np.float64)
        object.__setattr__(self, "money", money if len(money) else np.zeros(len(most)))
        if self.group is not None and not self.group.any():
            object.__setattr__(self, "group", None)
        if len(self.arrival) != len(self.weight):
            raise InputError(f"got {len(self.weight)} weights and {len(self.arrival)} arrivals")
        if len(self) and not 0 <= self.arrival.min() <= self.arrival.max() < self.slots:
            raise InputError(f"an item arrives outside of the {self.slots} slots")
        if (np.diff(self.arrival) < 0).any():
            raise InputError("items are not in order of arrival")
        if self.evidence.shape != (len(self.since), len(self.capacity)):
            raise InputError(
                f"got evidence of the shape {self.evidence.shape}, expected a row for each of "
                f"{len(self.since)} phases and a column for each of {len(self.capacity)} labelers"
            )
        if not (np.isfinite(self.evidence).all() and (self.evidence >= 0).all()):
            raise InputError("evidence is negative or not finite, expected numbers from 0 on")
        if self.money.shape != self.capacity.shape or not (
            np.isfinite(self.money).all() and (self.money >= 0).all()
        ):
            raise InputError("expected one price of a label for each labeler, finite, 0 or more")

    def __len__(self) -> int:
        return len(self.weight)

    def may_label(self, item: int) -> list[int]:
        g = 0 if self.group is None else int(self.group[item])
        members = self.groups[g].tolist() if g else range(len(self.capacity))
        without = set(self.barred[self.barred[:, 0] == item, 1].tolist())
        return [m for m in members if m not in without]

    @property
    def open(self) -> bool:
        """Whether everyone may label everything."""
        return self.group is None and not len(self.barred)

    @property
    def patience(self) -> Floats:
        """For how many slots each item may be worth its delay."""
        return np.minimum(np.ceil(self.weight), self.slots - self.arrival)

    @property
    def options(self) -> Ints:
        """How many labelers each item may have, without regard to `barred`."""
        sizes = np.array([len(self.capacity), *(len(g) for g in self.groups[1:])])
        group = np.zeros(len(self), np.int32) if self.group is None else self.group
        return np.asarray(sizes[group], np.int64)

    def phase_of(self, slot: int) -> int:
        """Which row of `evidence` holds in a slot."""
        return int(np.searchsorted(self.since, slot, side="right")) - 1

    def problem(self) -> Problem:
        everyone = np.flatnonzero(self.evidence.max(axis=0) > 0).astype(np.int32)
        useful = np.isin(np.arange(len(self.capacity)), everyone)
        lists = [everyone, *(g[useful[g]].astype(np.int32) for g in self.groups[1:])]
        order = np.argsort(self.barred[:, 0], kind="stable")
        barred = np.searchsorted(self.barred[order, 0], np.arange(len(self) + 1))
        group = np.zeros(len(self), np.int32) if self.group is None else self.group
        return Problem(
            self.weight,
            self.arrival,
            np.ascontiguousarray(group, np.int32),
            np.concatenate([[0], np.cumsum([len(g) for g in lists])]).astype(np.int64),
            np.concatenate(lists).astype(np.int32),
            barred.astype(np.int64),
            np.ascontiguousarray(self.barred[order, 1], np.int32),
            (np.searchsorted(self.since, np.arange(self.slots), side="right") - 1).astype(np.int32),
            self.evidence,
            np.minimum(-np.expm1(-self.evidence), 1.0 - 2.0**-53),
            self.capacity,
            self.money,
        )


def value_of(instance: Instance, schedule: Sequence[Block]) -> float:
    """What a schedule earns; an `InputError` if it is not feasible. Plain code on purpose.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> round(value_of(tiny, [(0, 0, 0), (0, 1, 0), (1, 0, 1)]), 4)
    7.1113
    """
    used: dict[tuple[int, int], int] = {}
    pairs: set[tuple[int, int]] = set()
    evidence: dict[int, float] = {}
    money: dict[int, float] = {}
    last: dict[int, int] = {}
    barred = {(i, m) for i, m in instance.barred.tolist()}
    groups = [frozenset(g.tolist()) for g in instance.groups]
    group = [0] * len(instance) if instance.group is None else instance.group.tolist()
    for s, m, t in schedule:
        if not instance.arrival[s] <= t < instance.slots:
            raise InputError(f"item {s} is labelled in slot {t}, outside of its window")
        if (s, m) in barred or (group[s] and m not in groups[group[s]]):
            raise InputError(f"labeler {m} may not label item {s}")
        if (s, m) in pairs:
            raise InputError(f"labeler {m} labels item {s} twice")
        used[m, t] = used.get((m, t), 0) + 1
        if used[m, t] > instance.capacity[m]:
            raise InputError(f"labeler {m} is over capacity in slot {t}")
        pairs.add((s, m))
        worth = float(instance.evidence[instance.phase_of(t), m])
        evidence[s] = evidence.get(s, 0.0) + worth
        money[s] = money.get(s, 0.0) + float(instance.money[m])
        last[s] = max(last.get(s, 0), t)
    return math.fsum(
        max(
            0.0,
            -float(instance.weight[s]) * math.expm1(-e)
            - (last[s] - int(instance.arrival[s]))
            - money[s],
        )
        for s, e in evidence.items()
    )
