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
    find_constant,
)
from venire.estimators.auto import Basis
from venire.labels import LabelTable
from venire.labels.partitions import item_draws, label_draws
from venire.labels.table import keep_items, keep_labels
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


def family(
    seed: int, many: int, skill: float, others: tuple[float, ...], shared: float, items: int = 500
) -> tuple[LabelTable, Ints]:
    """`many` labelers of one skill who share so much of their errors, and others who share none."""
    rng = np.random.default_rng([seed, 31])
    truth = (rng.random(items) < 0.6).astype(np.int64)
    common, own = rng.random((items, 1)) < skill, rng.random((items, many)) < skill
    kin = np.where(rng.random((items, many)) < shared, common, own)
    right = np.hstack([kin, rng.random((items, len(others))) < np.array(others)])
    return LabelTable.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None])), truth


def accuracy(posteriors: np.ndarray[tuple[int, int], np.dtype[np.float64]], truth: Ints) -> float:
    best = posteriors >= posteriors.max(axis=1, keepdims=True) - 1e-9
    return float((best[np.arange(len(truth)), truth] / best.sum(axis=1)).mean())


@pytest.mark.parametrize("estimator", [Auto(), Anchored()])
def test_the_battery(estimator: Auto | Anchored) -> None:
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


def test_where_labelers_err_independently_the_verdicts_are_those_of_em() -> None:
    table, _ = simulate([0.92, 0.87, 0.74, 0.74, 0.6], items=500, seed=1)
    auto, steps = Auto().fit(table), DawidSkene().fit(table)
    assert auto.basis_ is Basis.EM
    assert auto.independence_.shown
    assert auto.learned_
    assert (auto.posteriors_.argmax(axis=1) == steps.posteriors_.argmax(axis=1)).all()
    np.testing.assert_array_equal(auto.rows_, steps.confusions_)
    assert "err independently" in auto.why_


@pytest.mark.parametrize("seed", range(3))
def test_a_family_is_reported_and_cannot_bend_the_verdicts(seed: int) -> None:
    table, truth = family(seed, 3, 0.75, (0.88, 0.86, 0.8, 0.65), 0.8)
    auto, vote = Auto().fit(table), MajorityVote().fit(table)
    assert accuracy(auto.posteriors_, truth) >= accuracy(vote.posteriors_, truth) - 0.01
    assert accuracy(DawidSkene().fit(table).posteriors_, truth) < 0.85
    if auto.basis_ is Basis.VOTE:
        assert "cannot tell who shares errors from who knows more" in auto.why_
        assert f"{auto.undecided_} verdicts hang on who shares errors" in auto.why_
        assert auto.undecided_ > 10


def test_a_declared_family_counts_for_the_votes_that_it_is_worth() -> None:
    gains = []
    for seed in range(4):
        table, truth = family(seed, 3, 0.75, (0.88, 0.86, 0.8, 0.65), 0.9)
        auto = Auto(families={0: "llama", 1: "llama", 2: "llama"}).fit(table)
        (found,) = auto.families_
        assert 0.7 < found.correlation <= 1
        assert found.worth < 1.3
        assert f"0, 1 and 2 share errors: together {found.worth:.1f} votes." in auto.why_
        vote = MajorityVote().fit(table).posteriors_
        gains.append(accuracy(auto.posteriors_, truth) - accuracy(vote, truth))
    assert np.mean(gains) > 0.05


def test_a_declared_family_without_shared_errors_counts_in_full() -> None:
    table, truth = family(1, 2, 0.74, (0.92, 0.87, 0.6), 0.0)
    auto = Auto(families={0: "llama", 1: "llama"}).fit(table)
    assert auto.families_[0].worth > 1.8
    vote = MajorityVote().fit(table).posteriors_
    assert accuracy(auto.posteriors_, truth) > accuracy(vote, truth)


def test_two_experts_are_not_taken_for_copies() -> None:
    table, truth = family(0, 2, 0.95, (0.65,) * 4, 0.0)
    auto, vote = Auto().fit(table), MajorityVote().fit(table)
    assert accuracy(auto.posteriors_, truth) > accuracy(vote.posteriors_, truth) + 0.03


def test_contrary_labelers_are_used_inverted() -> None:
    table, truth = simulate([0.85] * 9 + [0.15] * 6, items=400, seed=1, share=0.4)
    auto, vote = Auto().fit(table), MajorityVote().fit(table)
    assert accuracy(auto.posteriors_, truth) > accuracy(vote.posteriors_, truth) + 0.1


def test_no_lone_label_is_surer_than_labels_agree() -> None:
    table, _ = simulate([0.8, 0.8, 0.8, 0.8], items=300, seed=2)
    rows = zip(table.item.tolist(), table.labeler.tolist(), table.said.tolist(), strict=True)
    lone = [(1000 + i, i % 4, i % 2) for i in range(50)]
    auto = Auto().fit(LabelTable.from_rows([*rows, *lone], (0, 1)))
    assert auto.posteriors_[-50:].max() <= 0.68  # two of them agree with probability .68
    assert auto.posteriors_[:300].max() > 0.95


def test_families_must_be_a_mapping() -> None:
    with pytest.raises(InputError, match="expected a mapping of labeler to the name"):
        Auto(families=[("a", "b")]).fit([("a", "x", "no"), ("b", "y", "yes")])  # type: ignore[arg-type]


@pytest.mark.parametrize("spammers", [0, 4, 6, 8, 12])
def test_who_says_one_class_whatever_it_sees_counts_for_nothing(spammers: int) -> None:
    for seed in range(4):
        table, truth = spammed(seed, spammers)
        assert find_constant(table) == tuple(range(12, 12 + spammers))
        vote, ours, anchored = MajorityVote().fit(table), Auto().fit(table), Anchored().fit(table)
        assert accuracy(ours.posteriors_, truth) > accuracy(vote.posteriors_, truth) - 0.02
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
        assert (estimator.posteriors_.argmax(axis=1) == vote.argmax(axis=1)).all()
        assert not estimator.learned_
        assert reason in estimator.why_
    anchored = Anchored().fit(table)
    np.testing.assert_array_equal(anchored.posteriors_, vote)
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
