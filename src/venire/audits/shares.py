r"""Intervals for a share by a sample, exact for one look: Clopper and Pearson's.

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
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

__all__ = [
    "Interval",
    "added",
    "exact_interval",
    "finite_interval",
    "log_factorials",
    "mean_interval",
]

Floats = NDArray[np.float64]


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
    have their intervals, and these are added up as those of correlated counts.

    Parameters
    ----------
    values
        Of those drawn; without any, the interval is from 0 to 1.
    level
        The probability with which the interval holds.
    size
        Of how many things they were drawn, without replacement; None for a process.
    weights
        One over the probability with which each was drawn; None if all are the same.

    Examples
    --------
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
    return min(1.0, float(w[which].sum()))


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
