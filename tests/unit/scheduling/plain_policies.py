"""Policies in ordinary Python, as a user would write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venire import PythonPolicy
from venire.scheduling import ItemView, LabelerView

Items = Sequence[ItemView]


class PlainGreedy(PythonPolicy):
    """Algorithm 1: the largest gain, if it is positive; items leave by the rule of the base."""

    def choose(self, labeler: LabelerView, items: Items, slot: int) -> ItemView | None:
        best = max(items, key=lambda item: item.gain(labeler, slot))
        return best if best.gain(labeler, slot) > 0 else None


@dataclass(frozen=True)
class PlainOverlap(PythonPolicy):
    """Fixed overlap: the least labelled first, labelers in the order of the panel."""

    overlap: int = 3

    def order(self, labelers: Sequence[LabelerView], slot: int) -> Sequence[LabelerView]:
        return sorted(labelers, key=lambda labeler: labeler.number)

    def choose(self, labeler: LabelerView, items: Items, slot: int) -> ItemView | None:
        wanted = [item for item in items if item.labels < self.overlap]
        return min(wanted, key=lambda item: item.labels, default=None)

    def leaves(self, item: ItemView, slot: int) -> bool:
        return item.labels >= self.overlap


@dataclass(frozen=True)
class PlainRandom(PythonPolicy):
    """Anything at random; an item leaves when it is nearly certain."""

    seed: int = 0

    def choose(self, labeler: LabelerView, items: Items, slot: int) -> ItemView | None:
        rng = np.random.default_rng((self.seed, slot, labeler.number, labeler.room))
        return items[int(rng.integers(len(items)))]

    def leaves(self, item: ItemView, slot: int) -> bool:
        return item.labels > item.pending and max(item.posterior) > 0.9


class Stranger(PythonPolicy):
    """It does not choose among what it is given."""

    name = "someone-else"

    def choose(self, labeler: LabelerView, items: Items, slot: int) -> ItemView | None:
        return "an item"  # type: ignore[return-value]
