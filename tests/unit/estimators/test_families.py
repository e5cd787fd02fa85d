"""Families as votes, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from venire.errors import InputError
from venire.estimators import Auto, CloneGroup, MajorityVote, find_clones
from venire.estimators.clones import Clones
from venire.estimators.dependence import (
    families_of,
    label_weights,
    measured,
    relations,
    tempered,
    weighted_posteriors,
    weighted_shares,
)
from venire.labels import LabelTable

NOBODY = Clones((), (), 0)

#: Items by labelers, -1 where nothing was said.
SAID = hnp.arrays(np.int64, (12, 6), elements=st.integers(-1, 2)).filter(lambda x: (x >= 0).any())


def table_of(said: np.ndarray) -> LabelTable:
    return LabelTable.from_matrix(said, classes=3)


def plain_weight(said: np.ndarray, groups: list[CloneGroup], i: int, m: int) -> float:
    """k / (1 + (k - 1) rho) votes for the k members who labelled the item, in equal parts."""
    for group in groups:
        if m in group.members:
            members: list[Any] = list(group.members)
            k = sum(int(said[i, other] >= 0) for other in members)
            return float(k / (1 + (k - 1) * group.correlation) / k)
    return 1.0


@given(SAID, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_weights_shares_and_posteriors_equal_plain_loops(
    said: np.ndarray, rho: float, other: float
) -> None:
    groups = [CloneGroup((0, 1, 2), rho), CloneGroup((3, 4), other)]
    table = table_of(said)
    spoken = [(i, m) for i in range(12) for m in range(6) if said[i, m] >= 0]
    expected = [plain_weight(said, groups, i, m) for i, m in spoken]
    np.testing.assert_allclose(label_weights(table, groups), expected)
    votes = np.zeros((12, 3))
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=(6, 3))
    logs = np.tile(np.log([0.5, 0.3, 0.2]), (12, 1))
    for (i, m), weight in zip(spoken, expected, strict=True):
        votes[i, said[i, m]] += weight
        logs[i] += weight * np.log(rows[m, :, said[i, m]])
    votes[votes.sum(axis=1) == 0] = 1.0
    shares = votes / votes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weighted_shares(table, groups), shares)
    odds = np.exp(logs)
    found = weighted_posteriors(table, rows, np.array([0.5, 0.3, 0.2]), groups)
    np.testing.assert_allclose(found, odds / odds.sum(axis=1, keepdims=True))


@given(SAID)
@settings(max_examples=40, deadline=None)
def test_without_families_it_is_the_plain_vote(said: np.ndarray) -> None:
    table = table_of(said)
    np.testing.assert_allclose(weighted_shares(table, []), MajorityVote().fit(table).posteriors_)
    assert (label_weights(table, []) == 1).all()


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
def test_k_members_have_as_many_votes_as_they_are_worth(k: int, rho: float) -> None:
    said = np.full((2, 8), -1)
    said[0, :k], said[0, 7], said[1, 7] = 1, 0, 0
    group = CloneGroup(tuple(range(7)), rho)
    weights = label_weights(table_of(said), [group])
    assert weights[:k].sum() == pytest.approx(k / (1 + (k - 1) * rho))
    assert weights[k:].tolist() == [1.0, 1.0]
    if k == 7:
        assert weights[:k].sum() == pytest.approx(group.worth)


def test_matrices_are_tempered_by_the_mean_weight() -> None:
    said = np.array([[0, 0, 1], [1, -1, 1]])  # the first of two copies is alone on one item
    table = LabelTable.from_matrix(said)
    rows = np.tile([[0.9, 0.1], [0.2, 0.8]], (3, 1, 1))
    found = tempered(table, rows, [CloneGroup((0, 1), 1.0)])
    for m, power in enumerate((0.75, 0.5, 1.0)):
        expected = rows[m] ** power
        np.testing.assert_allclose(found[m], expected / expected.sum(axis=1, keepdims=True))


def test_declared_families_come_first_and_copies_only_of_the_others() -> None:
    clones = Clones((CloneGroup((0, 1, 2, 3), 0.97), CloneGroup((4, 5), 0.8)), (), 15)
    found = families_of(tuple(range(6)), {0: "a", 1: "b", 5: "b", 3: None}, clones)
    assert [group.members for group in found] == [(1, 5), (2, 3)]
    assert families_of(tuple(range(6)), None, NOBODY) == []
    with pytest.raises(InputError, match="got families of type list, expected a mapping"):
        families_of((0, 1), [0, 1], NOBODY)  # type: ignore[arg-type]


def test_the_correlation_is_measured_and_said() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(2000, 1))
    said = np.where(rng.random((2000, 4)) < 0.7, truth, 1 - truth)
    said[:, 1] = np.where(rng.random(2000) < 0.6, said[:, 0], said[:, 1])
    known = np.eye(2)[truth[:, 0]]
    table = LabelTable.from_matrix(said)
    copies, strangers = CloneGroup((0, 1), 1.0), CloneGroup((2, 3), 1.0)
    found = measured(table, [copies, strangers], known)
    assert found[0].correlation == pytest.approx(0.6, abs=0.06)
    assert found[1].correlation < 0.05
    assert relations(found, [], 1) == (
        f"0 and 1 share errors: together {2 / (1 + found[0].correlation):.1f} votes.",
        "2 and 3 hardly share errors: together 2.0 votes.",
        "1 verdict hangs on who shares errors: expert labels of a few items (gold), or families "
        "that you declare, would decide.",
    )
    assert "they count in full" in relations([], [copies], 0)[0]
    assert "gold weighs them" in relations([], [copies], 0, taught=True)[0]


def test_auto_finds_the_clones_that_find_clones_finds() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(300, 1))
    said = np.where(rng.random((300, 8)) < 0.75, truth, 1 - truth)
    said[:, 1:3] = np.where(rng.random((300, 2)) < 0.97, said[:, :1], said[:, 1:3])
    table = LabelTable.from_matrix(said)
    assert Auto().fit(table).clones_ == find_clones(table)
