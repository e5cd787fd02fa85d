"""The state of a stream, in one place: what a file stores, and what results are computed from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from venire.estimators.streaming.drift import DriftMonitor
from venire.estimators.streaming.items import Finals, numbered

__all__ = ["FIRST_LOOK", "Found", "StreamState"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The first drift check is made after this many labels.
FIRST_LOOK: Final = 100


class Found(NamedTuple):
    """The result of a fit: confusions (labelers x truth x said), class shares, certainty."""

    confusions: Floats
    priors: Floats
    certainty: float = 1.0


@dataclass(eq=False)
class StreamState:
    """The memory of a stream.

    `classes` and `labelers` map names to codes, `items` maps the items in the window to numbers,
    the one that has waited longest for a label first. `labels` are those in the window (see
    `remembered_labels`), `gold` the classes of items where they are known. `known` items were
    numbered and `taken` labels accepted so far; the next drift check is made at `next_look` labels,
    against the beliefs in `looked`.
    """

    classes: dict[Hashable, int]
    labelers: dict[Hashable, int]
    finals: Finals
    monitor: DriftMonitor | None
    items: dict[Hashable, int] = field(default_factory=dict)
    labels: Ints = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    gold: dict[Hashable, int] = field(default_factory=dict)
    known: int = 0
    taken: int = 0
    next_look: int = FIRST_LOOK
    looked: Found | None = None

    @classmethod
    def begin(
        cls,
        classes: Iterable[Hashable],
        labelers: Iterable[Hashable],
        max_finals: int | None,
        drift: float | None,
    ) -> Self:
        """The memory of a stream that has seen no label.

        >>> StreamState.begin(["spam", "ok"], ["ann"], None, None).classes
        {'spam': 0, 'ok': 1}
        """
        monitor = None if drift is None else DriftMonitor(2, drift)
        made = cls(numbered(classes), numbered(labelers), Finals(max_finals), monitor)
        if monitor is not None:
            monitor.expand(len(made.labelers))
        return made
