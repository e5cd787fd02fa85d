"""Algorithm 1 in ordinary Python against the compiled one, on worlds of the suite of regimes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from venire import Greedy, Policy, PythonPolicy, Run, World, simulate
from venire.scheduling import ItemView, LabelerView
from venire_research.regimes.suite import regimes_named

REGIMES = ("paper", "bursts", "overload", "counterexample")
SEEDS = 3


class PlainGreedy(PythonPolicy):
    """Algorithm 1; items leave by the rule of the base class."""

    def choose(self, labeler: LabelerView, items: Sequence[ItemView], slot: int) -> ItemView | None:
        best = max(items, key=lambda item: item.gain(labeler, slot))
        return best if best.gain(labeler, slot) > 0 else None


def timed(world: World, policy: Policy, slots: int) -> tuple[float, Run]:
    start = time.process_time()
    run = simulate(world, policy, slots=slots)
    return (time.process_time() - start) / slots * 1000, run


def main(*_: str) -> None:
    for regime in (regimes_named([name])[0] for name in REGIMES):
        for seed in range(SEEDS):
            world = regime.world(seed)
            timed(world, Greedy(), regime.slots)  # compile
            timed(world, PlainGreedy(), regime.slots)
            fast, run = timed(world, Greedy(), regime.slots)
            slow, same = timed(world, PlainGreedy(), regime.slots)
            assert (run.touches == same.touches).all(), "the schedules differ"
            print(
                f"{regime.name:14} seed {seed}: {len(run.rows) / regime.slots:4.1f} items a slot, "
                f"compiled {fast:.4f} ms a slot, Python {slow:.3f} ms: {slow / fast:.0f} times"
            )
