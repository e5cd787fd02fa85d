"""f, u and the gain: they agree with each other, and ties are exact."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from venire.paper.utility import earned, f, gain, reach, realised_utility, residual, true_utility, u

weights = st.floats(0.01, 1e6)
evidences = st.floats(0, 8)
blocks = st.lists(st.tuples(evidences, st.integers(0, 20)), max_size=6)


@given(weights, blocks, st.floats(0.01, 3), st.integers(0, 5))
def test_the_gain_is_the_difference_of_two_f(
    weight: float, taken: list[tuple[float, int]], label: float, wait: int
) -> None:
    last = max((slot for _, slot in taken), default=0)
    held = sum(e for e, _ in taken)
    before = f(weight, 0, taken)
    after = f(weight, 0, [*taken, (label, last + wait)])
    value = gain(residual(weight, held), reach(label), wait)
    assert value == pytest.approx(after - before, abs=1e-9 * max(1, weight))


@given(weights, blocks)
def test_u_never_falls_and_is_never_negative(weight: float, taken: list[tuple[float, int]]) -> None:
    path = [u(weight, 0, taken[:k]) for k in range(len(taken) + 1)]
    assert path == sorted(path)
    assert path[0] == 0


@given(weights, evidences, evidences, st.floats(1e-6, 1), st.integers(0, 100))
def test_at_equal_delay_residuals_and_computed_gains_have_one_order(
    weight: float, e1: float, e2: float, x: float, delay: int
) -> None:
    a, b = residual(weight, e1), residual(weight, e2)
    assume(gain(a, x, delay) > 0 or gain(b, x, delay) > 0)
    assert (a > b) == (gain(a, x, delay) > gain(b, x, delay))
    assert (a == b) == (gain(a, x, delay) == gain(b, x, delay))


@given(weights, evidences)
def test_a_residual_is_rounded_to_forty_bits(weight: float, held: float) -> None:
    value = residual(weight, held)
    assert value == pytest.approx(weight * math.exp(-held), rel=2**-39)
    mantissa, _ = math.frexp(value)
    assert mantissa * 2**41 == int(mantissa * 2**41)


def test_the_three_accountings_side_by_side() -> None:
    """Arrived at 2, last label at 3, left at 7."""
    assert earned(10, 1.0, 3 - 2) == pytest.approx(10 * (1 - math.exp(-1)) - 1)
    assert realised_utility(10, 1.0, 2, 7) == pytest.approx(10 * (1 - math.exp(-1)) - 5)
    assert (true_utility(10, True, 2, 7), true_utility(10, False, 2, 7)) == (5, -5)
