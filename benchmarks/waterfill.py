"""Water-filling and the look-ahead: one slot at scale, against the slot of Algorithm 1."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from benchmarks.greedy import copied, standing_queue, time_slots
from venire import Bursty, Greedy, LookAhead, Policy, Waterfill, World, simulate
from venire.scheduling.kernel.build import refile_all
from venire.scheduling.kernel.desk import OUTSTANDING, SETTING, Desk
from venire.scheduling.policies.waterfill import PRICE

REPEATS = 7


def slot_of(policy: Policy, queue: Desk, slot: int) -> list[float]:
    """Serve one slot again and again, each on a copy; the price is known from the slot before."""
    kernels, desk = policy.kernels(), copied(queue)
    settings = policy.settings()
    desk.meta[SETTING : SETTING + len(settings)] = settings
    refile_all(desk, kernels, slot)
    first = copied(desk)
    kernels.serve(first, slot)
    desk.gauges[PRICE] = first.gauges[PRICE]
    times = []
    for _ in range(REPEATS):
        copy = copied(desk)
        start = time.perf_counter()
        kernels.serve(copy, slot)
        times.append(time.perf_counter() - start)
    return times


def one_slot() -> None:
    desk, _, slot = standing_queue(100_000, 1_000)
    standing = int((desk.rows["state"] == OUTSTANDING).sum())
    greedy = median(time_slots(desk, slot, REPEATS))
    print(f"One slot, {standing:,} outstanding, 1,000 labelers")
    print(f"  greedy     {greedy * 1e3:7.3f} ms")
    for policy in (Waterfill(), LookAhead()):
        took = median(slot_of(policy, desk, slot))
        print(f"  {policy.name:10} {took * 1e3:7.3f} ms, ratio {took / greedy:.1f}")


def bursts() -> None:
    print("Bursts of 50 every 10 slots on 30 weak labelers, 100 slots, utility of seeds 0 to 4")
    p = np.linspace(0.55, 0.65, 30).tolist()
    for policy in (Greedy(), Waterfill(), LookAhead()):
        earned = [
            simulate(World.synthetic(seed, p, Bursty(50, 10)), policy, slots=100).utility
            for seed in range(5)
        ]
        print(f"  {policy.name:10} {np.mean(earned):7.1f} (of 5: {min(earned):.1f} to", end="")
        print(f" {max(earned):.1f})")


def main() -> None:
    one_slot()
    bursts()
