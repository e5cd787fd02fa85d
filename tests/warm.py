"""Compile the kernels that the tests use, each once, before the workers would each do it.

What is compiled is cached on disk; with nothing changed since, this takes seconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from venire import (
    Algorithm2,
    DawidSkene,
    Learning,
    LearnThenServe,
    LearnWhileServing,
    OneCoin,
    Policy,
    PythonPolicy,
    World,
    simulate,
)
from venire.scheduling.by_name import exported, policy_named
from venire.scheduling.policies.plain import ItemView, LabelerView
from venire.server import StreamSettings
from venire.server.reports import skill_report
from venire.server.stream import engine_setup
from venire.testing import check_competence, check_learning, check_policy
from venire_research.regimes import compare
from venire_research.reproduction.literal import LiteralGreedy

#: The longest first, so that the processes end together.
SLOW = ("lookahead", "realised", "waterfill", "greedy")

#: The streams of the servers in the tests: a client would have to wait for the compiler.
TWO = ("spam", "ok")
SERVED = (
    StreamSettings(classes=TWO, learning="known"),
    StreamSettings(classes=TWO, learning="known", policy="fixed-overlap:2"),
    StreamSettings(classes=TWO),
    StreamSettings(classes=(*TWO, "unsure")),
)


class Plain(PythonPolicy):
    """A policy in ordinary Python, for the kernels around it."""

    def choose(self, labeler: LabelerView, items: Sequence[ItemView], slot: int) -> ItemView | None:
        """The first that it may label."""
        return items[0] if items else None


def certified(regime: str) -> None:
    """A comparison with its certificate."""
    compare(["greedy"], [regime], 1, quick=True)


def simulated(policy: Policy) -> None:
    """A simulation."""
    simulate(World.synthetic(seed=0), policy, slots=20)


def jobs() -> list[tuple[Callable[..., None], object]]:
    others = sorted(set(exported(Policy)) - {*SLOW, "realised-proxy"})  # it has Realised's kernels
    ways: list[Learning] = [Algorithm2(20), LearnThenServe(20), LearnWhileServing()]
    return [
        *((check_policy, policy_named(name)) for name in (*SLOW, *others)),
        *((check_learning, how) for how in ways),
        *((check_competence, fit) for fit in (OneCoin(), DawidSkene())),
        *((engine_setup.warm_up, settings) for settings in SERVED),
        (certified, "paper"),
        *((simulated, policy) for policy in (Plain(), LiteralGreedy())),
        (skill_report.warm_up, TWO),
    ]


def do(job: tuple[Callable[..., None], object]) -> None:
    check, what = job
    check(what)


def main() -> None:
    processes = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for waiting in [pool.submit(do, job) for job in jobs()]:
            error = waiting.exception()
            if error is not None:  # the tests will say it better
                sys.stderr.write(f"note: {error}\n")


if __name__ == "__main__":
    main()
