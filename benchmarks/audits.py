"""Bounds by audits: coverage under peeking, and width beside Clopper and Pearson's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from venire.audits.intervals import log_capital, upper_count, upper_rate

RATES = (0.01, 0.05, 0.2)
TIMES = (100, 1_000, 10_000)
STREAMS, LEVEL, SEED = 1_000, 0.95, 2023
HALF = (1 + LEVEL) / 2

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def main(argv: Sequence[str] = ()) -> None:
    """Print both tables; --quick with streams of 1,000 audits."""
    times = TIMES[:2] if "--quick" in argv else TIMES
    print("| per cent of streams | rate | upper | interval | of 2,000 | Clopper-Pearson |")
    print("|-|-|-|-|-|-|")
    for rate in RATES:
        held = coverage(rate, times[-1])
        cells = " | ".join(f"{100 * share:.1f}" for share in held)
        print(f"| {times[-1]:,} looks | {rate:.0%} | {cells} |")
    print()
    names = ("Clopper-Pearson, once", "upper", "of 20,000", "plug-in bets")
    print(f"| rate | audits | {' | '.join(names)} | widths: Clopper-Pearson, once | interval |")
    print("|-|-|-|-|-|-|-|-|")
    for rate in RATES:
        for n in times:
            cells = " | ".join(f"{100 * x:.2f}" for x in widths(rate, n))
            print(f"| {rate:.0%} | {n:,} | {cells} |")


def coverage(rate: float, steps: int) -> list[float]:
    """The share of streams in which a bound holds at every step."""
    errors = np.random.default_rng(SEED).random((STREAMS, steps)) < rate
    S, n = errors.cumsum(axis=1), np.arange(1, steps + 1)
    threshold, twice = -np.log1p(-LEVEL), -np.log1p(-HALF)
    # the capital rises with the rate: the bound is below the rate where it has reached 1/alpha
    upper = _at(S, n, lambda s, t: log_capital(rate, s, t) < threshold)
    high = _at(S, n, lambda s, t: log_capital(rate, s, t) < twice)
    low = _at(S, n, lambda s, t: log_capital(1 - rate, t - s, t) < twice)
    once = _at(S, n, lambda s, t: _clopper_pearson(s, t, LEVEL) >= rate)
    every = [upper, high & low, _finite(rate, 2_000, 1_000), once]
    return [float(held.all(axis=1).mean()) for held in every]


def _finite(rate: float, size: int, steps: int) -> NDArray[np.bool_]:
    """The same for verdicts of which half are audited, without replacement."""
    rng, wrong = np.random.default_rng(SEED), round(rate * size)
    population = np.arange(size) < wrong
    errors = np.stack([rng.permutation(population)[:steps] for _ in range(STREAMS)])
    bound = np.vectorize(lambda s, t: upper_count(int(s), int(t), size, LEVEL), otypes=[int])
    n = np.arange(1, steps + 1)
    return _at(errors.cumsum(axis=1), n, lambda s, t: bound(s, t) >= wrong)


def _at(S: Ints, n: Ints, function: Callable[[Ints, Ints], Any]) -> NDArray[np.bool_]:
    """A function of both counts at every step, worked out once for each pair."""
    base = int(n[-1]) + 1
    unique, place = np.unique(S * base + n, return_inverse=True)
    found: NDArray[np.bool_] = np.asarray(function(unique // base, unique % base))
    return np.asarray(found[place.reshape(S.shape)])


def widths(rate: float, n: int) -> list[float]:
    """Mean bounds over streams at one time, then mean widths of two-sided intervals."""
    rng = np.random.default_rng(SEED)
    S = rng.binomial(n, rate, STREAMS)
    drawn = rng.hypergeometric(round(20_000 * rate), round(20_000 * (1 - rate)), n, STREAMS)
    finite = [upper_count(int(s), n, 20_000, LEVEL) / 20_000 for s in drawn]
    plug_in = [upper_by_plug_in(rng.random(n) < rate) for _ in range(200)]
    once = _clopper_pearson(S, n, HALF) - (1 - _clopper_pearson(n - S, n, HALF))
    ours = upper_rate(S, n, HALF) - (1 - upper_rate(n - S, n, HALF))
    bounds: list[Any] = [
        _clopper_pearson(S, n, LEVEL),
        upper_rate(S, n, LEVEL),
        finite,
        plug_in,
        once,
        ours,
    ]
    return [float(np.mean(values)) for values in bounds]


def _clopper_pearson(S: Ints, n: Any, level: float) -> Floats:
    return np.where(n == S, 1.0, beta.ppf(level, S + 1, np.maximum(n - S, 1)))


def upper_by_plug_in(errors: NDArray[np.bool_]) -> float:
    """One-sided bound by the predictable plug-in bets of Waudby-Smith and Ramdas."""
    x, t = errors.astype(np.float64), np.arange(1, len(errors) + 1)
    mean = (0.5 + x.cumsum()) / (t + 1)
    spread = (0.25 + ((x - mean) ** 2).cumsum()) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    bets = np.sqrt(2 * np.log(1 / (1 - LEVEL)) / (before * t * np.log(1 + t)))
    low, high = float(x.mean()), 1.0
    for _ in range(40):
        m = (low + high) / 2
        capital = np.log1p(-np.minimum(bets, 0.75 / (1 - m)) * (x - m)).sum()
        low, high = (m, high) if capital < -np.log1p(-LEVEL) else (low, m)
    return high
