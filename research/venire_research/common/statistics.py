"""Means with 95 % intervals over seeds, and how something grows with the horizon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = ["Band", "Estimate", "Growth", "band", "bootstrap", "growth", "share_band", "slope"]

Floats = NDArray[np.float64]

#: Bootstrap samples behind an interval.
SAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} (95 % interval {self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, eq=False)
class Band:
    """Means along a curve, with their 95 % intervals (Student's t over the seeds)."""

    mean: Floats
    low: Floats
    high: Floats


def band(values: ArrayLike) -> Band:
    """Mean over the first axis, the seeds; nan marks a seed without a value.

    >>> b = band([[1.0, 2.0], [3.0, 2.0]])
    >>> b.mean.tolist(), b.low.round(1).tolist(), b.high.round(1).tolist()
    ([2.0, 2.0], [-10.7, 2.0], [14.7, 2.0])
    """
    x = np.asarray(values, dtype=np.float64)
    n = np.maximum((~np.isnan(x)).sum(axis=0), 1)
    mean = np.nansum(x, axis=0) / n
    spread = np.sqrt(np.nansum((x - mean) ** 2, axis=0) / np.maximum(n - 1, 1))
    half = np.where(n > 1, stats.t.ppf(0.975, np.maximum(n - 1, 1)), 0.0) * spread / np.sqrt(n)
    mean = np.where((~np.isnan(x)).any(axis=0), mean, np.nan)
    return Band(mean, mean - half, mean + half)


def share_band(values: ArrayLike) -> Band:
    """The band of shares, whose intervals end at 0 and 1.

    >>> share_band([[0.9], [1.0]]).high.tolist()
    [1.0]
    """
    found = band(values)
    return Band(found.mean, np.clip(found.low, 0.0, 1.0), np.clip(found.high, 0.0, 1.0))


def bootstrap(values: Floats, statistic: Callable[[Floats], float], seed: int = 0) -> Estimate:
    """A statistic of seeds (first axis) with its interval, by drawing the seeds again."""
    rng = np.random.default_rng(seed)
    n = len(values)
    drawn = [statistic(values[rng.integers(n, size=n)]) for _ in range(SAMPLES if n > 1 else 1)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(statistic(values), float(low), float(high))


@dataclass(frozen=True)
class Growth:
    """How a mean grows: fitted as T^`power` and as (log T)^`log_power`.

    This describes the range between the first and the last horizon, not the limit (docs/errata.md,
    12). `over_log` is the ratio to log T at the last horizon over that at the first.
    """

    power: Estimate
    log_power: Estimate
    over_log: Estimate
    first: int
    last: int

    def in_words(self, what: str) -> str:
        """The growth in a sentence."""
        p, b, times = self.power, self.log_power, self.over_log
        if b.low > 1:
            verdict = "faster than log T"
        elif b.high < 1:
            verdict = "slower than log T"
        else:
            verdict = "indistinguishable from log T"
        return (
            f"From T = {self.first:,} to {self.last:,} {what} grows like T^{p.value:.2f} "
            f"(95 % interval {p.low:.2f} to {p.high:.2f}), {verdict}: its ratio to log T becomes "
            f"{times.value:.3g} times as large (interval {times.low:.3g} to {times.high:.3g}). "
            "Beyond these horizons nothing was measured."
        )


def slope(x: Floats, y: Floats) -> float:
    """The slope of the least-squares line.

    >>> round(slope(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 9.0])), 12)
    2.0
    """
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))


def growth(horizons: ArrayLike, values: Floats) -> Growth:
    """Fit the growth of the mean of `values` (seeds x horizons, all means above 0).

    >>> T = np.array([100, 1000, 10000])
    >>> g = growth(T, np.array([T**0.5, 3 * T**0.5]))
    >>> round(g.power.value, 3)
    0.5
    """
    T = np.asarray(horizons, dtype=np.float64)

    def power(x: Floats) -> Callable[[Floats], float]:
        return lambda v: slope(x, np.log(np.maximum(v.mean(axis=0), 1e-9)))

    def over_log(v: Floats) -> float:
        ratio = v.mean(axis=0) / np.log(T)
        return float(ratio[-1] / ratio[0])

    return Growth(
        bootstrap(values, power(np.log(T))),
        bootstrap(values, power(np.log(np.log(T)))),
        bootstrap(values, over_log),
        int(T[0]),
        int(T[-1]),
    )
