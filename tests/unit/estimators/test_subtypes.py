"""Hidden types within classes: the fast passes against plain loops, and what the model is for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from tests.unit.estimators.worlds import Ints, label_matrices, simulate
from venire.errors import InputError
from venire.estimators import Subtypes
from venire.estimators.base import Floats
from venire.estimators.dawid_skene.shrinkage import pooled_prior
from venire.labels import LabelTable
from venire.labels.stable_draws import item_draws


def plain(table: LabelTable, types: int, strength: float, rounds: int) -> Floats:
    """One start of variational Bayes, label by label."""
    N, M, K = len(table.items), len(table.labelers), len(table.classes)
    labels = list(
        zip(table.item.tolist(), table.labeler.tolist(), table.said.tolist(), strict=True)
    )
    votes = np.zeros((N, K))
    for s, _, x in labels:
        votes[s, x] += 1
    votes /= np.maximum(votes.sum(axis=1, keepdims=True), 1)
    counts = np.zeros((M, K, K))
    for s, m, x in labels:
        counts[m, x] += votes[s]
    pseudo = pooled_prior(counts, strength)
    parts = np.stack([-np.log1p(-item_draws(table, g)) for g in range(types)], axis=1)
    z = votes[:, :, None] * (parts / parts.sum(axis=1, keepdims=True))[:, None, :]
    for _ in range(rounds):
        mu = np.repeat(pseudo[:, :, :, None], types, axis=3)
        for s, m, x in labels:
            mu[m, x] += z[s]
        eta = z[np.diff(table.start) > 0].sum(axis=0) + 1 / 30
        nu = (eta - 1 / 30).sum(axis=1) + 1
        log_said = digamma(mu) - digamma(mu.sum(axis=1, keepdims=True))
        log_type = digamma(eta) - digamma(eta.sum(axis=1, keepdims=True))
        log_type += (digamma(nu) - digamma(nu.sum()))[:, None]
        z = np.tile(log_type, (N, 1, 1))
        for s, m, x in labels:
            z[s] += log_said[m, x]
        z = np.exp(z - z.max(axis=(1, 2), keepdims=True))
        z /= z.sum(axis=(1, 2), keepdims=True)
    return np.asarray(z.sum(axis=2))


@settings(max_examples=15)
@given(drawn=label_matrices(), types=st.integers(1, 3))
def test_the_passes_are_the_plain_loops(drawn: tuple[Ints, int], types: int) -> None:
    matrix, classes = drawn
    table = LabelTable.from_matrix(matrix, classes=classes)
    found = Subtypes(types=types, starts=1, max_iter=4, tol=0.0).fit(table)
    wanted = plain(table, types, 10.0, 5)  # the posteriors follow from a last E step
    labelled = np.diff(table.start) > 0
    near = np.abs(found.posteriors_[labelled] - wanted[labelled]).max(initial=0.0)
    before = np.abs(found.posteriors_[labelled] - plain(table, types, 10.0, 4)[labelled])
    assert min(near, before.max(initial=0.0)) < 1e-9


def test_the_bound_never_falls() -> None:
    table, _ = simulate([0.8, 0.7, 0.7, 0.6, 0.9], items=120, seed=1, classes=3, share=0.7)
    heights = [step.log_likelihood for step in Subtypes(starts=1, tol=0.0).fit(table).history_]
    assert (np.diff(heights) >= -1e-7).all()


def test_more_starts_leave_less_to_luck() -> None:
    table, truth = simulate([0.8, 0.7, 0.7, 0.6, 0.9], items=120, seed=1)
    found = Subtypes(starts=3).fit(table)
    assert len(found.evidence_) == 3
    right = [found.labels_[s] == truth[s] for s in range(120)]
    assert np.mean(right) > 0.85


def test_large_tables_are_fitted_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = simulate([0.85, 0.8, 0.7, 0.7, 0.75], items=3000, seed=0)
    whole = Subtypes(starts=1).fit(table)
    monkeypatch.setattr("venire.estimators.dawid_skene.subtypes.MOST_LABELS", 5000)
    monkeypatch.setattr("venire.estimators.dawid_skene.subtypes.PIECE", 700)
    part = Subtypes(starts=1).fit(table)
    same = part.posteriors_.argmax(axis=1) == whole.posteriors_.argmax(axis=1)
    assert same.mean() > 0.97


@pytest.mark.parametrize("bad", [{"types": 0}, {"starts": 0}, {"strength": 0.0}])
def test_bad_parameters(bad: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected"):
        Subtypes(**bad).fit([("a", "x", 0), ("a", "y", 1)])
