"""Realised and true utility against Algorithm 1, regime by regime, known competences.

python -m benchmarks realised: for each regime the ratio of `RealisedProxy` in realised utility
and of `Realised` in true utility to Algorithm 1 on the same streams, mean and spread over seeds.
Where Algorithm 1 earns less than nothing the earnings themselves are what to compare.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from venire import Bursty, Greedy, Poisson, Realised, RealisedProxy, Run, Trace, World, simulate

SEEDS = 5
SLOTS = 500


def weak(evidence: float) -> float:
    """The competence of this evidence."""
    low, high = 0.5, 0.999
    for _ in range(60):
        p = (low + high) / 2
        worth = (p - 0.5) * math.log(p / (1 - p))
        low, high = (p, high) if worth < evidence else (low, p)
    return low


def regimes(seed: int) -> Iterator[tuple[str, World, int]]:
    """Name, world and slots."""
    rng, make = np.random.default_rng(100 + seed), World.synthetic
    yield "paper", make(seed), SLOTS
    yield "overload", make(seed, arrivals=Poisson(15)), SLOTS
    yield "heavy overload", make(seed, arrivals=Poisson(40)), SLOTS // 2
    yield "bursts", make(seed, arrivals=Bursty(50, 10)), SLOTS
    yield "heavy bursts", make(seed, arrivals=Bursty(50, 10), weights=range(20, 101)), SLOTS
    ten = np.linspace(0.85, 0.6, 10)
    yield "ten labelers", make(seed, ten, Poisson(2), weights=range(20, 101)), SLOTS
    yield "weak panel", make(seed, rng.uniform(0.52, 0.62, 30)), SLOTS
    twenty = rng.uniform(0.55, 0.7, 20)
    yield "weak bursts", make(seed, twenty, Bursty(30, 10), weights=range(10, 61)), SLOTS
    yield "one expert", make(seed, [0.98] + [0.52] * 19, Poisson(3)), SLOTS
    mixed = np.r_[rng.uniform(0.65, 0.9, 12), rng.uniform(0.1, 0.4, 8)]
    yield "adversarial", make(seed, mixed, Poisson(4)), SLOTS
    p = rng.uniform(0.55, 0.9, 20)
    moved = [(slot, rng.permutation(p).tolist()) for slot in (SLOTS // 3, 2 * SLOTS // 3)]
    yield "drift", make(seed, p, Poisson(4), changes=moved), SLOTS
    several = rng.uniform(0.55, 0.95, 12)
    most = [1, 1, 1, 2, 2, 3, 5, 8, 1, 1, 2, 4]
    yield "capacities", make(seed, several, Poisson(8), capacity=most), SLOTS
    yield "four classes", make(seed, rng.uniform(0.4, 0.85, 20), Poisson(4), classes=4), SLOTS
    crowd = [weak(0.01)] * 300
    yield "counterexample", make(seed, crowd, Trace((600,)), weights=[99]), 60


def true_utility(run: Run) -> float:
    """True utility; the truth of a synthetic world is known."""
    return run.true_utility or 0.0


def realised_utility(run: Run) -> float:
    """Realised utility."""
    return run.realised_utility


def shown(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    """Mean earnings of both, and mean and spread of the ratio."""
    sums = f"{ours.mean():>10,.0f} {theirs.mean():>10,.0f}"
    if (theirs <= 0).any():
        return f"{sums}  {'-':>13}"
    ratio = ours / theirs
    return f"{sums}  {ratio.mean():.3f} ± {ratio.std():.3f}"


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table; the number of seeds may be given."""
    seeds = int(arguments[0]) if arguments else SEEDS
    start = time.perf_counter()
    earned: dict[str, list[tuple[float, float, float, float]]] = {}
    for seed in range(seeds):
        for name, world, slots in regimes(seed):
            base = simulate(world, Greedy(), slots=slots)
            proxy, label = (simulate(world, p, slots=slots) for p in (RealisedProxy(), Realised()))
            earned.setdefault(name, []).append(
                (
                    realised_utility(proxy),
                    realised_utility(base),
                    true_utility(label),
                    true_utility(base),
                )
            )
    print(f"Seeds 0 to {seeds - 1}; ours, Algorithm 1, ratio")
    print(f"{'':16}{'realised utility (RealisedProxy)':>37}{'true utility (Realised)':>37}")
    for name, rows in earned.items():
        a, b, c, d = np.array(rows).T
        print(f"{name:16}{shown(a, b)}  {shown(c, d)}")
    print(f"{time.perf_counter() - start:.0f} s")
