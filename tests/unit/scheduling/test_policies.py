"""Every compiled policy equals its plain reference, tie for tie, simulated and in the engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from tests import reference
from tests.marks import examples
from tests.reference import PlainWorld
from tests.strategies import Instance, instances
from venire import (
    Everyone,
    Fixed,
    FixedOverlap,
    Greedy,
    Policy,
    Random,
    RoundRobin,
    World,
    simulate,
)
from venire.model import Assignment, Exit
from venire.testing import drive

Steps = tuple[list[tuple[int, str, str, float]], list[tuple[str, int, int, int, str]]]

PLAIN: list[tuple[Policy, Callable[[PlainWorld], PlainWorld]]] = [
    (Greedy(), reference.greedy),
    (FixedOverlap(2), lambda w: reference.fixed_overlap(w, 2)),
    (FixedOverlap(3), lambda w: reference.fixed_overlap(w, 3)),
    (RoundRobin(2), lambda w: reference.round_robin(w, 2)),
    (Everyone(), reference.everyone),
]


def in_names(instance: Instance, plain: PlainWorld) -> Steps:
    given = [
        (slot, instance.items[i].id, instance.panel[m].id, gain)
        for slot, i, m, gain in plain.assignments
    ]
    left = [
        (instance.items[i].id, item.arrival, item.exit or 0, len(item.labels), item.reason)
        for i, item in enumerate(plain.items)
    ]
    return given, sorted(left)


def steps(assignments: list[Assignment], exits: list[Exit]) -> Steps:
    given = [(a.slot, a.item, a.labeler, a.gain) for a in assignments]
    return given, sorted((e.item, e.arrival, e.slot, e.labels, e.reason) for e in exits)


@pytest.mark.parametrize(("policy", "plain"), PLAIN, ids=lambda p: getattr(p, "name", ""))
@examples(night=200, day=30)
@given(instance=instances())
def test_simulator_and_engine_equal_the_plain_reference(
    policy: Policy, plain: Callable[[PlainWorld], PlainWorld], instance: Instance
) -> None:
    expected = in_names(instance, plain(instance.plain()))
    run = simulate(instance.world(), policy, slots=instance.slots)
    assert steps(list(run.assignments()), list(run.exits())) == expected
    given, left = steps(*drive(instance.world(), policy, instance.slots)[:2])
    assert given == expected[0]
    assert left == [e for e in expected[1] if e[4] != "horizon"]


@examples(night=100, day=30)
@given(instance=instances())
def test_random_gives_only_what_it_may_and_is_the_same_in_the_engine(instance: Instance) -> None:
    run = simulate(instance.world(), Random(2, seed=instance.seed), slots=instance.slots)
    plain = instance.plain()
    given = [(int(t["slot"]), int(t["row"]), int(t["labeler"])) for t in run.touches]
    for slot, i, m in given:
        item = plain.items[i]
        assert m in item.unused()
        assert len(item.labels) < 2
        assert item.arrival <= slot
        item.labels.append((slot, m))
    for slot in range(instance.slots):
        for m, capacity in enumerate(plain.capacities):
            assert sum(1 for s, _, k in given if (s, k) == (slot, m)) <= capacity
    driven = drive(instance.world(), Random(2, seed=instance.seed), instance.slots)
    assert steps(list(run.assignments()), [])[0] == steps(driven[0], [])[0]


def test_random_is_uniform_over_what_it_may_have() -> None:
    world = World.synthetic(0, competences=[0.8], arrivals=Fixed(4))
    counts: dict[int, int] = {}
    for seed in range(400):
        run = simulate(world, Random(1, seed=seed), slots=1)
        row = int(run.touches["row"][0])
        counts[row] = counts.get(row, 0) + 1
    assert sorted(counts) == [0, 1, 2, 3]
    assert all(60 <= n <= 140 for n in counts.values())
