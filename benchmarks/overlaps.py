"""`Realised` against the best fixed overlap in hindsight, on random worlds.

python -m benchmarks overlaps: the worlds differ in panel (8 to 44 labelers, mixed or mostly weak,
with capacities or without), weights (light, heavy, of very different size), arrivals (Poisson or
bursts, from a tenth of what the panel can label to more than all of it) and classes. The settings
of `Realised` were chosen with an eye on the first twelve; worlds 20 to 29 were first run when they
were fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from venire import Bursty, FixedOverlap, Poisson, Policy, Realised, World, simulate

WORLDS = (*range(12), *range(20, 30))
SEEDS, SLOTS, MOST = 3, 200, 8


def world(number: int, seed: int) -> World:
    """The world of this number; the seed draws its items and labels."""
    rng = np.random.default_rng([77, number])
    n = int(rng.integers(8, 45))
    low, high = rng.uniform(0.5, 0.7), rng.uniform(0.75, 0.97)
    if number % 3:
        panel = rng.uniform(low, high, n)
    else:  # three quarters hardly know anything
        panel = np.r_[rng.uniform(0.5, 0.6, n - n // 4), rng.uniform(0.8, 0.97, n // 4)]
    capacity = rng.integers(1, 4, n).tolist() if number % 2 else [1] * n
    spread = tuple(np.round(np.exp(rng.normal(3, 1.2, 20)), 2).tolist())
    weights = (tuple(range(3, 11)), tuple(range(10, 101, 10)), spread)[number % 3]
    load, labels = rng.uniform(0.1, 1.4), sum(capacity)
    often = Bursty(int(load * labels * 8) + 1, 8, 0.02 * labels)
    classes = 4 if number in (4, 7) else 2
    if classes == 4:
        panel = np.clip(panel - 0.15, 0.3, 0.95)
    arrivals = Poisson(load * labels) if number % 4 else often
    return World.synthetic(seed, panel, arrivals, weights, capacity, classes)


def earned(number: int, policy: Policy) -> float:
    """The true utility of an item, on average over the seeds."""
    runs = [simulate(world(number, seed), policy, slots=SLOTS) for seed in range(SEEDS)]
    return float(np.mean([(run.true_utility or 0.0) / len(run.rows) for run in runs]))


def main(arguments: Sequence[str] = ()) -> None:
    """Print a line for each world; numbers of worlds may be given."""
    print(f"true utility of an item, seeds 0 to {SEEDS - 1}\nworld  Realised  best overlap  ratio")
    for number in map(int, arguments or WORLDS):
        ours = earned(number, Realised())
        best, k = max((earned(number, FixedOverlap(k)), k) for k in range(1, MOST + 1))
        ratio = f"{ours / best:.3f}" if best > 0 else "-"
        print(f"{number:5}{ours:10.3f}{best:10.3f} ({k})  {ratio:>5}", flush=True)
