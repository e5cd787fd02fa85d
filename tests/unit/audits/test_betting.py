from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.audits import plain
from venire.audits.intervals import log_capital, log_capitals, upper_count, upper_rate
from venire.errors import InputError

errors = st.lists(st.booleans(), max_size=9)
rates = st.floats(0.01, 0.99)


def counts(most: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(0, most).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(errors, st.integers(0, 8))
@settings(deadline=None)
def test_a_finite_set_equals_the_plain_bettor(errors: list[bool], more: int) -> None:
    size, wrong = len(errors) + more, sum(errors)
    got = np.exp(log_capitals(wrong, len(errors), size))
    wanted = [plain.capital(errors, M, size) for M in range(size + 1)]
    possible = [float(K) for K in wanted if K is not None]
    assert np.allclose(got, possible, rtol=1e-9, atol=1e-12)
    for alpha in (Fraction(1, 20), Fraction(1, 3)):
        bound = upper_count(wrong, len(errors), size, float(1 - alpha))
        ties_stay = alpha * Fraction(1_000_000, 1_000_001)
        assert bound == plain.upper_count(errors, size, ties_stay)


@given(st.lists(st.booleans(), max_size=6), st.floats(0.05, 0.95))
@settings(deadline=None, max_examples=15)
def test_a_process_equals_the_plain_bettor(errors: list[bool], m: float) -> None:
    got = math.exp(float(log_capital(m, sum(errors), len(errors))))
    assert got == pytest.approx(plain.capital_of_process(errors, m), rel=1e-6)


@given(rates, counts(10_000))
def test_no_bet_against_the_true_rate_is_favourable(m: float, pair: tuple[int, int]) -> None:
    """The capital is a martingale, so Ville's inequality gives coverage at all times."""
    S, n = pair
    now, error, right = (float(log_capital(m, *x)) for x in [(S, n), (S + 1, n + 1), (S, n + 1)])
    if now > -600:  # below that it is all lost
        after = m * math.exp(error - now) + (1 - m) * math.exp(right - now)
        assert after == pytest.approx(1, rel=1e-6)


@given(st.integers(2, 60), st.data())
def test_the_same_without_replacement(size: int, data: st.DataObject) -> None:
    S, n = data.draw(counts(size - 1))
    now, error, right = (
        np.exp(log_capitals(*pair, size)) for pair in [(S, n), (S + 1, n + 1), (S, n + 1)]
    )
    for i in range(len(now)):  # M = S + i wrong ones
        chance = i / (size - n)
        after = chance * (error[i - 1] if i else 0) + (1 - chance) * (
            right[i] if i < len(right) else 0
        )
        assert after <= now[i] * (1 + 1e-9)
        if 0 < chance < 1:
            assert after == pytest.approx(now[i], rel=1e-9)


@given(counts(500), rates, rates)
def test_the_capital_rises_with_the_rate(pair: tuple[int, int], one: float, two: float) -> None:
    low, high = (log_capital(m, *pair) for m in sorted((one, two)))
    # with hundreds of errors at a small rate the beta function underflows; there nothing was won
    assert low <= high + 1e-9 or high < 0


@given(counts(60), st.integers(0, 60))
def test_the_capital_rises_with_the_number(pair: tuple[int, int], more: int) -> None:
    capitals = log_capitals(*pair, pair[1] + more)
    assert (np.diff(capitals[1:]) >= -1e-9).all()  # the first is lost, or nothing was bet


@given(counts(2_000), st.floats(0.5, 0.999))
def test_the_bound_is_where_the_capital_reaches_the_threshold(
    pair: tuple[int, int], level: float
) -> None:
    bound = float(upper_rate(*pair, level))
    assert pair[0] / max(pair[1], 1) <= bound <= 1
    if bound < 1:
        assert float(log_capital(bound, *pair)) == pytest.approx(-math.log1p(-level), abs=1e-4)


@given(counts(200), st.integers(0, 200))
def test_more_errors_never_give_a_lower_bound(pair: tuple[int, int], more: int) -> None:
    S, n = pair
    if n > S:
        assert upper_rate(S, n) <= upper_rate(S + 1, n)
        assert upper_count(S, n, n + more) <= upper_count(S + 1, n, n + more)


@given(counts(300))
@settings(max_examples=20)
def test_a_large_set_is_a_process(pair: tuple[int, int]) -> None:
    size = 300_000
    assert upper_count(*pair, size) / size == pytest.approx(float(upper_rate(*pair)), abs=2e-3)


@given(counts(200))
def test_nothing_is_in_doubt_when_all_are_audited(pair: tuple[int, int]) -> None:
    assert upper_count(*pair, pair[1]) == pair[0]


@pytest.mark.parametrize("level", [0, 1, 95, math.nan])
def test_a_level_that_is_none(level: float) -> None:
    from venire.audits import ErrorBound

    with pytest.raises(InputError, match=r"expected more than 0 and less than 1: 0\.95"):
        ErrorBound(level)
