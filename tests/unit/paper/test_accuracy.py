"""Evidence, accuracy and its bounds, weighted majority: published numbers and invariants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import InputError
from venire.paper.accuracy import (
    accuracy,
    accuracy_lower_bound,
    accuracy_upper_bound,
    clamp_competence,
    evidence,
    on_grid,
    posterior,
    verdict,
    vote_weight,
)

probabilities = st.floats(0.5001, 0.999)


@given(probabilities)
def test_evidence_is_the_papers_formula(p: float) -> None:
    assert evidence(p) == pytest.approx((p - 0.5) * math.log(p / (1 - p)), abs=1e-12)
    assert vote_weight(p) == pytest.approx(math.log(p / (1 - p)), abs=1e-12)


@given(st.integers(2, 6), st.floats(0.01, 0.99))
def test_evidence_for_any_number_of_classes_is_a_quarter_of_the_divergence(
    classes: int, share: float
) -> None:
    p = 1 / classes + share * (1 - 1 / classes) * 0.999
    q = (1 - p) / (classes - 1)
    one, other = np.full(classes, q), np.full(classes, q)
    one[0] = other[1] = p
    divergence = ((one - other) * np.log(one / other)).sum()
    assert evidence(p, classes) == pytest.approx(divergence / 4, abs=1e-12)


@given(st.lists(st.floats(-0.5, 1.5), min_size=1))
def test_any_competence_is_clamped_and_nothing_is_nan(p: list[float]) -> None:
    inside = clamp_competence(p)
    assert ((inside >= 0.5) & (inside < 1)).all()
    assert np.isfinite(evidence(p)).all()
    assert np.isfinite(vote_weight(p)).all()
    assert (evidence(p)[np.array(p) <= 0.5] == 0).all()


def test_a_nan_competence_is_refused() -> None:
    with pytest.raises(InputError, match="NaN"):
        evidence([0.7, math.nan])


@given(st.permutations([0.51, 0.6, 0.6, 0.73, 0.85, 0.85, 0.99]))
def test_sums_of_evidence_do_not_depend_on_their_order(p: list[float]) -> None:
    total = 0.0
    for e in evidence(p):
        total += e
    assert total == sum(evidence(sorted(p)))


def exact_accuracy(p: list[float]) -> float:
    """By enumerating every set of labels of an item of the first class."""
    exact = 0.0
    for said in itertools.product([0, 1], repeat=len(p)):
        chance = math.prod(q if s == 0 else 1 - q for q, s in zip(p, said, strict=True))
        scores = posterior(said, p)
        tie = math.isclose(scores[0], scores[1])
        exact += chance * (0.5 if tie else float(verdict(said, p) == 0))
    return exact


@given(st.lists(probabilities, min_size=1, max_size=7))
def test_weighted_majority_lies_between_the_bounds(p: list[float]) -> None:
    total, exact = float(evidence(p).sum()), exact_accuracy(p)
    assert accuracy_lower_bound(total) <= exact + 1e-9
    assert exact <= accuracy_upper_bound(total) + 1e-9


def test_the_lower_bound_as_printed_is_none() -> None:
    """Erratum 7: five labelers do worse than 1 - exp(-evidence)."""
    p = [0.875, 0.875, 0.9375, 0.9375, 0.984375]
    total, exact = float(evidence(p).sum()), exact_accuracy(p)
    assert exact == pytest.approx(0.996992, abs=1e-6)
    assert 1 - math.exp(-total) == pytest.approx(0.997079, abs=1e-6)
    assert accuracy_lower_bound(total) < exact < 1 - math.exp(-total)


@given(st.floats(0, 50))
def test_accuracy_grows_with_c(total: float) -> None:
    assert accuracy(total) == pytest.approx(1 - math.exp(-total))
    assert 0 <= accuracy(total, c=0.5) <= accuracy(total) <= 1


def test_a_tie_goes_to_the_later_class_and_no_labels_give_no_verdict() -> None:
    assert verdict([0, 1], [0.8, 0.8]) == 1
    assert verdict([2, 0, 1], [0.8, 0.8, 0.8], classes=3) == 2
    assert verdict([], []) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.34, 0.99)), min_size=1, max_size=8))
def test_posterior_is_bayes_rule(labels: list[tuple[int, float]]) -> None:
    said, p = [s for s, _ in labels], [q for _, q in labels]
    likelihood = [
        math.prod(q if s == k else (1 - q) / 2 for s, q in zip(said, p, strict=True))
        for k in range(3)
    ]
    expected = np.array(likelihood) / sum(likelihood)
    assert posterior(said, p, classes=3) == pytest.approx(expected, abs=1e-9)


def test_the_grid_is_fine_enough_not_to_be_seen() -> None:
    values = np.linspace(0, 10, 1001)
    assert np.abs(on_grid(values) - values).max() < 3e-14
