"""A zoo of synthetic label tables with known truth, each of another kind, parameters at random.

They are what `Auto` was developed on: kinds of trouble that real label sets are known to have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator


class World(NamedTuple):
    """A label table and the true class of each item."""

    kind: str
    table: LabelTable
    truth: Ints


def zoo(each: int, seed: int) -> Iterator[World]:
    """So many worlds of each kind."""
    for number, (kind, make) in enumerate(KINDS.items()):
        for j in range(each):
            table, truth = make(np.random.default_rng([seed, number, j]))
            yield World(kind, table, truth)


# --- parts ---------------------------------------------------------------------------------------


def thin(rng: Rng, said: Ints, classes: int, each: int, uneven: bool = True) -> LabelTable:
    """Keep so many labels an item, by labelers of unequal industry."""
    items, labelers = said.shape
    if each >= labelers:
        return LabelTable.from_matrix(said, classes)
    industry = rng.pareto(1.5, labelers) + 0.3 if uneven else np.ones(labelers)
    order = np.argsort(-(np.log(industry) + rng.gumbel(size=said.shape)), axis=1)[:, :each]
    kept = np.full_like(said, -1)
    row = np.arange(items)[:, None]
    kept[row, order] = said[row, order]
    return LabelTable.from_matrix(kept, classes)


def size(rng: Rng) -> tuple[int, int, int]:
    """Items, labelers, labels an item."""
    items, labelers = (
        int(np.exp(rng.uniform(np.log(a), np.log(b)))) for a, b in ((100, 1500), (10, 120))
    )
    return items, labelers, min(int(rng.choice([3, 5, 10, 20])), labelers)


def skills(rng: Rng, labelers: int, classes: int) -> Floats:
    a, b = [(2, 2), (4, 2), (2, 3)][rng.integers(3)]
    return np.asarray(1 / classes + (1 - 1 / classes) * rng.beta(a, b, labelers))


def classes_of(rng: Rng, items: int, classes: int, even: float = 5.0) -> Ints:
    return rng.choice(classes, items, p=rng.dirichlet(np.full(classes, even)))


def coins(p: Floats, classes: int) -> Floats:
    """One-coin confusion matrices."""
    wrong = ((1 - p) / (classes - 1))[:, None, None]
    return np.asarray(np.where(np.eye(classes, dtype=bool), p[:, None, None], wrong))


def habits(rng: Rng, labelers: int, classes: int, common: float, lean: float) -> Floats:
    """Confusion matrices of their own, partly common to the panel."""
    p, eye = skills(rng, labelers, classes), np.eye(classes)
    lean_to = rng.normal(0, lean, classes)
    panel = rng.dirichlet(np.full(classes, 0.8), classes)
    out = np.empty((labelers, classes, classes))
    for m in range(labelers):
        wrong = common * panel + (1 - common) * rng.dirichlet(np.ones(classes), classes)
        wrong = wrong * (1 - eye) + 1e-9 * (1 - eye)
        wrong /= wrong.sum(axis=1, keepdims=True)
        right = np.clip(p[m] + rng.normal(0, 0.15, classes) + common * lean_to, 0.02, 0.99)
        out[m] = wrong * (1 - right)[:, None] + eye * right[:, None]
    return out


def speak(rng: Rng, confusions: Floats, truth: Ints) -> Ints:
    """What everybody says of everything."""
    steps = np.cumsum(confusions, axis=2)[:, truth, :]
    drawn = rng.random(steps.shape[:2])[..., None]
    said: Ints = np.minimum((drawn > steps).sum(axis=2), confusions.shape[1] - 1).T
    return said


# --- kinds ---------------------------------------------------------------------------------------

Made = tuple[LabelTable, Ints]


def one_coin(rng: Rng) -> Made:
    items, labelers, each = size(rng)
    K = int(rng.choice([2, 2, 3, 5]))
    truth = classes_of(rng, items, K)
    return thin(rng, speak(rng, coins(skills(rng, labelers, K), K), truth), K, each), truth


def asymmetric(rng: Rng) -> Made:
    items, labelers, each = size(rng)
    K = int(rng.choice([2, 2, 3, 5]))
    truth = classes_of(rng, items, K)
    return thin(
        rng, speak(rng, habits(rng, labelers, K, rng.random(), 0.15), truth), K, each
    ), truth


def difficulty(rng: Rng) -> Made:
    """Items are easy or hard for all (GLAD); in some worlds a tenth of them mislead."""
    items, labelers, each = size(rng)
    K = int(rng.choice([2, 2, 4]))
    truth = classes_of(rng, items, K)
    ease = np.exp(rng.normal(0, rng.uniform(0.3, 1.2), items))
    odds = np.exp(np.outer(ease, rng.normal(1, 0.7, labelers)))
    if rng.random() < 0.4:
        misleading = rng.random(items) < 0.1
        odds[misleading] = 1 / odds[misleading]
    wrong = (truth[:, None] + rng.integers(1, K, odds.shape)) % K
    said = np.where(rng.random(odds.shape) < odds / (odds + K - 1), truth[:, None], wrong)
    return thin(rng, said, K, each), truth


def spammers(rng: Rng) -> Made:
    """Up to 60 % say the same always, or anything."""
    items, labelers, each = size(rng)
    K = int(rng.choice([2, 2, 3, 5]))
    truth = classes_of(rng, items, K)
    confusions = coins(np.maximum(skills(rng, labelers, K), rng.uniform(0.6, 0.8)), K)
    for m in np.flatnonzero(rng.random(labelers) < rng.uniform(0.1, 0.6)):
        always = np.eye(K)[rng.integers(K)] * 0.96 + 0.04 / K
        confusions[m] = rng.dirichlet(np.ones(K)) if rng.random() < 0.5 else always
    return thin(rng, speak(rng, confusions, truth), K, each), truth


def clones(rng: Rng) -> Made:
    """One or two groups, up to half of the panel, copy their first member."""
    items, labelers = int(rng.integers(150, 1200)), int(rng.integers(6, 30))
    K = int(rng.choice([2, 3]))
    truth = classes_of(rng, items, K)
    said = speak(rng, coins(0.7 * skills(rng, labelers, K) + 0.24, K), truth)
    for _ in range(rng.integers(1, 3)):
        group = rng.choice(labelers, int(rng.integers(2, max(3, labelers // 2))), replace=False)
        copied = rng.random((items, group.size)) < rng.uniform(0.5, 1)
        said[:, group] = np.where(copied, said[:, group[:1]], said[:, group])
    each = int(rng.choice([5, 10, labelers])) if labelers > 10 else labelers
    return thin(rng, said, K, each, uneven=False), truth


def imbalance(rng: Rng) -> Made:
    """One item in 7 to 33 is of the second class."""
    items, labelers, each = size(rng)
    truth = (rng.random(max(items, 300)) < rng.uniform(0.03, 0.15)).astype(np.int64)
    confusions = coins(np.maximum(skills(rng, labelers, 2), 0.55), 2)
    if rng.random() < 0.5:
        confusions = habits(rng, labelers, 2, rng.uniform(0, 0.5), 0.0)
    return thin(rng, speak(rng, confusions, truth), 2, each), truth


def sparse(rng: Rng) -> Made:
    """Three labels an item, many labelers."""
    items, labelers = int(rng.integers(500, 4000)), int(rng.integers(30, 250))
    K = int(rng.choice([2, 2, 4]))
    truth = classes_of(rng, items, K)
    confusions = coins(skills(rng, labelers, K), K)
    if rng.random() < 0.5:
        confusions = habits(rng, labelers, K, rng.uniform(0, 0.7), 0.1)
    return thin(rng, speak(rng, confusions, truth), K, 3), truth


def _perceived(rng: Rng, items: int, labelers: int, families: int) -> tuple[Ints, Ints]:
    """Two classes as thresholds on how an item strikes everyone, a family, and one labeler."""
    truth = (rng.random(items) < rng.uniform(0.15, 0.5)).astype(np.int64)
    strikes = rng.uniform(1, 3) * (truth - 0.5) + rng.normal(0, rng.uniform(0.3, 1), items)
    family = rng.integers(families, size=labelers)
    strikes_family = rng.normal(0, rng.uniform(0.2, 1), (items, families))
    noise = np.exp(rng.normal(np.log(0.7), 0.4, labelers))
    bar = rng.normal(rng.normal(0, 0.2), rng.uniform(0.2, 0.9), labelers)
    seen = strikes[:, None] + strikes_family[:, family] + rng.normal(size=(items, labelers)) * noise
    return (seen > bar).astype(np.int64), truth


def judges(rng: Rng) -> Made:
    """20 to 44 judges of a few families on every item, with errors in common."""
    items, labelers = int(rng.integers(200, 2000)), int(rng.integers(20, 45))
    said, truth = _perceived(rng, items, labelers, int(rng.integers(2, 8)))
    return LabelTable.from_matrix(said), truth


def perceived(rng: Rng) -> Made:
    """The same with few labels an item."""
    items, labelers, each = size(rng)
    said, truth = _perceived(rng, items, labelers, int(rng.integers(1, 4)))
    return thin(rng, said, 2, each), truth


def ordinal(rng: Rng) -> Made:
    """Five grades, labelers with a lean and a stretch of their own, some spammers."""
    items, labelers, each = size(rng)
    truth = classes_of(rng, items, 5, 3.0)
    seen = truth + rng.normal(0, rng.uniform(0, 0.6), items)
    lean, stretch = rng.normal(0, 0.5, labelers), np.exp(rng.normal(0, 0.2, labelers))
    noise = np.exp(rng.normal(-0.3, 0.5, labelers)) * rng.normal(size=(items, labelers))
    said = np.rint((seen[:, None] - 2) * stretch + 2 + lean + noise).clip(0, 4).astype(np.int64)
    spam = rng.random(labelers) < rng.uniform(0, 0.3)
    said[:, spam] = rng.integers(5, size=(items, int(spam.sum())))
    return thin(rng, said, 5, each), truth


def schools(rng: Rng) -> Made:
    """Classes hide kinds of item; two schools of labelers are good at different kinds."""
    items, labelers, each = size(rng)
    kinds = 2 * int(rng.integers(2, 5))
    kind, school = rng.integers(kinds, size=items), rng.integers(2, size=labelers)
    truth = kind % 2
    of_kind = np.clip(rng.beta(4, 2, (kinds, 2)), 0.1, 0.98)
    p = 0.7 * of_kind[kind][:, school] + 0.3 * skills(rng, labelers, 2)
    said = np.where(rng.random(p.shape) < p, truth[:, None], 1 - truth[:, None])
    return thin(rng, said, 2, each), truth


KINDS: dict[str, Callable[[Rng], Made]] = {
    "one coin": one_coin,
    "asymmetric": asymmetric,
    "difficulty": difficulty,
    "spammers": spammers,
    "clones": clones,
    "imbalance": imbalance,
    "sparse": sparse,
    "judges": judges,
    "perceived": perceived,
    "ordinal": ordinal,
    "schools": schools,
}
