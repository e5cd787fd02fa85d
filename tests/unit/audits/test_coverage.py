"""The bounds hold at all times: by exact reckoning, and in streams looked at every step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.audits.intervals import log_capital, upper_count, upper_rate

LEVEL = 0.95
Bools = NDArray[np.bool_]


def ever_missed(rate: float, horizon: int) -> float:
    """The probability that the bound on a process is below its rate at some step, exactly."""
    alive, missed = np.ones(1), 0.0
    for n in range(1, horizon + 1):
        alive = np.append(alive * (1 - rate), 0) + np.append(0, alive * rate)
        out = log_capital(rate, np.arange(n + 1), n) >= -np.log1p(-LEVEL)
        missed += alive[out].sum()
        alive[out] = 0
    return float(missed)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.5, 0.9])
def test_the_bound_of_a_process_misses_seldom_at_all_times(rate: float) -> None:
    assert 0.001 < ever_missed(rate, 3_000) <= 1 - LEVEL


def ever_missed_without_replacement(M: int, bounds: list[NDArray[np.int64]]) -> float:
    size = len(bounds) - 1
    alive, missed = np.ones(1), 0.0
    for n in range(size):
        chance = np.clip((M - np.arange(n + 1)) / (size - n), 0, 1)
        alive = np.append(alive * (1 - chance), 0) + np.append(0, alive * chance)
        out = bounds[n + 1] < M
        missed += alive[out].sum()
        alive[out] = 0
    return float(missed)


def test_the_bound_of_a_finite_set_misses_seldom_whatever_the_number_of_errors() -> None:
    size = 80
    bounds = [
        np.array([upper_count(S, n, size, LEVEL) for S in range(n + 1)]) for n in range(size + 1)
    ]
    missed = [ever_missed_without_replacement(M, bounds) for M in range(size + 1)]
    assert max(missed) <= 1 - LEVEL
    assert max(missed) > 0.02  # not by being far too wide


def covered_by_intervals(errors: Bools, rate: float) -> Bools:
    """Whether the two-sided interval of each stream holds the rate at every step."""
    n = np.arange(1, errors.shape[1] + 1)
    code = errors.cumsum(axis=1) * (n[-1] + 1) + n
    unique, place = np.unique(code, return_inverse=True)
    S, audited = unique // (n[-1] + 1), unique % (n[-1] + 1)
    half = (1 + LEVEL) / 2
    held = (upper_rate(S, audited, half) >= rate) & (
        1 - upper_rate(audited - S, audited, half) <= rate
    )
    return np.asarray(held[place.reshape(code.shape)].all(axis=1))


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_intervals_cover_in_a_thousand_streams_under_peeking(rate: float) -> None:
    errors = np.random.default_rng(12).random((1_000, 500)) < rate
    assert covered_by_intervals(errors, rate).mean() >= LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_intervals_cover_in_long_streams_under_peeking(rate: float) -> None:
    rng = np.random.default_rng(13)
    held = [covered_by_intervals(rng.random((500, 5_000)) < rate, rate).mean() for _ in range(4)]
    assert np.mean(held) >= LEVEL


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_a_bound_of_one_time_does_not_cover_under_peeking(rate: float) -> None:
    """Why all this: Clopper and Pearson's bound, looked at after every audit."""
    from scipy.stats import beta

    rng = np.random.default_rng(12)
    errors = rng.random((1_000, 500)) < rate
    S, n = errors.cumsum(axis=1), np.arange(1, 501)
    held = beta.ppf(LEVEL, S + 1, np.maximum(n - S, 1e-9)) >= rate
    assert held.all(axis=1).mean() < 0.85
