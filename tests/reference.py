"""The algorithms as the paper and the design say them: plain, slow, obviously correct.

Nothing here is fast and nothing is shared with the package but the two formulas of `utility`
that define a gain to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from venire.paper.accuracy import clamp_competence, evidence
from venire.paper.utility import gain, reach, residual


@dataclass
class PlainItem:
    arrival: int
    weight: float
    eligible: frozenset[int]
    labels: list[tuple[int, int]] = field(default_factory=list)  # (slot, labeler)
    exit: int | None = None
    reason: str = ""

    def last(self) -> int:
        return max((slot for slot, _ in self.labels), default=self.arrival)

    def unused(self) -> list[int]:
        used = {m for _, m in self.labels}
        return sorted(self.eligible - used)


@dataclass
class PlainWorld:
    """A panel (competence, capacity, price) and items in order of arrival."""

    competences: Sequence[float]
    capacities: Sequence[int]
    items: list[PlainItem]
    slots: int
    prices: Sequence[float] = ()

    def __post_init__(self) -> None:
        self.evidence = [float(e) for e in evidence(self.competences)]
        self.prices = self.prices or [0.0] * len(self.evidence)
        self.assignments: list[tuple[int, int, int, float]] = []

    def outstanding(self, slot: int) -> list[int]:
        """Arrived and not left, the earliest arrival first."""
        return [i for i, s in enumerate(self.items) if s.arrival <= slot and s.exit is None]

    def gain(self, i: int, m: int, slot: int) -> float:
        item = self.items[i]
        held = sum(self.evidence[k] for _, k in item.labels)
        left = residual(item.weight, held)
        return gain(left, reach(self.evidence[m]), slot - item.last()) - self.prices[m]

    def order(self) -> list[int]:
        """The cheapest evidence first, among equals the best labeler, then the lowest number."""
        p, e = clamp_competence(self.competences), self.evidence

        def merit(m: int) -> float:
            return self.prices[m] / e[m] if e[m] > 0 else inf

        if not any(self.prices):
            return sorted(range(len(p)), key=lambda m: (-p[m], m))
        return sorted(range(len(p)), key=lambda m: (merit(m), -p[m], m))

    def give(self, slot: int, i: int, m: int) -> None:
        self.assignments.append((slot, i, m, self.gain(i, m, slot)))
        self.items[i].labels.append((slot, m))

    def leave(self, slot: int, i: int, reason: str) -> None:
        self.items[i].exit, self.items[i].reason = slot, reason

    def end(self) -> PlainWorld:
        for i in self.outstanding(self.slots - 1):
            self.leave(self.slots - 1, i, "horizon")
        return self


def greedy(world: PlainWorld, *, breaks: bool = False, ahead: int = 1) -> PlainWorld:
    """Algorithm 1. With `breaks`, a labeler that finds nothing ends the slot, as printed.

    An item leaves if nothing gains in the slot `ahead` or later; printed is 0, the slot itself.
    """
    for slot in range(world.slots):
        copies = [m for m in world.order() for _ in range(world.capacities[m])]
        for m in copies:
            best, value = -1, 0.0
            for i in world.outstanding(slot):
                if m in world.items[i].unused() and world.gain(i, m, slot) > value:
                    best, value = i, world.gain(i, m, slot)
            if best >= 0:
                world.give(slot, best, m)
            elif breaks:
                break
        for i in world.outstanding(slot):
            unused = world.items[i].unused()
            if all(world.gain(i, m, slot + ahead) <= 0 for m in unused):
                world.leave(slot, i, "no_gain" if unused else "exhausted")
    return world.end()


def fixed_overlap(world: PlainWorld, overlap: int) -> PlainWorld:
    """Each labeler takes the item with the fewest labels, then the earliest."""
    for slot in range(world.slots):
        for m in (m for m, n in enumerate(world.capacities) for _ in range(n)):
            open_items = [
                i
                for i in world.outstanding(slot)
                if m in world.items[i].unused() and len(world.items[i].labels) < overlap
            ]
            if open_items:
                world.give(slot, min(open_items, key=lambda i: (len(world.items[i].labels), i)), m)
        _leave_satisfied(world, slot, overlap)
    return world.end()


def round_robin(world: PlainWorld, overlap: int) -> PlainWorld:
    """Each labeler takes the first of the queue that it may; it goes to the back."""
    queue: list[int] = []
    for slot in range(world.slots):
        queue += [i for i, s in enumerate(world.items) if s.arrival == slot]
        for m, n in enumerate(world.capacities):
            for _ in range(n):
                i = next((i for i in queue if m in world.items[i].unused()), None)
                if i is not None:
                    world.give(slot, i, m)
                    queue.remove(i)
                    if len(world.items[i].labels) < min(overlap, len(world.items[i].eligible)):
                        queue.append(i)
        _leave_satisfied(world, slot, overlap)
    return world.end()


def everyone(world: PlainWorld) -> PlainWorld:
    """Each labeler takes the earliest item that it has not labelled."""
    for slot in range(world.slots):
        for m in (m for m, n in enumerate(world.capacities) for _ in range(n)):
            i = next((i for i in world.outstanding(slot) if m in world.items[i].unused()), None)
            if i is not None:
                world.give(slot, i, m)
        _leave_satisfied(world, slot, 10**9)
    return world.end()


def _leave_satisfied(world: PlainWorld, slot: int, overlap: int) -> None:
    for i in world.outstanding(slot):
        item = world.items[i]
        if len(item.labels) >= overlap:
            world.leave(slot, i, "overlap")
        elif len(item.labels) >= len(item.eligible):
            world.leave(slot, i, "exhausted")
