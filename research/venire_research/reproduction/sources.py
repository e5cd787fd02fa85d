"""The streams of the paper's experiments.

Synthetic: section 4. Real: the recorded labels, items drawn with replacement, arrivals and
weights as in the synthetic set (the paper does not say); the genie knows what Algorithm 3
learns from all labels of the set, kept below 0.99 like what is learned in a phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.paper.accuracy import clamp_competence
from venire.simulation import World
from venire_research.common.label_sets import Sets, load_set

__all__ = ["BIRD", "DOG", "DOG_BINARY", "RHO", "SYNTHETIC", "Source", "world_of"]

#: Competences are clamped at 1 - RHO; the default of `Algorithm2`.
RHO = 0.01


@dataclass(frozen=True)
class Source:
    """Where a stream comes from: `set` names a label set, None is the synthetic stream.

    `short` is what a legend calls it.
    """

    key: str
    title: str
    short: str
    set: str | None = None
    merge: str = "none"

    def settings(self, sets: Sets) -> dict[str, Any]:
        """What identifies the stream, up to its seed."""
        if self.set is None:
            return {"set": None}
        digest = sets.load(self.set, self.merge).digest
        return {"set": self.set, "merge": self.merge, "digest": digest}

    def inputs(self, sets: Sets) -> dict[str, Any]:
        """Where to find the set."""
        if self.set is None or sets.root is None:
            return {}
        return {"data": str(sets.root)}


SYNTHETIC = Source("synthetic", "synthetic", "synthetic")
BIRD = Source("bird", "Bird", "Bird", "bluebird")
DOG_BINARY = Source("dog-binary", "DOG, two classes", "two classes", "dog", "binary")
DOG = Source("dog", "DOG, four classes", "four classes", "dog")


def world_of(
    stream: dict[str, Any], seed: int, data: str | None = None
) -> tuple[World, NDArray[np.float64]]:
    """The world, and its true competences before they are clamped."""
    if stream["set"] is None:
        world = World.synthetic(seed)
        return world, world.competences
    found = load_set(data, stream["set"], stream["merge"])
    known = clamp_competence(found.competences, len(found.table.classes), RHO)
    return World.recorded(found.table, found.truth, known, seed), found.competences
