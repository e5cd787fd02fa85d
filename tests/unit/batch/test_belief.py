from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.batch import plain
from venire.batch.choice import believe, decide
from venire.estimators.dependence import weighted_posteriors
from venire.labels import LabelTable
from venire.paper.accuracy import pair_evidence


def random_panel(rng: np.random.Generator, labelers: int, classes: int) -> np.ndarray:
    rows = rng.dirichlet(np.ones(classes), (labelers, classes)) + 0.02
    return np.asarray(rows / rows.sum(axis=2, keepdims=True))


@given(st.integers(0, 10_000))
def test_posteriors_are_those_of_bayes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, M, K = (int(rng.integers(a, b)) for a, b in ((1, 6), (1, 5), (2, 5)))
    said = rng.integers(-1, K, (n, M))
    confusions, shares = random_panel(rng, M, K), rng.dirichlet(np.ones(K) * 3)
    q = weighted_posteriors(LabelTable.from_matrix(said, K), confusions, shares, [])
    for i in range(n):
        labels = [(m, int(said[i, m])) for m in range(M) if said[i, m] >= 0]
        assert q[i] == pytest.approx(plain.posterior(labels, confusions, shares), abs=1e-9)


@given(st.integers(0, 10_000))
def test_the_verdict_has_the_least_expected_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 5))
    q = rng.dirichlet(np.ones(K), 4)
    costs = rng.uniform(0, 10, (K, K)) * (1 - np.eye(K))
    verdict, risk, rival = decide(q, costs)
    for i in range(4):
        each = [sum(q[i, k] * costs[k, l] for k in range(K)) for l in range(K)]
        assert risk[i] == pytest.approx(min(each))
        assert each[verdict[i]] == pytest.approx(min(each))
        parts = {k: q[i, k] * costs[k, verdict[i]] for k in range(K) if k != verdict[i]}
        assert parts[int(rival[i])] == pytest.approx(max(parts.values()))


@given(st.integers(0, 10_000))
def test_a_label_lowers_the_mean_doubt_by_its_evidence(seed: int) -> None:
    """The mean of sqrt(q (1 - q)) over the answers is the old one times exp(-evidence)."""
    rng = np.random.default_rng(seed)
    confusions, share = random_panel(rng, 1, 2), rng.uniform(0.05, 0.95)
    q = np.array([share, 1 - share])
    chance = q @ confusions[0]
    after = [plain.posterior([(0, k)], confusions, q) for k in range(2)]
    doubt = sum(chance[k] * np.sqrt(after[k][0] * after[k][1]) for k in range(2))
    evidence = float(pair_evidence(confusions)[0, 0, 1])
    assert doubt == pytest.approx(np.sqrt(q[0] * q[1]) * np.exp(-evidence), rel=1e-6)


def test_an_item_without_a_label_risks_all() -> None:
    said = np.array([[0, 0, 0], [1, 1, 1], [-1, -1, -1]])
    assert believe(LabelTable.from_matrix(said)).risk[2] == 1.0


def test_labelers_who_copy_are_akin() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(600, 1))
    said = np.where(rng.random((600, 6)) < 0.75, truth, 1 - truth)
    said[:, 5] = said[:, 4]
    kinship = believe(LabelTable.from_matrix(said)).kinship
    assert kinship[4, 5] == kinship[5, 4] > 0.8
    assert kinship[0, 1] < 0.3
