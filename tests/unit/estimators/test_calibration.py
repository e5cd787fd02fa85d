"""Confidence: the dependence found, and what tempering does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.estimators import vote_reference as reference
from tests.unit.estimators.worlds import Ints, label_matrices, plain, simulate
from venire.errors import InputError
from venire.estimators import MajorityVote, OneCoin, calibrated, residual_dependence, temper
from venire.estimators.base import right_shares
from venire.estimators.metrics import expected_calibration_error
from venire.estimators.votes import implied_confusions
from venire.labels import LabelTable


@given(label_matrices(min_labelers=2))
def test_dependence_equals_the_plain_reference(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    table = LabelTable.from_matrix(matrix, classes)
    q = MajorityVote().fit(table).posteriors_
    confusions = implied_confusions(table, q).tolist()
    expected = reference.dependence(plain(matrix), q.tolist(), confusions)
    assert residual_dependence(table, q) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0.001, 1.0), min_size=3, max_size=3), st.floats(0.05, 5.0))
def test_tempering_keeps_the_order(row: list[float], temperature: float) -> None:
    q = np.array([row]) / sum(row)
    out = temper(q, temperature)
    assert out.sum() == pytest.approx(1)
    assert (np.diff(out[0])[np.diff(q[0]) > 1e-9] >= 0).all()
    np.testing.assert_allclose(temper(q, 1.0), q)


def test_a_temperature_is_above_zero() -> None:
    with pytest.raises(InputError, match="above 0"):
        temper([[0.5, 0.5]], 0.0)


def test_independent_labels_stay_as_they_are() -> None:
    table, _ = simulate([0.8] * 7, items=2000, seed=0)
    learned = OneCoin().fit(table)
    assert abs(residual_dependence(table, learned.posteriors_)) < 0.01
    assert np.abs(calibrated(learned) - learned.posteriors_).mean() < 0.005


def test_shared_errors_are_taken_into_account() -> None:
    """Items that strike everyone the wrong way: ECE falls, verdicts stay."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=2000)
    strikes = 1.5 * (truth - 0.5) + rng.normal(0, 0.8, 2000)
    said = (strikes[:, None] + rng.normal(size=(2000, 25)) > rng.normal(0, 0.5, 25)).astype(int)
    learned = OneCoin().fit(LabelTable.from_matrix(said))
    before, after = learned.posteriors_, calibrated(learned)
    assert (before.argmax(axis=1) == after.argmax(axis=1)).all()
    ece = [
        expected_calibration_error(q.max(axis=1), right_shares(q, truth)) for q in (before, after)
    ]
    assert ece[1] < 0.75 * ece[0]
