"""Confidence is divided down where labels depend on each other; verdicts stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import LabelTable
from venire.estimators.dependence import certainty, residual_dependence
from venire.scheduling import LearnThenServe
from venire.scheduling.base import Belief
from venire.scheduling.kernel.verdicts import decide_apart


@given(st.integers(2, 4), st.integers(0, 2**32), st.floats(0.1, 0.9))
def test_no_verdict_changes_and_log_odds_are_multiplied(K: int, seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    square = rng.dirichlet(np.ones(K), (5, K)) * 0.5 + 0.5 * np.eye(K)
    prior = rng.dirichlet(np.full(K, 5.0))
    p = np.einsum("mkk,k->m", square, prior)
    start = np.arange(0, 31, 3)
    who, said = np.tile(rng.permutation(5)[:3], 10), rng.integers(K, size=30)
    plain, sure = decide_apart(Belief(p, square, prior), K, start, who, said)
    same, modest = decide_apart(Belief(p, square, prior, certainty=factor), K, start, who, said)
    assert same.tolist() == plain.tolist()
    assert (modest <= sure + 1e-9).all()
    if K == 2:
        logits = [np.log(q / (1 - q)) for q in (sure, modest)]
        np.testing.assert_allclose(logits[1], factor * logits[0], atol=1e-6)


def test_the_formula() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(300, 1))
    hard = rng.random((300, 1)) < 0.1
    said = np.where(rng.random((300, 3)) < np.where(hard, 0.3, 0.85), truth, 1 - truth)
    table, q = LabelTable.from_matrix(said), np.eye(2)[truth[:, 0]]
    rho = residual_dependence(table, q) * 900 / (900 + 300)
    assert certainty(table, q) == pytest.approx(1 / (1 + 30 * rho))
    assert certainty(LabelTable.from_matrix(said[:, :1], 2), q) == 1.0


def test_families_make_a_learner_less_sure() -> None:
    """Eight labelers who err independently, or in two families that say nearly the same."""
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=(500, 1))
    free = np.where(rng.random((500, 8)) < 0.8, truth, 1 - truth)
    shared = np.repeat(free[:, :2], 4, axis=1)
    alike = np.where(rng.random((500, 8)) < 0.6, shared, free)
    found = []
    for said in (free, alike):
        learner = LearnThenServe(5).begin([None] * 8, 2)
        item, labeler = np.divmod(np.arange(4000), 8)
        learner.learn(item, labeler, said.ravel())
        assert learner.belief is not None
        found.append(learner.belief.certainty)
    assert found[0] > 0.8
    assert found[1] < 0.7
