"""Copies: found when they are there, not found when they are not, and worth discounting."""

import numpy as np
import pytest
from hypothesis import given

from tests.unit.estimators import vote_reference as reference
from tests.unit.estimators.worlds import Ints, label_matrices, plain, simulate
from venire.errors import InputError
from venire.estimators import Auto, CloneGroup, DawidSkene, MajorityVote, find_clones, merge_clones
from venire.estimators.clones import panel_pairs
from venire.estimators.metrics import error_rate
from venire.labels import LabelTable


def panel(
    seed: int, copies: int, faithful: float, items: int = 500, labelers: int = 20, K: int = 2
) -> tuple[LabelTable, Ints]:
    """Independent one-coin labelers, of whom the first few copy the very first."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=items)
    right = rng.random((items, labelers)) < rng.uniform(0.6, 0.85, labelers)
    wrong = (truth[:, None] + rng.integers(1, K, size=right.shape)) % K
    said = np.where(right, truth[:, None], wrong)
    copied = rng.random((items, copies)) < faithful
    said[:, :copies] = np.where(copied, said[:, :1], said[:, :copies])
    return LabelTable.from_matrix(said, K), truth


def hard_items(seed: int) -> LabelTable:
    """No copies, but items that are hard for everyone."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(500, 1))
    odds = np.exp(np.exp(rng.normal(0, 1, (500, 1))) * rng.normal(1, 0.5, 20))
    return LabelTable.from_matrix(
        np.where(rng.random((500, 20)) < odds / (1 + odds), truth, 1 - truth)
    )


@given(label_matrices(max_items=20, min_labelers=2))
def test_pair_counts_equal_the_plain_reference(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    found = panel_pairs(LabelTable.from_matrix(matrix, classes)).corrected
    said = plain(matrix)
    for a in range(matrix.shape[1]):
        for b in range(matrix.shape[1]):
            expected = reference.corrected_agreement(said, a, b, classes)
            assert found[a, b] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("K", [2, 4])
def test_false_alarms_are_rare(K: int) -> None:
    """At level 0.05 at most one panel in 20 may show a pair; 40 panels without a copy."""
    alarms = [
        bool(find_clones(panel(seed, 0, 0, items=200, K=K)[0], strength=0.0).pairs)
        for seed in range(40)
    ]
    assert sum(alarms) <= 4  # 2 expected; more than 4 has a chance of 5 %


def test_shared_difficulty_is_no_copy() -> None:
    alarms = [bool(find_clones(hard_items(seed)).pairs) for seed in range(20)]
    assert sum(alarms) <= 2


@pytest.mark.parametrize(("copies", "faithful"), [(2, 0.9), (3, 0.9), (6, 0.9), (8, 0.95)])
def test_copies_are_found(copies: int, faithful: float) -> None:
    group = tuple(range(copies))
    found = [find_clones(panel(seed, copies, faithful)[0]) for seed in range(10)]
    hits = [tuple(g.members for g in f.groups) == (group,) for f in found]
    assert sum(hits) >= 9


def test_a_copy_in_a_sparse_table_is_found() -> None:
    table, _ = panel(0, 3, 0.95, items=3000)
    keep = np.random.default_rng(0).random(table.said.size) < 0.25
    item, m, s = table.item[keep], table.labeler[keep], table.said[keep]
    thin = LabelTable.from_codes(item, m, s, table.items, table.labelers, table.classes)
    assert [g.members for g in find_clones(thin).groups] == [(0, 1, 2)]


def test_discounting_copies_pays() -> None:
    """Six of 16 copy one of 60 to 85 %: every method is better if they are merged."""
    gains = []
    for seed in range(10):
        table, truth = panel(seed, 6, 0.95, labelers=16)
        merged = merge_clones(table, find_clones(table).groups)
        gains.append(
            [
                error_rate(m().fit(table).posteriors_, truth)
                - error_rate(m().fit(merged).posteriors_, truth)
                for m in (MajorityVote, DawidSkene)
            ]
        )
    majority, dawid_skene = np.mean(gains, axis=0)
    assert majority > 0.02
    assert dawid_skene > 0.08


def test_auto_says_who_the_copies_are() -> None:
    table, truth = panel(1, 6, 0.99, labelers=16)
    auto, vote = Auto().fit(table), MajorityVote().fit(table)
    assert auto.clones_ == find_clones(table)
    assert "0, 1, 2, 3, 4 and 1 more share errors" in auto.why_
    assert auto.families_[0].worth < 1.1
    assert error_rate(auto.posteriors_, truth) < error_rate(vote.posteriors_, truth) - 0.05


def test_a_group_speaks_with_one_voice() -> None:
    table = LabelTable.from_matrix([[0, 0, 1, 1], [1, -1, 0, 1], [-1, -1, 1, 0]])
    merged = merge_clones(table, [CloneGroup((0, 1, 2), 1.0)])
    assert merged.labeler.tolist() == [0, 3, 0, 3, 0, 3]
    assert merged.said.tolist()[::2] == [0, 0, 1]  # labeler 2, with most labels, breaks the tie
    assert merge_clones(table, []) is table


def test_what_a_group_is_worth() -> None:
    assert CloneGroup(("a", "b", "c"), 1.0).worth == pytest.approx(1)
    assert CloneGroup(("a", "b", "c"), 0.0).worth == pytest.approx(3)
    assert CloneGroup(("a", "b", "c"), 0.5).worth == pytest.approx(1.5)


def test_little_data_is_no_error() -> None:
    assert find_clones([("a", "x", 0), ("a", "y", 1)]).groups == ()
    table, _ = simulate([0.8, 0.7], items=50, seed=0)
    assert find_clones(table).pairs == ()


def test_a_fitted_estimator_will_do() -> None:
    table, _ = panel(0, 3, 0.95)
    assert find_clones(MajorityVote().fit(table)) == find_clones(table)


@pytest.mark.parametrize("bad", [{"level": 0.0}, {"level": 1.5}, {"min_overlap": 1}])
def test_bad_parameters(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected"):
        find_clones([("a", "x", 0), ("a", "y", 1)], **bad)  # type: ignore[arg-type]
