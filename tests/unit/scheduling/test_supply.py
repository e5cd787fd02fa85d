"""What a slot has to sell where items are not for everybody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import Instance, instances
from tests.unit.scheduling.market_reference import supply
from tests.unit.scheduling.test_policies import steps
from venire import Greedy, Item, Labeler, LookAhead, Policy, Waterfill, World, simulate
from venire.scheduling.kernel.desk import Desk, add_group, allocate, bar
from venire.scheduling.policies.waterfill import open_stall, supply_of
from venire.testing import drive


def stalls(instance: Instance, group: str) -> Desk:
    """Every item of the instance with a stall, in this kind of group, and all others barred."""
    world, labelers = instance.plain(), len(instance.panel)
    n = len(world.items)
    desk = allocate(n, 2 * n * labelers, labelers, groups=n + 1, edges=n * labelers)
    desk.panel["evidence"] = world.evidence
    desk.panel["capacity"] = world.capacities
    for row, item in enumerate(world.items):
        if group != "none":
            members = item.eligible if group == "eligible" else range(labelers)
            desk.rows["group"][row] = add_group(desk, sorted(members))
        for m in sorted(set(range(labelers)) - item.eligible):
            bar(desk, row, m)
            bar(desk, row, m)
        open_stall(desk, row, item.weight, 1.0, 0)
    return desk


@pytest.mark.parametrize("group", ["none", "eligible", "all"])
@given(instance=instances())
def test_a_labeler_counts_for_no_more_labels_than_rows_it_may_have(
    group: str, instance: Instance
) -> None:
    everything = range(len(instance.items))
    assert supply_of(stalls(instance, group)) == supply(instance.plain(), everything)


@settings(max_examples=50)
@given(instance=instances(), idle=st.integers(1, 8))
def test_labelers_for_whom_there_is_nothing_change_nothing(instance: Instance, idle: int) -> None:
    names = frozenset(labeler.id for labeler in instance.panel)
    items = tuple(replace(i, eligible=names if i.eligible is None else i.eligible)
                  for i in instance.items)  # fmt: skip
    more = tuple(Labeler(f"idle{k}", 0.9) for k in range(idle))
    alone, among = (replace(instance, panel=p, items=items)
                    for p in (instance.panel, instance.panel + more))  # fmt: skip
    expected, found = (drive(x.world(), Waterfill(), x.slots)[:2] for x in (alone, among))
    assert steps(*found) == steps(*expected)


def batches(seed: int) -> World:
    """200 people; bursts of 40 items, each for 12 of the 40 people who are there at that time."""
    rng = np.random.default_rng(seed)
    panel = [Labeler(f"m{m}", p) for m, p in enumerate(rng.uniform(0.6, 0.8, 200))]
    items, arrival = [], []
    for burst in range(6):
        there = rng.choice(200, 40, replace=False)
        for i in range(40):
            who = frozenset(f"m{m}" for m in rng.choice(there, 12, replace=False))
            items.append(Item(f"{burst}-{i}", float(rng.integers(3, 11)), who))
            arrival.append(12 * burst)
    return World.trace(items, arrival, panel, seed=seed)


@pytest.mark.parametrize(("policy", "times"), [(Waterfill(), 1.15), (LookAhead(), 1.35)])
@pytest.mark.parametrize("seed", range(3))
def test_where_many_idle_it_earns_more_than_algorithm_1(
    seed: int, policy: Policy, times: float
) -> None:
    world = batches(seed)
    plain = simulate(world, Greedy(), slots=80).utility
    assert simulate(world, policy, slots=80).utility >= times * plain
