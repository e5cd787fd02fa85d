r"""Intervals and bounds of a share: by one look at a sample, or at all times.

**Intervals for a share by a sample, exact for one look: Clopper and Pearson's.**

A share is bounded by those that would have made the sample too unlikely: less than (1 - level)/2
for as many successes as were seen, or more; and the same for as many or fewer. The samples are of
a process (binomial), or of a finite set without replacement (hypergeometric): of N things M are
marked, and X of the n drawn are. Draw first, then mark the things one by one in random order. The
x-th mark on a drawn thing is the j-th mark with probability

    C(j-1, x-1) C(N-j, n-x) / C(N, n),

and X >= x if it is one of the first M: one running sum gives P(X >= x) for every M at once.

Weighted samples have an effective size, which need not be whole (Korn and Graubard, "Confidence
intervals for proportions with small expected number of positive counts estimated from survey
data", 1998): the binomial formula takes it as it is.

**Upper bounds on an error rate that hold at all times, by betting.**

Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (2023). Take
every rate m in turn. A bettor who thinks that the true rate is lower starts with a capital of 1
and bets before each audit; were m the true rate, no bet would be favourable, and by Ville's
inequality the capital would ever reach 1/alpha with probability alpha at most, however long one
looks and whenever one stops. So the rates at which it stays below 1/alpha, all of them seen
together, hold the true rate at all times with probability 1 - alpha: their largest is the bound.

For errors that are 0 or 1 every bet is a ratio of likelihoods: who bets that the rate is q gets
q/m for one on an error and (1-q)/(1-m) on a right verdict. The bettor here spreads its capital
evenly over all q below m, a mixture of constant bets. After S errors and F right verdicts it has

    K(m) = 1/m \int_0^m (q/m)^S ((1-q)/(1-m))^F dq
         = m^(-S-1) (1-m)^(-F) B(m; S+1, F+1)        (the incomplete beta function).

It depends on the counts only, not on their order. With q = um every factor rises with m, so K
does, and the bound is the one root of K(m) = 1/alpha, found by bisection.

Without replacement, from N verdicts of which M are wrong, the next one is wrong with probability
(M - S)/(N - S - F), and the same bettor spreads its capital over the whole numbers below M:

    K(M) = 1/M sum_{Q<M} L(Q) / L(M),   L(M) = M!/(M-S)! (N-M)!/(N-M-F)!.

K is worked out at every M that can be, and the largest M with K(M) < 1/alpha is the bound.

**Intervals for a mean that hold at all times, helped by judges: betting on differences.**

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

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, betaln, gammaln

from venire.errors import InputError
from venire.tools.arrays import Floats, Ints


class Interval(NamedTuple):
    """An estimate between its two ends.

    >>> Interval(0.2, 0.1, 0.4).width
    0.30000000000000004
    """

    estimate: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """From one end to the other."""
        return self.high - self.low

    def scaled(self, by: float) -> Interval:
        """The interval of a multiple.

        >>> Interval(0.2, 0.1, 0.4).scaled(-1)
        Interval(estimate=-0.2, low=-0.4, high=-0.1)
        """
        ends = sorted((by * self.low, by * self.high))
        return Interval(by * self.estimate, ends[0], ends[1])


def exact_interval(successes: float, n: float, level: float) -> tuple[float, float]:
    """Between which shares a process has its own, by `successes` of `n`; neither need be whole.

    >>> [round(end, 4) for end in exact_interval(3, 20, 0.95)]
    [0.0321, 0.3789]
    >>> exact_interval(0, 0, 0.95)
    (0.0, 1.0)
    """
    half, failures = (1 - level) / 2, n - successes
    low = betaincinv(successes, failures + 1, half) if successes > 1e-12 else 0.0
    high = betaincinv(successes + 1, failures, 1 - half) if failures > 1e-12 else 1.0
    return float(low), float(high)


@lru_cache(maxsize=20_000)
def finite_interval(successes: int, n: int, size: int, level: float) -> tuple[float, float]:
    """The same for the share of `size` things of which `n` were drawn without replacement.

    >>> finite_interval(3, 20, 40, 0.95), finite_interval(3, 40, 40, 0.95)
    ((0.075, 0.3), (0.075, 0.075))
    """
    half = (1 - level) / 2
    marked = np.arange(size + 1)
    possible = (marked >= successes) & (marked <= size - n + successes)
    low = marked[possible & (_at_least(successes, n, size) > half)][0]
    high = marked[possible & (1 - _at_least(successes + 1, n, size) > half)][-1]
    return float(low / size), float(high / size)


def _at_least(x: int, n: int, size: int) -> Floats:
    """P(X >= x) for each number of marked things from 0 to `size`."""
    if x <= 0 or x > n:
        return np.full(size + 1, float(x <= 0))
    log = log_factorials(size)
    fits = log[x - 1 : size - n + x] - log[: size - n + 1]  # C(j-1, x-1), j from x on
    fits += (log[n - x : size - x + 1] - log[: size - n + 1])[::-1]
    fits -= log[x - 1] + log[n - x] + log[size] - log[n] - log[size - n]
    found = np.zeros(size + 1)
    found[x : size - n + x + 1] = np.exp(fits)
    return np.asarray(np.minimum(found.cumsum(), 1.0))


@lru_cache(maxsize=64)
def log_factorials(most: int) -> Floats:
    """The logarithms of 0! to most!.

    >>> log_factorials(3).round(3).tolist()
    [0.0, 0.0, 0.693, 1.792]
    """
    return np.asarray(gammaln(np.arange(1.0, most + 2)))


def mean_interval(
    values: Floats, level: float, size: int | None = None, weights: Floats | None = None
) -> Interval:
    """The mean of things that are worth 0, a half or 1, by the values of a random sample.

    Halves (ties) are no worse than a share: the mean is (1 + wins - losses) / 2, both shares
    have their intervals, and these are added up as those of correlated counts. Without any value
    the interval is from 0 to 1. The values were drawn of `size` things without replacement (None:
    of a process); `weights` are one over the probability of each draw, None if all are the same.

    >>> got = mean_interval(np.array([1.0, 1, 0, 1]), 0.95, size=4)
    >>> got.estimate, got.low, got.high
    (0.75, 0.75, 0.75)
    >>> ties = mean_interval(np.array([0.5] * 30), 0.95)
    >>> ties.estimate, round(ties.low, 3), round(ties.high, 3)
    (0.5, 0.442, 0.558)
    """
    if not len(values):
        return Interval(0.5, 0.0, 1.0)
    if weights is not None and float(np.ptp(weights)) < 1e-9 * float(weights.max()):
        weights = None
    w = np.full(len(values), 1 / len(values)) if weights is None else weights / weights.sum()
    win, loss = _share(values == 1, w), _share(values == 0, w)
    won = _share_interval(1.0, values, w, level, size, weights is None)
    if win + loss > 1 - 1e-12:
        return Interval(win, *won)
    lost = _share_interval(0.0, values, w, level, size, weights is None)
    together = 2 * np.sqrt(win * loss / ((1 - win) * (1 - loss)))
    down, up = (win - won[0], lost[1] - loss), (won[1] - win, loss - lost[0])
    ends = [np.sqrt(a * a + b * b + together * a * b) / 2 for a, b in (down, up)]
    mean = (1 + win - loss) / 2
    return Interval(mean, max(0.0, mean - float(ends[0])), min(1.0, mean + float(ends[1])))


def _share(which: NDArray[np.bool_], w: Floats) -> float:
    return 1.0 if which.all() else min(1.0, float(w[which].sum()))  # not 1 less a rounding


def _share_interval(
    of: float, values: Floats, w: Floats, level: float, size: int | None, plain: bool
) -> tuple[float, float]:
    hits = values == of
    if plain and size is not None:
        return finite_interval(int(hits.sum()), len(values), size, level)
    if plain:
        return exact_interval(int(hits.sum()), len(values), level)
    share = _share(hits, w)
    effective = 1 / float((w * w).sum())
    spread = float((w * w * (hits - share) ** 2).sum())
    if spread > 0:
        effective = min(effective, share * (1 - share) / spread)
    return exact_interval(share * effective, effective, level)


def added(parts: list[Interval]) -> Interval:
    """The sum of independent estimates, each with its interval.

    The distances of the ends are added up as standard errors are (Zou and Donner, "Construction
    of confidence limits about effect measures", 2008), so that intervals keep their shapes: one
    that cannot go below 0 does not in the sum.

    >>> total = added([Interval(0.1, 0.1, 0.4), Interval(0.5, 0.1, 0.9)])
    >>> round(total.estimate, 6), round(total.low, 6), round(total.high, 6)
    (0.6, 0.2, 1.1)
    """
    total = sum(part.estimate for part in parts)
    down = sum((part.estimate - part.low) ** 2 for part in parts) ** 0.5
    up = sum((part.high - part.estimate) ** 2 for part in parts) ** 0.5
    return Interval(total, total - down, total + up)


#: Halvings of [0, 1]: the bound is exact to the last bits of a double.
HALVINGS: Final = 52

#: Rounding may be off by less than this in the logarithm of the capital; it goes to the bound.
SLACK: Final = 1e-6


def log_capital(rate: ArrayLike, wrong: ArrayLike, audited: ArrayLike) -> Floats:
    """The logarithm of the capital against a rate, after a number of audits and the errors in them.

    >>> float(log_capital(0.5, 0, 1))  # 1/0.5 times the integral of (1-q)/0.5 from 0 to 0.5
    0.405465...
    """
    m, S, n = (np.asarray(x, np.float64) for x in (rate, wrong, audited))
    F = n - S
    with np.errstate(divide="ignore"):  # the logarithm of a capital that is all lost
        below = betaln(S + 1, F + 1) + np.log(betainc(S + 1, F + 1, m))
    return np.asarray(below - (S + 1) * np.log(m) - F * np.log1p(-m))


def upper_rate(wrong: ArrayLike, audited: ArrayLike, level: float = 0.95) -> Floats:
    """The upper bound on the rate of errors of a process, for each pair of counts.

    >>> upper_rate([0, 0, 5], [0, 100, 100]).round(4).tolist()
    [1.0, 0.044, 0.1344]
    """
    S, n = np.broadcast_arrays(np.asarray(wrong, np.float64), np.asarray(audited, np.float64))
    low, high = S / np.maximum(n, 1), np.ones(S.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        with np.errstate(invalid="ignore", divide="ignore"):  # a middle that is rounded to 1
            stays = ~(log_capital(middle, S, n) >= _threshold(level))
        low, high = np.where(stays, middle, low), np.where(stays, high, middle)
    return high


def log_capitals(wrong: int, audited: int, size: int, power: float = 0.0) -> Floats:
    """The logarithm of the capital against each M from `wrong` to the most that can be.

    The bettor's share on each Q is in proportion to 1 / (Q + 1/2) ** power.

    >>> log_capitals(1, 2, 4).round(3).tolist()  # of 4 verdicts 1, 2 or 3 are wrong
    [-inf, -0.981, -0.251]
    """
    right = audited - wrong
    M = np.arange(wrong, size - right + 1, dtype=np.float64)
    fits = gammaln(M + 1) - gammaln(M - wrong + 1)
    fits += gammaln(size - M + 1) - gammaln(size - M - right + 1)
    share = (np.arange(M[-1] + 1) + 0.5) ** -power
    whole = np.concatenate([[1.0], share.cumsum()[:-1]])[wrong:]
    own = share[wrong:] * np.exp(fits - fits.max())
    with np.errstate(divide="ignore"):  # none below the first, and M = 0
        below = np.log(np.concatenate([[0.0], own.cumsum()[:-1]]))
        return np.asarray(below + fits.max() - fits - np.log(whole))


def upper_count(
    wrong: int, audited: int, size: int, level: float = 0.95, power: float = 0.0
) -> int:
    """The upper bound on how many of `size` verdicts are wrong, by audits without replacement.

    >>> upper_count(5, 100, 1000), upper_count(5, 100, 100), upper_count(0, 0, 7)
    (129, 5, 7)
    """
    stays = log_capitals(wrong, audited, size, power) < _threshold(level)
    return wrong + int(stays.nonzero()[0][-1])


def check_level(level: float) -> None:
    """Complain about a level that is none.

    >>> check_level(95)
    Traceback (most recent call last):
    venire.errors.InputError: got the level 95, expected more than 0 and less than 1: 0.95 ...
    """
    if not 0 < level < 1:
        raise InputError(
            f"got the level {level:g}, expected more than 0 and less than 1: 0.95 for 95 %"
        )


def _threshold(level: float) -> float:
    return float(-np.log1p(-level)) + SLACK


#: The shares of the capital that are staked.
STAKES: Final = np.geomspace(0.01, 0.95, 12)

#: Labels that lambda is shrunk by, towards 0.
SHRINK: Final = 10.0

BISECTIONS: Final = 40


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
    """The mean of all values, by those of the items drawn so far, at all times together.

    `score` is what the judges say of every item, `place` has the items drawn as its indices, in
    their order, and `value` their true values; all are from 0 to 1. `alone`: by these alone.

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
    for _ in range(BISECTIONS):
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


def share_interval(right: float, n: int) -> tuple[float | None, float | None]:
    """Wilson's interval of 95 % for a share; half a success, as for a tie, may be counted.

    >>> share_interval(8, 10), share_interval(0, 0)
    ((0.4902, 0.9433), (None, None))
    """
    if n == 0:
        return None, None
    z = 1.96
    p, scale = right / n, 1 + z**2 / n
    middle = (p + z**2 / (2 * n)) / scale
    spread = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / scale
    return round(max(0.0, middle - spread), 4), round(min(1.0, middle + spread), 4)
