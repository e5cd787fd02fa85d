"""Synthetic ratings of which the truth is known: classes with and without an order, and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rng = np.random.Generator
#: What was said (items x labelers, -1 for nothing), the truth, the number of classes.
Rated = tuple[Ints, Ints, int]

EVEN = np.array([-1.2, -0.4, 0.4, 1.2])


def seen_by(rng: Rng, items: int, labelers: int, each: int) -> NDArray[np.bool_]:
    """Who labels what: as many labelers for each item, drawn at random."""
    rank = rng.random((items, labelers)).argsort(axis=1).argsort(axis=1)
    return np.asarray(rank < each)


def finish(rng: Rng, said: Ints, K: int, each: int, spammers: int) -> Ints:
    """Replace some labelers by spammers (anything, one class, a habit), and thin out."""
    items, labelers = said.shape
    for m in rng.choice(labelers, spammers, replace=False):
        habit = (np.full(K, 1 / K), np.eye(K)[rng.integers(K)], rng.dirichlet(np.ones(K)))
        said[:, m] = rng.choice(K, items, p=habit[rng.integers(3)])
    return np.where(seen_by(rng, items, labelers, each), said, -1)


def latent(
    rng: Rng, items: int = 500, labelers: int = 20, each: int = 5, spammers: int = 0,
    edges: Floats | None = None, gain: float = 0.0, own: float = 0.0, two_humps: bool = False,
) -> Rated:  # fmt: skip
    """A normal score cut at thresholds; labelers have bias, noise, perhaps gain or own cuts."""
    z = rng.normal(size=items)
    if two_humps:
        z = 0.5 * z + rng.choice([-1.2, 1.2], items)
    cuts = EVEN if edges is None else edges
    bias, noise = rng.normal(0, 0.5, labelers), rng.uniform(0.4, 1.0, labelers)
    seen = np.exp(rng.normal(0, gain, labelers)) * z[:, None] + bias
    seen += noise * rng.normal(size=(items, labelers))
    moved = np.sort(cuts + own * rng.normal(size=(labelers, cuts.size)), axis=1)
    said = np.stack([np.searchsorted(moved[m], seen[:, m]) for m in range(labelers)], axis=1)
    K = cuts.size + 1
    return finish(rng, said, K, each, spammers), np.searchsorted(cuts, z), K


def rounded(
    rng: Rng, items: int = 500, labelers: int = 20, each: int = 5, spammers: int = 0, K: int = 5,
    noise: tuple[float, float] = (0.5, 1.3),
) -> Rated:  # fmt: skip
    """The class plus bias and noise, rounded."""
    truth = rng.choice(K, items, p=rng.dirichlet(np.full(K, 5.0)))
    bias, spread = rng.normal(0, 0.4, labelers), rng.uniform(*noise, labelers)
    seen = truth[:, None] + bias + spread * rng.normal(size=(items, labelers))
    said = np.clip(np.rint(seen), 0, K - 1).astype(np.int64)
    return finish(rng, said, K, each, spammers), truth, K


def coin(rng: Rng, labelers: int = 20, each: int = 5, spammers: int = 2) -> Rated:
    """No order: every wrong class is as likely."""
    truth = rng.integers(5, size=(500, 1))
    wrong = (truth + rng.integers(1, 5, size=(500, labelers))) % 5
    right = rng.random((500, labelers)) < rng.uniform(0.4, 0.9, labelers)
    return finish(rng, np.where(right, truth, wrong), 5, each, spammers), truth[:, 0], 5


def confused(rng: Rng, each: int = 5, spammers: int = 2) -> Rated:
    """No order: everybody takes the same classes for the same others."""
    truth = rng.choice(5, 500, p=rng.dirichlet(np.full(5, 5.0)))
    errors = rng.dirichlet(np.full(5, 0.5), 5) * (1 - np.eye(5)) + 1e-9
    errors /= errors.sum(axis=1, keepdims=True)
    said = np.empty((500, 20), np.int64)
    for m in range(20):
        right = rng.uniform(0.45, 0.85, 5)
        rows = errors * (1 - right)[:, None] + np.diag(right)
        steps = rows[truth].cumsum(axis=1)
        said[:, m] = (rng.random((500, 1)) > steps).sum(axis=1).clip(0, 4)
    return finish(rng, said, 5, each, spammers), truth, 5


def uneven(rng: Rng) -> Floats:
    return np.sort(rng.normal(0, 1, 4)) + 0.3 * np.arange(4) - 0.45


#: Those that the method was chosen on, at seeds of their own.
SEEN: dict[str, Callable[[Rng], Rated]] = {
    "latent": latent,
    "latent, 4 of 20 spammers": lambda r: latent(r, spammers=4),
    "latent, 3 labels each": lambda r: latent(r, 800, each=3),
    "latent, 8 labelers, 1 spammer": lambda r: latent(r, 200, 8, 8, 1),
    "uneven thresholds, 2 spammers": lambda r: latent(r, spammers=2, edges=uneven(r)),
    "unequal gains, 2 spammers": lambda r: latent(r, spammers=2, gain=0.3),
    "thresholds of their own, 2 spammers": lambda r: latent(r, spammers=2, own=0.3),
    "rounded": rounded,
    "rounded, 4 of 20 spammers": lambda r: rounded(r, spammers=4),
    "rounded, precise, 3 labels each": lambda r: rounded(r, each=3, noise=(0.3, 0.8)),
}
#: Ordered kinds that it was not chosen on.
UNSEEN: dict[str, Callable[[Rng], Rated]] = {
    "3 classes": lambda r: latent(r, spammers=2, edges=np.array([-0.5, 0.5])),
    "7 classes": lambda r: rounded(r, spammers=2, K=7, noise=(0.6, 1.8)),
    "10 classes": lambda r: rounded(r, spammers=2, K=10, noise=(0.8, 2.5)),
    "two humps": lambda r: latent(r, spammers=2, two_humps=True),
    "60 labelers, 4 labels each": lambda r: latent(r, labelers=60, each=4, spammers=10),
    "3 labelers": lambda r: latent(r, 300, 3, 3),
}
#: Classes whose order means nothing.
UNORDERED: dict[str, Callable[[Rng], Rated]] = {
    "coin, 2 spammers": coin,
    "coin, 40 labelers, 4 labels each": lambda r: coin(r, 40, 4, 0),
    "confused, 2 spammers": confused,
    "confused, 10 labels each": lambda r: confused(r, 10, 0),
}


def numbers(
    rng: Rng, items: int = 400, labelers: int = 20, each: int = 5, spammers: int = 0,
    bias: float = 6.0, noise: tuple[float, float] = (3.0, 12.0), slips: float = 0.0,
    tail: float | None = None, skewed: bool = False,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Measurements on a scale of some 0 to 100, nan where there is none, and the truth."""
    truth = rng.gamma(2, 15, items) if skewed else rng.normal(50, 15, items)
    error = rng.normal(size=(items, labelers))
    if tail is not None:
        error = rng.standard_t(tail, size=(items, labelers))
    said = truth[:, None] + rng.normal(0, bias, labelers) + rng.uniform(*noise, labelers) * error
    slipped = rng.random(said.shape) < slips
    said = np.where(slipped, rng.uniform(0, 100, said.shape), said)
    for m in rng.choice(labelers, spammers, replace=False):
        anything = (rng.uniform(0, 100, items), rng.normal(50, 5, items), rng.random(items) + 99)
        said[:, m] = anything[rng.integers(3)]
    return np.where(seen_by(rng, items, labelers, each), said, np.nan), truth


NUMBERS: dict[str, dict[str, Any]] = {
    "bias and noise": {},
    "all alike, no bias": {"bias": 0.0, "noise": (6.0, 7.0)},
    "4 of 20 spammers": {"spammers": 4},
    "6 of 20 spammers": {"spammers": 6},
    "a tenth slips": {"slips": 0.1},
    "4 spammers, a tenth slips": {"spammers": 4, "slips": 0.1},
    "heavy tails": {"tail": 2.0},
    "3 labels each, 2 spammers": {"each": 3, "spammers": 2},
    "2 labels each, 2 spammers": {"each": 2, "spammers": 2},
    "60 items, 6 labelers, 1 spammer": {"items": 60, "labelers": 6, "each": 6, "spammers": 1},
    "skewed, 2 spammers": {"skewed": True, "spammers": 2},
}
