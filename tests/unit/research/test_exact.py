"""The exact accuracy of weighted majority against plain enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.errors import InputError
from venire.paper.accuracy import accuracy, accuracy_lower_bound, accuracy_upper_bound, verdict
from venire_research.reproduction import exact
from venire_research.reproduction.exact import (
    accuracy_by_size,
    best_c,
    exact_accuracy,
    implied_c,
)

PANELS = st.lists(
    st.one_of(st.sampled_from([0.5, 0.6, 0.75, 0.9, 0.99]), st.floats(0.5, 0.999)),
    min_size=1,
    max_size=7,
)


def by_enumeration(panel: list[float]) -> float:
    """Every truth and every set of labels, decided by `verdict`."""
    total = 0.0
    for truth in (0, 1):
        for said in product((0, 1), repeat=len(panel)):
            if verdict(said, panel) == truth:
                chances = [p if s == truth else 1 - p for s, p in zip(said, panel, strict=True)]
                total += float(np.prod(chances)) / 2
    return total


@given(PANELS)
def test_exact_is_enumeration(panel: list[float]) -> None:
    assert exact_accuracy(panel) == pytest.approx(by_enumeration(panel), abs=1e-12)


@given(PANELS)
def test_exact_lies_between_the_bounds_and_never_falls(panel: list[float]) -> None:
    held, right = accuracy_by_size(panel)
    assert (np.diff(right) >= -1e-12).all()
    assert (right >= accuracy_lower_bound(held) - 1e-12).all()
    assert (right <= accuracy_upper_bound(held) + 1e-12).all()


def test_the_five_of_erratum_7_fall_below_the_printed_bound() -> None:
    held, right = accuracy_by_size([0.875, 0.875, 0.9375, 0.9375, 0.984375])
    assert right[-1] == pytest.approx(0.996992, abs=1e-6)
    assert right[-1] < accuracy(held[-1])


def test_many_equal_labelers_are_a_binomial() -> None:
    from scipy.stats import binom

    assert exact_accuracy([0.7] * 501) == pytest.approx(binom.sf(250, 501, 0.7), abs=1e-12)


def test_too_many_different_labelers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_SUMS", 2**8)
    assert exact_accuracy(np.linspace(0.51, 0.99, 16)) > 0.9
    with pytest.raises(InputError, match="too many to enumerate"):
        exact_accuracy(np.linspace(0.51, 0.99, 20))


def test_implied_and_best_c() -> None:
    held = np.array([0.3, 1.0, 2.5])
    assert implied_c(held, accuracy(held, 0.8)) == pytest.approx([0.8] * 3)
    assert best_c(held, accuracy(held, 0.8)) == 0.8


@pytest.mark.parametrize("wrong", [0.3, 1.2, float("nan")])
def test_a_competence_out_of_range_is_named(wrong: float) -> None:
    with pytest.raises(InputError, match=f"got a competence of {wrong:g}, expected 1/2 to 1"):
        exact_accuracy([0.8, wrong])
