"""Items that a model can learn something of, and labelers who are right now and then."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable


class World(NamedTuple):
    contents: dict[str, Any]
    truth: NDArray[np.int64]
    said: NDArray[np.int64]
    table: LabelTable

    def right(self, codes: NDArray[np.int64]) -> float:
        return float((codes == self.truth).mean())


def world(
    seed: int,
    items: int = 600,
    skills: tuple[float, ...] = (0.62, 0.64, 0.66, 0.68, 0.7),
    labels: int = 5,
    signal: float = 2.0,
) -> World:
    """Two classes; one of eight features tells them apart, by `signal` standard deviations."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    x = rng.normal(size=(items, 8))
    x[:, 0] += signal * (2 * truth - 1)
    said = np.where(rng.random((items, len(skills))) < skills, truth[:, None], 1 - truth[:, None])
    said[np.argsort(rng.random(said.shape), axis=1) >= labels] = -1
    item, labeler = np.nonzero(said >= 0)
    names = [f"item-{i:04d}" for i in range(items)]
    people = [f"labeler-{m}" for m in range(len(skills))]
    table = LabelTable.from_codes(item, labeler, said[item, labeler], names, people, ["no", "yes"])
    return World(dict(zip(names, x.tolist(), strict=True)), truth, said, table)
