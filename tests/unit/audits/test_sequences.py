"""Betting on differences: a plain bettor, and exact reckoning of how often it is ever wrong."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.audits.intervals import STAKES, missed_ever, sequence_interval, tuned


def plain_most(score: list[float], place: list[int], value: list[float], theta: float) -> float:
    """The most that the capital ever was, one bet after the other; bets are that it is larger."""
    slopes = tuned(np.array(score), np.array(place), np.array(value)).tolist()
    purses = {(k, phi): 1.0 for k in (0, 1) for phi in STAKES.tolist()}
    most, size = 0.0, len(score)
    for i, (at, y) in enumerate(zip(place, value, strict=True)):
        rest = [score[j] for j in range(size) if j not in place[:i]]
        mean_f = sum(rest) / len(rest)
        mean = (size * theta - sum(value[:i])) / (size - i)
        if mean < -1e-12:
            return float("inf")
        for k, phi in purses:
            slope = slopes[i] if k else 0.0
            x = y - slope * (score[at] - mean_f)
            least = min(0 - slope * (f - mean_f) for f in (0.0, 1.0))
            purses[k, phi] *= 1 + phi * max(-1.0, (x - mean) / max(mean - least, 1e-12))
        most = max(most, sum(purses.values()) / len(purses))
    return most


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_it_equals_the_plain_bettor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, truth = rng.random(30).round(2), rng.choice([0.0, 0.5, 1.0], 30)
    place, theta = rng.permutation(30)[:12], float(rng.uniform(0.05, 0.95))
    value = truth[place]
    given_ = place.tolist(), value.tolist()
    up = plain_most(score.tolist(), *given_, theta)
    down = plain_most((1 - score).tolist(), given_[0], (1 - value).tolist(), 1 - theta)
    level = 0.6
    if abs(max(up, down) - 2 / 0.4) > 1e-6:
        assert missed_ever(score, place, value, level, theta) == (max(up, down) >= 2 / 0.4)


@pytest.mark.parametrize("marked", [1, 3])
@pytest.mark.parametrize("helpful", [True, False])
def test_it_is_seldom_ever_wrong_over_all_orders(marked: int, helpful: bool) -> None:
    truth = np.array([1.0] * marked + [0.0] * (6 - marked))
    score = truth if helpful else 1 - truth * 0.3
    missed = [
        missed_ever(score, np.array(order), truth[list(order)], 0.5, marked / 6)
        for order in permutations(range(6))
    ]
    assert np.mean(missed) <= 0.5


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_the_ends_are_where_it_begins_to_be_missed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = (rng.random(80) < 0.4).astype(np.float64)
    score = np.clip(truth * 0.6 + rng.random(80) * 0.4, 0, 1)
    place = rng.permutation(80)[:40]
    found = sequence_interval(score, place, truth[place], 0.8)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    for end, step in ((found.low, 1e-6), (found.high, -1e-6)):
        assert not missed_ever(score, place, truth[place], 0.8, end + step)


def test_more_labels_never_widen() -> None:
    rng = np.random.default_rng(1)
    truth = (rng.random(300) < 0.2).astype(np.float64)
    place = rng.permutation(300)
    ends = [sequence_interval(truth, place[:n], truth[place[:n]], 0.95) for n in (0, 30, 100, 300)]
    assert ends[0].low == 0
    assert ends[0].high == 1
    assert ends[-1].width == pytest.approx(0, abs=1e-9)
    for before, after in pairwise(ends):
        assert before.low <= after.low + 1e-9
        assert before.high >= after.high - 1e-9
