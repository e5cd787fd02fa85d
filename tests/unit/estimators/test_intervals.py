"""90 % intervals hold the true skill in 87 to 93 % of cases."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.unit.estimators.panels import World, coin_world, full_world
from tests.unit.estimators.worlds import simulate
from venire.errors import InputError
from venire.estimators import Auto, DawidSkene, OneCoin, skill_intervals
from venire.estimators.base import BaseEstimator
from venire.estimators.intervals import dependence, implied_intervals, why_wide
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.tools.arrays import Floats

#: (classes, labelers, items, labels an item): sparse and dense panels.
SHAPES = [
    (2, 50, 400, 5),
    (2, 20, 200, 20),
    (2, 100, 400, 5),
    (2, 30, 1000, 3),
    (4, 50, 400, 5),
    (4, 20, 300, 10),
    (4, 30, 1000, 5),
]
MODELS = [
    pytest.param(OneCoin, coin_world, id="one-coin"),
    pytest.param(DawidSkene, full_world, id="dawid-skene"),
]


def coverage(
    model: Callable[..., BaseEstimator],
    world: Callable[..., World],
    shape: tuple[int, int, int, int],
    seeds: range,
) -> float:
    held = []
    for seed in seeds:
        table, skills = world(seed, *shape)
        low, high = skill_intervals(model(tol=1e-4).fit(table), seed=seed, threads=1).T
        held.append(np.mean((low <= skills) & (skills <= high)))
    return float(np.mean(held))


@pytest.mark.parametrize(("model", "world"), MODELS)
def test_coverage_is_near_nominal(
    model: Callable[..., BaseEstimator], world: Callable[..., World]
) -> None:
    """Few worlds of each shape; all shapes together have 3 standard errors of 3 %."""
    held = [coverage(model, world, shape, range(3)) for shape in SHAPES]
    assert 0.87 <= np.mean(held) <= 0.93
    assert min(held) > 0.78


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("model", "world"), MODELS)
def test_coverage_of_each_shape(
    model: Callable[..., BaseEstimator],
    world: Callable[..., World],
    shape: tuple[int, int, int, int],
) -> None:
    assert 0.87 <= coverage(model, world, shape, range(100)) <= 0.93


def test_same_for_any_number_of_threads_and_for_the_same_seed() -> None:
    table, _ = coin_world(0, 3, 20, 30_000, 5)
    fit = OneCoin().fit(table)
    one, two = (skill_intervals(fit, sweeps=5, threads=n) for n in (1, 2))
    assert (one == two).all()
    assert (one != skill_intervals(fit, sweeps=5, seed=1)).any()


def test_a_labeler_with_little_to_show_gets_a_wide_interval() -> None:
    table, _ = coin_world(0, 2, 10, 300, 5)
    item, labeler = table.item, table.labeler
    keep = (labeler != 9) | (np.cumsum(labeler == 9) <= 3)
    names = table.items, range(11), table.classes
    few = LabelTable.from_codes(item[keep], labeler[keep], table.said[keep], *names)
    for estimator in (OneCoin(), DawidSkene()):
        width = np.diff(estimator.fit(few).skill_intervals_, axis=1)[:, 0]
        assert width[9] > 2 * width[:9].mean()
        assert width[10] > 0.5


def test_gold_and_a_wider_level() -> None:
    table, _ = full_world(3, 2, 15, 100, 5)
    free = DawidSkene().fit(table)
    gold = DawidSkene().fit(table, gold=dict(free.labels_))
    narrow = np.diff(skill_intervals(gold), axis=1).mean()
    assert narrow < np.diff(skill_intervals(free), axis=1).mean()
    assert np.diff(skill_intervals(free, 0.99), axis=1).mean() > 1.3 * narrow
    with pytest.raises(InputError, match="level"):
        skill_intervals(free, 90)
    with pytest.raises(InputError, match="sweeps"):
        skill_intervals(free, sweeps=1)


@pytest.mark.parametrize("name", ["sentiment", "dog", "rte", "web", "bluebird"])
def test_implied_intervals_hold_the_share_of_right_labels(data: Path, name: str) -> None:
    """Of labelers with 20 labels and more, on sets whose labelers err on their own."""
    table = as_table(data / name / "labels.csv", repeats="first")
    truth = as_truth(data / name / "truth.csv", table)[table.item]
    fitted = Auto().fit(table)
    low, high = fitted.skill_intervals_.T
    known = truth >= 0
    given = np.bincount(table.labeler[known], minlength=len(table.labelers))
    right = np.bincount(table.labeler[known & (table.said == truth)], minlength=len(given))
    seen = given >= 20
    share = right[seen] / given[seen]
    assert ((low[seen] <= share) & (share <= high[seen])).mean() > 0.85
    assert ((low <= fitted.competences_) & (fitted.competences_ <= high)).all()


def test_implied_intervals_narrow_with_labels() -> None:
    few, many = (simulate([0.9, 0.8, 0.8, 0.7], items=n, seed=0)[0] for n in (30, 600))
    wide, narrow = (np.diff(Auto().fit(t).skill_intervals_, axis=1).mean() for t in (few, many))
    assert narrow < wide
    with pytest.raises(InputError, match="level"):
        implied_intervals(Auto().fit(few), 1.5)


def independent(seed: int, items: int) -> tuple[LabelTable, Floats]:
    """Twenty labelers who err on their own, three labels an item."""
    rng = np.random.default_rng(seed)
    skills = rng.uniform(0.6, 0.95, 20)
    truth = rng.integers(2, size=(items, 1))
    said = np.where(rng.random((items, 20)) < skills, truth, 1 - truth)
    chosen = np.argsort(np.argsort(rng.random((items, 20)), axis=1), axis=1) < 3
    return LabelTable.from_matrix(np.where(chosen, said, -1), 2), skills


def test_intervals_of_independent_labelers_narrow_with_labels_and_hold_their_skills() -> None:
    """Ten times the labels: about a third of the width, where a shared error would keep it."""
    held, widths = [], []
    for items in (3000, 30_000):
        table, skills = independent(0, items)
        fitted = Auto().fit(table)
        assert why_wide(fitted) is None
        low, high = implied_intervals(fitted).T
        held.append(np.mean((low <= skills) & (skills <= high)))
        widths.append(np.mean(high - low))
    assert min(held) >= 0.8
    assert widths[1] < 0.5 * widths[0]
    assert widths[1] < 0.06


def test_where_labelers_share_errors_intervals_stay_wide_and_say_so() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(4000, 1))
    hard = rng.random((4000, 1)) < 0.3
    said = np.where(rng.random((4000, 6)) < np.where(hard, 0.4, 0.9), truth, 1 - truth)
    fitted = Auto().fit(LabelTable.from_matrix(said))
    assert dependence(fitted) > 0.5
    assert "do not narrow" in (why_wide(fitted) or "")
