"""The default model is logistic regression, as scikit-learn's; any other can be taught."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from venire.errors import InputError
from venire.student.models import fit_model, logistic


def softmax(scores: np.ndarray) -> np.ndarray:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000))
def test_it_is_logistic_regression_with_an_item_counted_once_for_each_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, K = rng.normal(size=(60, 4)), int(rng.integers(3, 5))
    posterior = rng.dirichlet(np.ones(K), size=60)
    C = float(rng.choice([0.1, 1.0, 3.0]))
    item, said = np.nonzero(posterior > 0)
    plain = LogisticRegression(C=C, max_iter=5000, tol=1e-8)
    plain.fit(rows[item], said, sample_weight=posterior[item, said])
    weights, bias = logistic(rows, posterior, C, steps=2000)
    assert np.abs(softmax(rows @ weights.T + bias) - plain.predict_proba(rows)).max() < 2e-3


def test_sparse_rows_give_what_dense_ones_give() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.4)
    posterior = rng.dirichlet([1, 1], size=50)
    for one, two in zip(
        logistic(rows, posterior, 1.0), logistic(csr_matrix(rows), posterior, 1.0), strict=True
    ):
        assert np.allclose(one, two, atol=1e-6)


@pytest.mark.parametrize("model", [None, KNeighborsClassifier(3), RidgeClassifier()])
def test_any_model_says_how_probable_each_class_is(model: object) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    rows = rng.normal(size=(80, 3)) + 3 * truth[:, None]
    posterior = np.where(truth[:, None] * 2 == [0, 1, 2], 0.8, 0.1)  # nothing is of class 1
    shares = fit_model(rows, posterior, model).shares(rows)
    assert shares.shape == (80, 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (shares.argmax(axis=1) == truth * 2).mean() > 0.9


def test_items_of_one_class_teach_that_class() -> None:
    shares = fit_model(np.eye(4), np.tile([1.0, 0.0], (4, 1))).shares(np.eye(4))
    assert (shares.argmax(axis=1) == 0).all()


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="with fit and predict"):
        fit_model(np.eye(4), np.eye(4), "logistic")
