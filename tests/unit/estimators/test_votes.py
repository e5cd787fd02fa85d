"""Majority and weighted majority: against the plain reference, and their invariants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.estimators import vote_reference as reference
from tests.unit.estimators.worlds import Ints, label_matrices, plain
from venire.errors import InputError
from venire.estimators import MajorityVote, WeightedMajority
from venire.estimators.base import BaseEstimator
from venire.estimators.votes import implied_confusions
from venire.labels import LabelTable
from venire.testing import check_competence

METHODS = [MajorityVote, WeightedMajority]


@given(label_matrices())
def test_majority_is_the_share_of_the_votes(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    q = MajorityVote().fit(LabelTable.from_matrix(matrix, classes)).posteriors_
    equal = [1.0] * matrix.shape[1]
    expected = [reference.shares(row, equal, classes) for row in plain(matrix)]
    np.testing.assert_allclose(q, expected)


@given(label_matrices(), st.integers(0, 4), st.sampled_from([0.5, 4.0]))
def test_weighted_majority_equals_the_plain_reference(
    drawn: tuple[Ints, int], rounds: int, shrink: float
) -> None:
    matrix, classes = drawn
    vote = WeightedMajority(max_iter=rounds, tol=0.0, shrink=shrink)
    vote.fit(LabelTable.from_matrix(matrix, classes))
    weights, q = reference.weighted(plain(matrix), classes, vote.n_iter_, shrink)
    np.testing.assert_allclose(vote.weights_, weights, atol=1e-12)
    np.testing.assert_allclose(vote.posteriors_, q, atol=1e-12)


@given(label_matrices())
def test_implied_confusions_are_smoothed_soft_counts(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    table = LabelTable.from_matrix(matrix, classes)
    q = MajorityVote().fit(table).posteriors_
    counts = np.zeros((matrix.shape[1], classes, classes))
    for (s, m), x in np.ndenumerate(matrix):
        if x >= 0:
            counts[m, :, x] += q[s]
    panel = counts.sum(axis=0) + 0.1 + 0.5 * np.eye(classes)
    counts += 2 * panel / panel.sum(axis=1, keepdims=True)
    found = implied_confusions(table, q)
    np.testing.assert_allclose(found, counts / counts.sum(axis=2, keepdims=True))
    np.testing.assert_allclose(found.sum(axis=2), 1.0)


@pytest.mark.parametrize("method", METHODS)
@given(drawn=label_matrices(min_labelers=2), seed=st.integers(0, 99))
def test_renaming_classes_renames_the_result(
    method: type[BaseEstimator], drawn: tuple[Ints, int], seed: int
) -> None:
    matrix, classes = drawn
    new = np.random.default_rng(seed).permutation(classes)
    q = method().fit(LabelTable.from_matrix(matrix, classes)).posteriors_
    renamed = np.where(matrix >= 0, new[matrix], -1)
    r = method().fit(LabelTable.from_matrix(renamed, classes)).posteriors_
    np.testing.assert_allclose(r[:, new], q, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@given(drawn=label_matrices(), seed=st.integers(0, 99))
def test_the_order_of_rows_is_irrelevant(
    method: type[BaseEstimator], drawn: tuple[Ints, int], seed: int
) -> None:
    matrix, classes = drawn
    rows = [(f"i{s}", f"m{m}", int(x)) for (s, m), x in np.ndenumerate(matrix) if x >= 0]
    mixed = [rows[j] for j in np.random.default_rng(seed).permutation(len(rows))]
    names = tuple(range(classes))
    one, two = (method().fit(LabelTable.from_rows(r, names)) for r in (rows, mixed))
    for item, proba in one.probas_.items():
        for k in names:
            assert two.probas_[item][k] == pytest.approx(proba[k])


@pytest.mark.parametrize("method", METHODS)
def test_the_battery(method: type[BaseEstimator]) -> None:
    check_competence(method())


@pytest.mark.parametrize("method", METHODS)
def test_what_every_method_has(method: type[BaseEstimator]) -> None:
    rows = [("a", "x", "no"), ("a", "y", "no"), ("b", "x", "yes")]
    found = method().fit(LabelTable.from_rows(rows))
    assert found.labels_ == {"a": "no", "b": "yes"}
    assert found.log_likelihood_ is None
    assert found.confusions_.shape == (2, 2, 2)
    assert found.priors_.sum() == pytest.approx(1)
    assert max(found.skills_.values()) < 1  # one label makes nobody infallible
    assert found.converged_


def test_repeated_rows_are_an_error_or_idempotent() -> None:
    rows = [("a", "x", 0), ("a", "y", 1), ("b", "x", 1)]
    with pytest.raises(InputError, match="labels task 'a' again"):
        MajorityVote().fit([*rows, rows[0]])
    once = LabelTable.from_rows(rows)
    twice = LabelTable.from_rows([*rows, rows[0]], repeats="first")
    one, two = (WeightedMajority().fit(t).posteriors_ for t in (once, twice))
    assert (one == two).all()


def test_shrink_must_be_a_count() -> None:
    with pytest.raises(InputError, match="shrink=-1"):
        WeightedMajority(shrink=-1).fit([("a", "x", 0), ("a", "y", 1)])


def test_where_nobody_agrees_votes_count_alike() -> None:
    table = LabelTable.from_matrix([[0, 1], [1, 0]])
    assert WeightedMajority().fit(table).posteriors_.tolist() == [[0.5, 0.5], [0.5, 0.5]]
