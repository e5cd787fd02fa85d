"""Exact intervals for shares, beside plain sums over all that could have happened."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import examples
from venire.audits.intervals import Interval, added, exact_interval, finite_interval, mean_interval


def plain_finite(x: int, n: int, size: int, half: Fraction) -> tuple[float, float]:
    """The least and the largest number that does not make the sample too unlikely."""
    stays = []
    for M in range(x, size - n + x + 1):
        ways = [comb(M, k) * comb(size - M, n - k) for k in range(n + 1)]
        as_many, as_few = sum(ways[x:]), sum(ways[: x + 1])
        total = comb(size, n)
        stays.append((M, Fraction(as_many, total) > half, Fraction(as_few, total) > half))
    low = min(M for M, many, _ in stays if many)
    high = max(M for M, _, few in stays if few)
    return low / size, high / size


@given(st.integers(1, 40), st.data())
@examples(night=60, day=20)
def test_a_finite_set_equals_the_plain_sums(size: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, size))
    x = data.draw(st.integers(0, n))
    wanted = plain_finite(x, n, size, Fraction(1, 30))  # no sum is a multiple of a 30th by chance
    assert finite_interval(x, n, size, 14 / 15) == pytest.approx(wanted)


@given(st.integers(1, 300), st.data())
@settings(deadline=None, max_examples=40)
def test_a_process_equals_scipy(n: int, data: st.DataObject) -> None:
    from scipy.stats import binomtest

    x = data.draw(st.integers(0, n))
    found = binomtest(x, n).proportion_ci(0.9, "exact")
    assert exact_interval(x, n, 0.9) == pytest.approx((found.low, found.high), abs=1e-9)


@given(st.integers(1, 60), st.data())
@settings(deadline=None)
def test_a_large_set_is_a_process(n: int, data: st.DataObject) -> None:
    x = data.draw(st.integers(0, n))
    assert finite_interval(x, n, 60_000, 0.95) == pytest.approx(
        exact_interval(x, n, 0.95), abs=3e-3
    )


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=60))
@settings(deadline=None)
def test_the_mean_is_inside_and_sides_can_be_exchanged(values: list[float]) -> None:
    x = np.array(values)
    one, other = mean_interval(x, 0.95), mean_interval(1 - x, 0.95)
    assert 0 <= one.low <= one.estimate <= one.high <= 1
    assert one.estimate == pytest.approx(x.mean())
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high), abs=1e-9)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=40), st.floats(0.1, 50))
@settings(deadline=None)
def test_equal_weights_are_none(values: list[float], weight: float) -> None:
    x = np.array(values)
    got = mean_interval(x, 0.9, 100, np.full(len(x), weight))
    assert got == mean_interval(x, 0.9, 100)


def test_unequal_weights_widen_and_shift() -> None:
    x = np.array([1.0, 0, 0, 0] * 10)
    heavy = np.where(x == 1, 3.0, 1.0)
    got = mean_interval(x, 0.95, None, heavy)
    assert got.estimate == pytest.approx(0.5)
    assert got.width > mean_interval(np.array([1.0, 0] * 20), 0.95).width


@given(st.lists(st.floats(1, 50), min_size=2, max_size=60), st.sampled_from([0.0, 1.0]))
@settings(deadline=None)
def test_a_share_of_all_or_none_is_exact(weights: list[float], value: float) -> None:
    got = mean_interval(np.full(len(weights), value), 0.95, None, np.array(weights))
    assert got.estimate == value  # no 0.9999999999999999, which a page shows as >99.9 %


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_ties_hold_as_often_as_promised(share: float) -> None:
    rng = np.random.default_rng(1)
    chances = (share, 0.4, 0.6 - share)
    target = share * 1 + 0.4 * 0.5
    held = 0
    for _ in range(600):
        found = mean_interval(rng.choice([1.0, 0.5, 0.0], 40, p=chances), 0.9)
        held += found.low <= target <= found.high
    assert held / 600 >= 0.9 - 3 * (0.09 / 600) ** 0.5


def test_a_sum_keeps_its_sides() -> None:
    one, other = Interval(0.1, 0.0, 0.4), Interval(0.2, 0.1, 0.2)
    total = added([one, other])
    assert total.estimate == pytest.approx(0.3)
    assert total.low == pytest.approx(0.3 - (0.1**2 + 0.1**2) ** 0.5)
    assert total.high == pytest.approx(0.6)
