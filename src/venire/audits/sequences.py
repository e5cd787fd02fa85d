r"""Intervals for a mean that hold at all times, helped by judges: betting on differences.

Of N items the judges' scores f are all known, and the true values y of those drawn so far, one by
one without replacement. Whatever was seen before the i-th draw, the score that comes next has the
known mean F_i (that of the items not yet drawn), and the value has the mean m_i = (N theta - sum of
the values so far) / (N - i + 1), if theta is the mean of all. So

    x_i = y_i - lambda_i (f_i - F_i),      lambda_i by what was seen before,

has the mean m_i too, and a smaller spread where the scores tell something: prediction-powered
inference (Angelopoulos, Duchi, Zrnic, "PPI++", 2023), one draw at a time. With betting
(Waudby-Smith and Ramdas, 2023) this gives an interval: somebody who thinks that the mean is larger
stakes a share phi of the capital on it,

    K <- K (1 + phi (x_i - m_i) / (m_i - low_i)),      low_i the least that x_i can be,

which is a fair game if theta is the mean, for any phi in [0, 1): the capital ever reaches 2/alpha
with probability alpha/2 at most. The capital here is spread evenly over a few phi, and over lambda
as it is tuned and lambda = 0, trusted labels alone. Every factor falls as theta rises, so the
lower end is the one root, by bisection; the upper end likewise, from the other side.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.audits.shares import Interval

__all__ = ["missed_ever", "sequence_interval", "tuned"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The shares of the capital that are staked.
STAKES: Final = np.geomspace(0.01, 0.95, 12)

#: Labels that lambda is shrunk by, towards 0.
SHRINK: Final = 10.0

HALVINGS: Final = 40


def tuned(score: Floats, place: Ints, value: Floats) -> Floats:
    """Lambda for each draw, by the draws before: covariance over variance, shrunk, in [-1, 1].

    >>> score = np.array([0.0, 1, 0, 1])
    >>> tuned(score, np.array([0, 1, 2]), np.array([0.0, 1, 0])).round(3).tolist()
    [0.0, 0.0, 0.167]
    """
    spread = float(score.var())
    if spread <= 0:
        return np.zeros(len(place))
    f, y, n = score[place], value, np.arange(len(place))
    sums = [np.concatenate([[0.0], np.cumsum(x)[:-1]]) for x in (f, y, f * y)]
    shared = sums[2] - sums[0] * sums[1] / np.maximum(n, 1)
    return np.asarray(np.clip(shared / ((n + SHRINK) * spread), -1.0, 1.0))


def sequence_interval(
    score: Floats, place: Ints, value: Floats, level: float, alone: bool = False
) -> Interval:
    """The mean of all values, by those of the items drawn so far, in their order.

    Parameters
    ----------
    score
        What the judges say of every item, from 0 to 1.
    place
        The items drawn, as indices of `score`, in the order in which they were.
    value
        Their true values, from 0 to 1.
    level
        The probability with which the interval holds, at all times together.
    alone
        By the trusted labels alone.

    Examples
    --------
    >>> truth = np.array([1.0, 0, 0, 0] * 100)
    >>> drawn = np.random.default_rng(0).permutation(400)[:200]
    >>> with_judges = sequence_interval(truth, drawn, truth[drawn], 0.95)
    >>> alone = sequence_interval(truth, drawn, truth[drawn], 0.95, alone=True)
    >>> with_judges.low < 0.25 < with_judges.high, with_judges.width < 0.7 * alone.width
    (True, True)
    """
    bets = [np.zeros(len(place))] + ([] if alone else [tuned(score, place, value)])
    threshold = float(np.log(2 / (1 - level)))
    low = _lower(score, place, value, bets, threshold)
    high = 1 - _lower(1 - score, place, 1 - value, bets, threshold)
    size, n = len(score), len(place)
    if not n:
        return Interval(0.5, 0.0, 1.0)
    slope = 0.0 if alone else float(tuned(score, np.append(place, 0), np.append(value, 0.0))[-1])
    middle = float(value.mean() + slope * (score.mean() - score[place].mean()))
    least, most = float(value.sum()) / size, float(value.sum() + size - n) / size
    low, high = max(low, least), min(high, most)
    return Interval(min(max(middle, low), high), low, high)


def missed_ever(score: Floats, place: Ints, value: Floats, level: float, theta: float) -> bool:
    """Whether a mean of theta was outside of the interval after any of the draws.

    >>> truth = np.array([1.0, 0, 0, 0] * 100)
    >>> drawn = np.random.default_rng(1).permutation(400)[:80]
    >>> missed_ever(truth, drawn, truth[drawn], 0.95, 0.25)
    False
    >>> missed_ever(truth, drawn, truth[drawn], 0.95, 0.6)
    True
    """
    slopes = [np.zeros(len(place)), tuned(score, place, value)]
    threshold = float(np.log(2 / (1 - level)))
    sides = ((score, value, theta), (1 - score, 1 - value, 1 - theta))
    return any(_capital(t, _Game.of(s, place, v, slopes)) >= threshold for s, v, t in sides)


class _Game(NamedTuple):
    """What the bets are on, draw by draw: the differences, the least of each, what was before."""

    x: Floats
    least: Floats
    seen: Floats
    left: Ints
    size: int

    @classmethod
    def of(cls, score: Floats, place: Ints, value: Floats, slopes: list[Floats]) -> _Game:
        left = len(score) - np.arange(len(place), dtype=np.int64)
        f = score[place]
        rest = np.maximum(0.0, score.sum() - np.concatenate([[0.0], f.cumsum()[:-1]])) / left
        seen = np.concatenate([[0.0], value.cumsum()[:-1]])
        x = np.stack([value - s * (f - rest) for s in slopes])
        least = np.stack([-np.where(s > 0, s * (1 - rest), -s * rest) for s in slopes])
        return cls(x, least, seen, left, len(score))


def _lower(
    score: Floats, place: Ints, value: Floats, slopes: list[Floats], threshold: float
) -> float:
    """The least mean that stays: bets are that it is larger."""
    if not len(place):
        return 0.0
    game = _Game.of(score, place, value, slopes)
    low, high = float(value.sum()) / len(score), 1.0
    if _capital(low, game) < threshold:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _capital(middle, game) >= threshold else (low, middle)
    return low


def _capital(theta: float, game: _Game) -> float:
    """The logarithm of the most that the capital ever was, against a mean of theta."""
    mean = (game.size * theta - game.seen) / game.left
    if mean.min() < -1e-12:  # more was seen than there can be
        return float("inf")
    room = np.maximum(np.maximum(mean, 0.0) - game.least, 1e-12)
    odds = np.maximum((game.x - mean) / room, -1.0)
    made = np.log1p(STAKES[:, None, None] * odds).cumsum(axis=2).reshape(-1, len(mean))
    most = made.max(axis=0)
    return float((most + np.log(np.exp(made - most).mean(axis=0))).max())
