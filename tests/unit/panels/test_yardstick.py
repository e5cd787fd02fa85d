"""The yardstick: its means and standard errors against a plain bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.marks import examples
from venire import InputError, LabelTable, MajorityVote
from venire.panels import Yardstick
from venire.panels.yardstick import verdicts_of

Floats = NDArray[np.float64]


def drawn_posteriors(rng: np.random.Generator, items: int, classes: int) -> Floats:
    return np.asarray(rng.dirichlet(np.full(classes, 0.5), size=items))


def drawn_verdicts(rng: np.random.Generator, items: int, classes: int) -> Floats:
    return np.asarray(np.eye(classes)[rng.integers(classes, size=items)])


def bootstrap(
    shares: Floats, q: Floats, rng: np.random.Generator, draws: int
) -> tuple[float, float]:
    """Draw items with replacement and the class of each: the mean and spread of the result."""
    found = []
    for _ in range(draws):
        item = rng.integers(len(q), size=len(q))
        truth = (q[item].cumsum(axis=1) < rng.random((len(q), 1))).sum(axis=1)
        found.append(shares[item, np.minimum(truth, q.shape[1] - 1)].mean())
    return float(np.mean(found)), float(np.std(found))


@pytest.mark.parametrize("classes", [2, 4])
def test_standard_errors_are_those_of_a_bootstrap_over_items_and_their_truth(classes: int) -> None:
    rng = np.random.default_rng(classes)
    q = drawn_posteriors(rng, 300, classes)
    one, other = (drawn_verdicts(rng, 300, classes) for _ in range(2))
    rule = Yardstick.of_posteriors(q)
    for got, shares in ((rule.accuracy(one), one), (rule.change(one, other), other - one)):
        mean, spread = bootstrap(shares, q, rng, 3000)
        assert got.value == pytest.approx(mean, abs=4 * spread / np.sqrt(3000))
        assert got.error == pytest.approx(spread, rel=0.1)


@given(st.integers(1, 40), st.integers(2, 4), st.integers(0, 2**32 - 1))
@examples(night=100, day=30)
def test_no_verdicts_beat_those_of_the_yardstick(items: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = drawn_posteriors(rng, items, classes)
    rule, best = Yardstick.of_posteriors(q), np.eye(classes)[q.argmax(axis=1)]
    other = drawn_verdicts(rng, items, classes)
    assert rule.change(best, other).value <= 1e-12
    assert rule.accuracy(other).value == pytest.approx(
        rule.accuracy(best).value + rule.change(best, other).value
    )


def test_with_the_truth_it_counts_right_verdicts() -> None:
    table = LabelTable.from_matrix([[0, 0, 1], [1, 1, 1], [0, 1, -1], [-1, -1, -1]])
    verdicts = verdicts_of(MajorityVote().fit(table))
    assert verdicts.tolist() == [[1, 0], [0, 1], [0.5, 0.5], [0, 0]]
    rule = Yardstick.of_truth(np.array([0, 1, 1, 0]), 2)
    assert rule.accuracy(verdicts).value == pytest.approx(2.5 / 4)
    assert Yardstick.of_truth(np.array([0, -1, -1, 2]), 2).accuracy(verdicts).value == 0.5


def test_no_truth_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no item has a known truth"):
        Yardstick.of_truth(np.array([-1, -1]), 2)
