"""The synthetic worlds of the suite: each a function of the seed and the number of slots.

All have 30 labelers, Poisson(5) arrivals and weights 3 to 10, as in the paper, unless the regime is
about that. A change to any of them requires a new name for the suite.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from venire.labels import LabelTable
from venire.model import Item, Labeler
from venire.paper.accuracy import evidence
from venire.simulation import Bursty, Poisson, World
from venire.simulation.world import Items

__all__ = [
    "adversarial",
    "bursts",
    "capacities",
    "clones",
    "counterexample",
    "drift",
    "four_classes",
    "one_expert",
    "overload",
    "paper",
    "weak_panel",
]

#: Weights of items that are worth waiting for.
HEAVY = tuple(range(20, 101, 10))

#: How often a clone repeats what its original says.
COPIED = 0.9
#: How many labelers say (nearly) the same, the original among them.
FAMILY = 5


def paper(seed: int, slots: int) -> World:
    """The paper's section 4."""
    return World.synthetic(seed)


def overload(seed: int, slots: int) -> World:
    """40 items a slot for 30 labelers: somebody has to go without."""
    return World.synthetic(seed, arrivals=Poisson(40))


def bursts(seed: int, slots: int) -> World:
    """50 items at once, every ten slots, and nothing in between."""
    return World.synthetic(seed, arrivals=Bursty(50, 10))


def weak_panel(seed: int, slots: int) -> World:
    """The same bursts for labelers of 0.55 to 0.65, with items worth waiting for."""
    panel = np.linspace(0.65, 0.55, 30)
    return World.synthetic(seed, panel, Bursty(50, 10), HEAVY)


def one_expert(seed: int, slots: int) -> World:
    """One labeler of 0.95 among 29 of 0.52 to 0.56; 2 items a slot, worth 5 to 50."""
    panel = [0.95, *np.linspace(0.56, 0.52, 29)]
    return World.synthetic(seed, panel, Poisson(2), tuple(range(5, 51, 5)))


def adversarial(seed: int, slots: int) -> World:
    """20 labelers of 0.6 to 0.85, and 10 of 0.2 to 0.4: they are wrong more often than right."""
    panel = [*np.linspace(0.85, 0.6, 20), *np.linspace(0.4, 0.2, 10)]
    return World.synthetic(seed, panel)


def drift(seed: int, slots: int) -> World:
    """At a third of the time the worst become the best, at two thirds half tire to 0.55."""
    first = np.linspace(0.9, 0.55, 30)
    reversed_ = first[::-1]
    tired = np.where(np.arange(30) % 2 == 0, 0.55, reversed_)
    changes = [(max(1, slots // 3), reversed_.tolist()), (max(2, 2 * slots // 3), tired.tolist())]
    return World.synthetic(seed, first, changes=changes)


def clones(seed: int, slots: int) -> World:
    """30 labelers of 0.6 to 0.85 in families of five: four repeat what the first says.

    A clone repeats its original nine times in ten and otherwise labels independently, so each
    labeler is as good as stated, and together they are worse than they seem. What everyone says of
    every item is drawn in advance; nothing arrives after the `slots` it is drawn for.
    """
    panel = np.repeat(np.linspace(0.85, 0.6, 30 // FAMILY), FAMILY)
    world = World.synthetic(seed, panel)
    items = world.items(slots)
    said = _family_labels(items.truth, panel, world.rng(4))
    table = LabelTable.from_matrix(said)

    def draw(world: World, horizon: int) -> Items:
        rows = np.arange(np.searchsorted(items.arrival, horizon), dtype=np.int32)
        return Items(items.arrival[rows], items.weight[rows], items.truth[rows], source=rows)

    return replace(world, draw=draw, recorded_labels=table)


def _family_labels(
    truth: NDArray[np.int16], panel: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """What each labeler says of each item: items x labelers."""
    shape = (len(truth), len(panel))
    right = rng.random(shape) < panel
    own = np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int64)
    original = np.arange(len(panel)) // FAMILY * FAMILY
    return np.where(rng.random(shape) < COPIED, own[:, original], own)


def capacities(seed: int, slots: int) -> World:
    """12 labelers, the worse the quicker: 0.95 with one label a slot to 0.6 with twenty."""
    panel = np.linspace(0.95, 0.6, 12)
    quick = [1, 1, 1, 2, 2, 3, 4, 6, 8, 10, 15, 20]
    return World.synthetic(seed, panel, Poisson(10), capacity=quick)


def four_classes(seed: int, slots: int) -> World:
    """Four classes, labelers of 0.45 to 0.8."""
    return World.synthetic(seed, np.linspace(0.8, 0.45, 30), classes=4)


def counterexample(seed: int, slots: int) -> World:
    """300 labelers of evidence 0.01, and 600 items of weight 99, all in slot 0 (erratum 4)."""
    p = float(brentq(lambda x: float(evidence(x)) - 0.01, 0.5, 0.9))
    panel = [Labeler(f"m{m + 1}", p) for m in range(300)]
    items = [Item(f"i{i + 1}", 99) for i in range(600)]
    truth = (np.random.default_rng([seed, 2]).integers(2, size=600) + 1).tolist()
    return World.trace(items, [0] * 600, panel, truth, seed=seed)
