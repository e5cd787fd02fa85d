"""The default method: what it does, what it says, and that it is safe."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.zoo import errors
from benchmarks.zoo_worlds import zoo
from tests.unit.estimators.worlds import Ints, label_matrices, simulate
from venire.errors import InputError, StateError
from venire.estimators import (
    Anchored,
    Auto,
    DawidSkene,
    MajorityVote,
    Subtypes,
    WeightedMajority,
    find_constant,
)
from venire.labels import LabelTable
from venire.labels.stable_draws import item_draws, label_draws
from venire.labels.subset import keep_items, keep_labels
from venire.testing import check_competence


def spammed(seed: int, spammers: int, items: int = 300, labels: int = 4) -> tuple[LabelTable, Ints]:
    """Twelve labelers of 0.8, and some who always say class 1; a few labels an item."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    said = np.where(rng.random((items, 12)) < 0.8, truth[:, None], 1 - truth[:, None])
    said = np.hstack([said, np.ones((items, spammers), np.int64)])
    draw = rng.random(said.shape)
    said[draw > np.sort(draw, axis=1)[:, labels - 1 : labels]] = -1
    return LabelTable.from_matrix(said), truth


def accuracy(posteriors: np.ndarray[tuple[int, int], np.dtype[np.float64]], truth: Ints) -> float:
    best = posteriors >= posteriors.max(axis=1, keepdims=True) - 1e-9
    return float((best[np.arange(len(truth)), truth] / best.sum(axis=1)).mean())


@pytest.mark.parametrize("estimator", [Auto(), Anchored(), Subtypes(starts=2)])
def test_the_battery(estimator: Auto | Anchored | Subtypes) -> None:
    check_competence(estimator)


@pytest.mark.filterwarnings("ignore")  # noise may look like a mirror image
@settings(max_examples=10)
@given(drawn=label_matrices(), seed=st.integers(0, 99))
def test_the_order_of_rows_is_irrelevant(drawn: tuple[Ints, int], seed: int) -> None:
    matrix, classes = drawn
    rows = [(f"i{s}", f"m{m}", int(x)) for (s, m), x in np.ndenumerate(matrix) if x >= 0]
    mixed = [rows[j] for j in np.random.default_rng(seed).permutation(len(rows))]
    one, two = (Auto().fit(LabelTable.from_rows(r, range(classes))) for r in (rows, mixed))
    for item, proba in one.probas_.items():
        for k, p in proba.items():
            assert two.probas_[item][k] == pytest.approx(p, abs=1e-6)


def test_renaming_classes_renames_the_result() -> None:
    table, _ = simulate([0.8, 0.7, 0.7, 0.6, 0.6], items=200, seed=3, classes=3, share=0.7)
    new = np.array([2, 0, 1])
    renamed = LabelTable.from_codes(
        table.item, table.labeler, new[table.said], table.items, table.labelers, table.classes
    )
    q, r = (Auto().fit(t).posteriors_ for t in (table, renamed))
    np.testing.assert_allclose(r[:, new], q, atol=1e-6)


def test_it_is_the_mean_of_its_parts() -> None:
    table, _ = simulate([0.9, 0.8, 0.7, 0.6], items=300, seed=0)
    auto = Auto(calibrate=False).fit(table)
    fits = WeightedMajority(tol=1e-4), DawidSkene(max_iter=0), Subtypes()
    parts = [estimator.fit(table).posteriors_ for estimator in fits]
    np.testing.assert_allclose(auto.posteriors_, np.mean(parts, axis=0), atol=1e-9)
    assert list(auto.parts_) == ["weighted-majority", "one-step", "subtypes"]
    assert auto.learned_
    assert "three learners" in auto.why_


@pytest.mark.parametrize("spammers", [0, 4, 6, 8, 12])
def test_who_says_one_class_whatever_it_sees_counts_for_nothing(spammers: int) -> None:
    for seed in range(4):
        table, truth = spammed(seed, spammers)
        assert find_constant(table) == tuple(range(12, 12 + spammers))
        vote, ours, anchored = MajorityVote().fit(table), Auto().fit(table), Anchored().fit(table)
        assert accuracy(ours.posteriors_, truth) > accuracy(vote.posteriors_, truth) - 0.015
        assert accuracy(ours.posteriors_, truth) > 0.78
        rows = anchored.confusions_[12:]
        np.testing.assert_allclose(rows[:, 0], rows[:, 1])
        if spammers:
            assert "one class whatever the item" in ours.why_


def test_nobody_is_taken_for_constant_where_a_class_is_rare() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random((400, 1)) < 0.02).astype(int)
    said = np.where(rng.random((400, 8)) < 0.98, truth, 1 - truth)
    assert find_constant(LabelTable.from_matrix(said)) == ()


def test_specialists_are_not_taken_for_wrong() -> None:
    rng = np.random.default_rng(1)
    truth, half = rng.integers(2, size=(2, 600))
    knows = half[:, None] == np.arange(12) % 2
    right = rng.random((600, 12)) < np.where(knows, 0.95, 0.5)
    table = LabelTable.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))
    found = {f.name: accuracy(f.fit(table).posteriors_, truth) for f in (Auto(), MajorityVote())}
    assert found["auto"] >= found["majority"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([[0, 1], [1, 1], [0, 0]], "2 labelers cannot be told apart"),
        ([[0, -1, -1], [-1, 1, -1], [-1, -1, 0]], "no item has two labels"),
        ([[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0]], "do not agree beyond chance"),
    ],
)
def test_where_nothing_can_be_learned_it_stays_with_the_vote(
    said: list[list[int]], reason: str
) -> None:
    table = LabelTable.from_matrix(said)
    vote = MajorityVote().fit(table).posteriors_
    for estimator in (Auto(), Anchored()):
        estimator.fit(table)
        np.testing.assert_array_equal(estimator.posteriors_, vote)
        assert not estimator.learned_
        assert reason in estimator.why_
    anchored = Anchored().fit(table)
    assert (anchored.confusions_ == anchored.confusions_[0]).all()
    assert (anchored.priors_ == 1 / 2).all()


def test_items_with_one_label_teach_nothing_about_their_labeler() -> None:
    table, _ = simulate([0.9, 0.8, 0.7, 0.7], items=200, seed=2)
    rows = [(s, m, x) for s, m, x in zip(table.item, table.labeler, table.said, strict=True)]
    alone = [(1000 + s, 3, 1) for s in range(100)]
    one, two = (Anchored().fit(LabelTable.from_rows(r, (0, 1))) for r in (rows, rows + alone))
    np.testing.assert_allclose(two.priors_, one.priors_, atol=0.05)
    np.testing.assert_allclose(two.confusions_, one.confusions_, atol=0.05)


def test_one_label_an_item_is_enough() -> None:
    auto = Auto().fit([("a", "x", "no"), ("b", "y", "yes"), ("c", "x", "no")])
    assert auto.labels_ == {"a": "no", "b": "yes", "c": "no"}


def test_before_fit() -> None:
    with pytest.raises(StateError, match="call fit"):
        _ = Auto().why_


def test_bad_parameters() -> None:
    with pytest.raises(InputError, match="seed=-1, expected a whole number"):
        Auto(seed=-1).fit([("a", "x", "no"), ("b", "y", "yes")])
    with pytest.raises(InputError, match="expected a 2 x 2 table"):
        Anchored(stranger=[1, 2, 3]).fit([("a", "x", "no"), ("b", "y", "yes"), ("b", "x", "yes")])


def test_parts_of_a_table() -> None:
    table = LabelTable.from_matrix([[0, 1], [1, 1], [0, -1]])
    kept = keep_labels(table, np.array([False, True, False, False, True]))
    assert kept.start.tolist() == [0, 1, 1, 2]
    assert keep_items(table, np.array([True, False, True])).start.tolist() == [0, 2, 2, 3]
    assert keep_labels(table, np.ones(5, np.bool_)) is table


def test_draws_are_uniform_and_by_name() -> None:
    table = LabelTable.from_matrix(np.zeros((2000, 5), dtype=int))
    draws = label_draws(table, seed=1)
    assert np.abs(np.sort(draws) - np.linspace(0, 1, draws.size)).max() < 0.02
    assert (draws != label_draws(table, seed=2)).all()
    assert np.abs(np.corrcoef(draws.reshape(2000, 5).T) - np.eye(5)).max() < 0.1
    items = item_draws(table, seed=1)
    assert np.abs(np.sort(items) - np.linspace(0, 1, items.size)).max() < 0.05


def test_it_is_safe_in_every_kind_of_world() -> None:
    """Two worlds of each kind: better than a majority, and never far below it."""
    worlds = list(zoo(2, seed=2))
    vote, ours = (np.array([errors(w, make)[0] for w in worlds]) for make in (MajorityVote, Auto))
    assert ours.mean() < vote.mean() - 0.5
    assert np.quantile(ours - vote, 0.9) < 1.5
    assert (ours - vote).max() < 5


def test_a_tail_of_newcomers_does_not_turn_the_panel_upside_down() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    rows = [
        (i, f"g{m}", int(truth[i] if rng.random() < 0.85 else 1 - truth[i]))
        for i in range(300)
        for m in range(5)
    ]
    for w in range(30):
        rows += [(int(i), f"n{w}", int(1 - truth[i])) for i in rng.choice(300, 3, replace=False)]
    verdicts = Auto().fit(rows).labels_
    assert np.mean([verdicts[i] != truth[i] for i in range(300)]) < 0.05
