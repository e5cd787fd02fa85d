"""How long a certificate takes, and how tight it is: python -m benchmarks certificates [--huge]."""

from __future__ import annotations

import time

import numpy as np

from venire import Bursty, Greedy, Poisson, World, simulate

WEAK = np.linspace(0.55, 0.65, 30)
WORLDS = {
    "the paper's": (World.synthetic(0), 300),
    "overload": (World.synthetic(0, arrivals=Poisson(20)), 200),
    "bursts, weak panel": (World.synthetic(0, WEAK, Bursty(50, 10)), 300),
    "one expert": (World.synthetic(0, [0.97] + [0.55] * 19, Poisson(3)), 300),
    "three labelers": (World.synthetic(0, [0.9, 0.8, 0.7], Poisson(2)), 300),
}


def main(*options: str) -> None:
    worlds = dict(WORLDS)
    if "--huge" in options:
        worlds["the paper's, 10,000 slots"] = (World.synthetic(0), 10_000)
        worlds["the paper's, 20,000 slots"] = (World.synthetic(0), 20_000)
    print("Certificates: gap is bound / best schedule known - 1")
    simulate(World.synthetic(0), Greedy(), slots=20).certificate()
    for name, (world, slots) in worlds.items():
        run = simulate(world, Greedy(), slots=slots)
        start = time.perf_counter()
        certificate = run.certificate()
        took = time.perf_counter() - start
        print(
            f"  {name:26} {certificate.items:7,} items"
            f"  greedy {run.utility / certificate.bound:.3f}"
            f"  gap {certificate.gap:.2%}  {certificate.method}  {took:.1f} s",
            flush=True,
        )
