"""Which prior for confusion matrices: the mean error on 28 kinds of synthetic panel.

The kind of prior that `DawidSkene` has by default was compared on panels like these. Panels are
one-coin, a quarter spammers, different on every class, or alike in their errors; K is 2 to 10,
items have 3 to 10 labels, and some labelers give far more labels than others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.estimators import DawidSkene, OneCoin
from venire.labels import LabelTable

Floats = NDArray[np.float64]

#: (items, labelers, classes, labels an item, whether a few labelers give most labels)
SHAPES = [
    (500, 40, 2, 5, True),
    (800, 150, 2, 10, True),
    (3000, 170, 2, 3, True),
    (800, 100, 4, 10, True),
    (2500, 170, 5, 6, True),
    (10000, 50, 10, 5, False),
    (3000, 60, 10, 5, True),
]
METHODS: dict[str, Callable[[], Any]] = {
    "one-coin": lambda: OneCoin(prior=(7, 3), tol=1e-4, max_iter=100),
    "no prior": lambda: DawidSkene(prior=None, tol=1e-4),
    "pooled 1": lambda: DawidSkene(prior=1.0, tol=1e-4),
    "pooled 2": lambda: DawidSkene(prior=2.0, tol=1e-4),
    "pooled 5": lambda: DawidSkene(prior=5.0, tol=1e-4),
    "pooled 10": lambda: DawidSkene(prior=10.0, tol=1e-4),
    "panel": lambda: DawidSkene(tol=1e-4),
}


def one_coin(rng: np.random.Generator, M: int, K: int) -> Floats:
    p = (1 / K + (1 - 1 / K) * rng.beta(4, 2, M)).clip(0.05, 0.98)[:, None, None]
    return np.where(np.eye(K) > 0, p, (1 - p) / (K - 1))


def spam(rng: np.random.Generator, M: int, K: int) -> Floats:
    panel = one_coin(rng, M, K)
    for m in np.flatnonzero(rng.random(M) < 0.25):
        panel[m] = 0.05 / (K - 1)
        panel[m, :, rng.integers(K)] = 0.95
    return panel


def by_class(rng: np.random.Generator, M: int, K: int) -> Floats:
    right = 1 / K + (1 - 1 / K) * rng.beta(3, 2, (M, K))
    return _spread(rng.dirichlet(np.ones(K), (M, K)), right)


def alike(rng: np.random.Generator, M: int, K: int) -> Floats:
    errors = np.tile(rng.dirichlet(np.full(K, 0.5), K), (M, 1, 1))
    logit = rng.normal(1.2, 0.8, (M, 1)) + rng.normal(0, 0.8, K) + rng.normal(0, 0.3, (M, K))
    return _spread(errors, 1 / (1 + np.exp(-logit)))


def _spread(errors: Floats, right: Floats) -> Floats:
    wrong = np.where(np.eye(errors.shape[-1]) > 0, 0.0, errors + 1e-9)
    wrong *= ((1 - right) / wrong.sum(axis=-1))[..., None]
    return wrong + np.eye(errors.shape[-1]) * right[..., None]


def world(
    kind: Callable[..., Floats], seed: int, n: int, M: int, K: int, each: int, tail: bool
) -> tuple[LabelTable, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    panel = kind(rng, M, K)
    truth = rng.choice(K, n, p=rng.dirichlet(np.full(K, 5.0)))
    busy = -0.8 * np.log(np.arange(1, M + 1)) if tail else np.zeros(M)
    keys = busy + rng.gumbel(size=(n, M))
    who = np.argpartition(-keys, each - 1, axis=1)[:, :each].ravel()
    item = np.repeat(np.arange(n), each)
    steps = panel[who, truth[item]].cumsum(axis=1)
    said = (rng.random((item.size, 1)) > steps).sum(axis=1).clip(0, K - 1)
    return LabelTable.from_codes(item, who, said, range(n), range(M), range(K)), truth


def main(*_: str, seeds: int = 3) -> None:
    warnings.simplefilter("ignore")
    print(f"Mean error in percent over {len(SHAPES) * 4} kinds of panel, {seeds} worlds each")
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    for kind in (one_coin, spam, by_class, alike):
        for shape in SHAPES:
            found = dict.fromkeys(METHODS, 0.0)
            for seed in range(seeds):
                table, truth = world(kind, seed, *shape)
                for name, make in METHODS.items():
                    q = make().fit(table).posteriors_
                    found[name] += 100 * np.mean(q.argmax(axis=1) != truth) / seeds
            for name in METHODS:
                errors[name].append(found[name])
    best = np.min(list(errors.values()), axis=0)
    for name, each in errors.items():
        print(
            f"  {name:10} {np.mean(each):6.2f}, at worst {np.max(each - best):.2f} above the best"
        )
