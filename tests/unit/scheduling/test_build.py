"""What is built once for every policy is compiled for each, and kept on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from venire.scheduling.base import Policy
from venire.scheduling.by_name import exported, policy_named
from venire.simulation.loop import run_of

#: Every kernel of two policies, in a process of its own; which of them it had to compile.
SCRIPT = """
import json
from venire import FixedOverlap, Greedy, Item, Label, Labeler, Scheduler, World, simulate
from venire.simulation.loop import run_of

found = {}
for policy in (Greedy(), FixedOverlap(2)):
    simulate(World.synthetic(0), policy, slots=20)
    s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.7)], ["spam", "ok"], policy=policy)
    s.arrive([Item("a", weight=2), Item("b", weight=8)])
    given = [[a.item, a.labeler] for a in s.assign()]
    s.observe([Label(item, who, "ok") for item, who in given])
    s.join(Labeler("cem", 0.8))
    s.close()
    kernels = policy.kernels()
    every = {name: k.stats for name, k in {**kernels._asdict(), "run": run_of(kernels)}.items()}
    loaded = [name for name, stats in every.items() if stats.cache_hits]
    compiled = [name for name, stats in every.items() if stats.cache_misses]
    found[policy.name] = [given, loaded, compiled]
print(json.dumps(found))
"""


def fresh_process() -> dict[str, list[list[Any]]]:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read: dict[str, list[list[Any]]] = json.loads(done.stdout)
    return read


def test_a_second_process_compiles_nothing() -> None:
    fresh_process()
    built = ["enter", "serve", "settle", "hear", "refile", "run"]
    assert fresh_process() == {
        "greedy": [[["b", "ann"], ["b", "bob"]], built, []],
        "fixed-overlap": [[["a", "ann"], ["b", "bob"]], built, []],
    }


@pytest.mark.parametrize("name", sorted(exported(Policy)))
def test_the_kernels_of_a_policy_are_built_once(name: str) -> None:
    policy = policy_named(name)
    assert policy.kernels() is policy.kernels()
    assert run_of(policy.kernels()) is run_of(policy.kernels())
