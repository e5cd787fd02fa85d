"""Simulated streams for the tests of what-if."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire import Everyone, Item, Label, Labeler, Policy, Scheduler

SKILLS = {"ann": 0.9, "bob": 0.8, "cem": 0.75, "dot": 0.7, "eve": 0.65}


def panel(price: float = 0.0) -> list[Labeler]:
    return [Labeler(name, p, capacity=100, price=price) for name, p in SKILLS.items()]


def labels_of(items: int, seed: int) -> tuple[NDArray[np.int64], dict[tuple[str, str], int]]:
    """The truth, and everybody's label of everything."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    right = rng.random((items, len(SKILLS))) < list(SKILLS.values())
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    names = list(SKILLS)
    return truth, {
        (f"i{s}", names[m]): int(said[s, m]) for s in range(items) for m in range(len(names))
    }


def run(
    items: int, seed: int, policy: Policy | None = None, rate: int = 4, price: float = 0.0
) -> tuple[Scheduler, Scheduler, NDArray[np.int64]]:
    """A scheduler before and after a stream; by default everyone labels everything."""
    truth, said = labels_of(items, seed)
    start, s = (
        Scheduler(panel(price), [0, 1], policy or Everyone(), remember=None) for _ in range(2)
    )
    for first in range(0, items, rate):
        s.arrive([Item(f"i{n}", weight=6) for n in range(first, min(first + rate, items))])
        s.observe([Label(a.item, a.labeler, said[a.item, a.labeler]) for a in s.assign()])
        s.close()
    for _ in range(10):
        s.observe([Label(a.item, a.labeler, said[a.item, a.labeler]) for a in s.assign()])
        s.close()
    return start, s, truth
