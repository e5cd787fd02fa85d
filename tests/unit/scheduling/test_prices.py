"""Labels that cost money: what policies buy, and what it earns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests import reference
from tests.marks import examples
from tests.reference import PlainWorld
from tests.strategies import Instance, instances
from tests.unit.scheduling import market_reference as market
from tests.unit.scheduling.test_policies import in_names, steps
from venire import (
    FixedOverlap,
    Greedy,
    Item,
    Labeler,
    LookAhead,
    Policy,
    Realised,
    RealisedProxy,
    Scheduler,
    Waterfill,
    World,
    simulate,
)
from venire.offline import optimum
from venire.simulation.loop import offline_of
from venire.testing import drive

POLICIES: tuple[Policy, ...] = (
    Greedy(), Waterfill(), LookAhead(), Realised(), RealisedProxy(), FixedOverlap(2),
)  # fmt: skip
PLAIN: list[tuple[Policy, Callable[[PlainWorld], PlainWorld]]] = [
    (Greedy(), reference.greedy),
    (Waterfill(), market.waterfill),
    (FixedOverlap(3), lambda world: reference.fixed_overlap(world, 3)),
]


@pytest.mark.parametrize(("policy", "plain"), PLAIN, ids=lambda p: getattr(p, "name", ""))
@examples(night=150, day=30)
@given(instance=instances(priced=True))
def test_simulator_and_engine_equal_the_plain_reference(
    policy: Policy, plain: Callable[[PlainWorld], PlainWorld], instance: Instance
) -> None:
    expected = in_names(instance, plain(instance.plain()))
    run = simulate(instance.world(), policy, slots=instance.slots)
    assert steps(list(run.assignments()), list(run.exits())) == expected
    made, left = steps(*drive(instance.world(), policy, instance.slots)[:2])
    assert made == expected[0]
    assert left == [e for e in expected[1] if e[4] != "horizon"]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@examples(night=60, day=20)
@given(instance=instances(priced=True))
def test_the_engine_does_what_the_simulator_does(policy: Policy, instance: Instance) -> None:
    run = simulate(instance.world(), policy, slots=instance.slots)
    given, left = steps(list(run.assignments()), list(run.exits()))
    made, gone = steps(*drive(instance.world(), policy, instance.slots)[:2])
    assert made == given
    assert gone == [e for e in left if e[4] != "horizon"]


@settings(max_examples=15, deadline=None)
@given(instance=instances(max_labelers=4, max_slots=5, priced=True))
def test_no_policy_earns_more_than_the_certificate_says(instance: Instance) -> None:
    runs = [simulate(instance.world(), policy, slots=instance.slots) for policy in POLICIES]
    certificate = runs[0].certificate()
    for run in runs:
        assert run.utility <= certificate.bound
        assert run.realised_utility <= certificate.bound
        if certificate.method == "exact":
            assert run.utility <= certificate.lower + 2e-6 * (1 + certificate.lower)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_what_a_run_earns_is_less_what_it_spent(policy: Policy) -> None:
    world = World.synthetic(5, [0.9, 0.7, 0.6, 0.6])
    priced = replace(
        world, panel=tuple(replace(who, price=0.25 * k) for k, who in enumerate(world.panel))
    )
    run = simulate(priced, policy, slots=80)
    spent = np.bincount(run.touches["row"], 0.25 * run.touches["labeler"], len(run.rows))
    assert run.money == pytest.approx(spent.sum())
    assert run.money > 0
    right = run.rows["verdict"] == run.items.truth
    earned = run.rows["weight"] * right - (run.rows["exit"] - run.rows["arrival"]) - spent
    assert run.true_utility == pytest.approx(earned.sum())
    assert run.summary()["money"] == run.money


def test_a_label_that_costs_more_than_it_gains_is_not_asked_for() -> None:
    """Of weight 8, a label of 0.9 is worth 4.7 and one of 0.7 then 0.5."""
    for price, asked in ((0.4, ["ann", "bob"]), (0.6, ["ann"])):
        s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.7, price=price)], ["a", "b"], Greedy())
        s.arrive(Item("post", weight=8))
        assert [a.labeler for a in s.assign()] == asked
        assert len(s.ranking("bob")) == (0 if len(asked) == 2 else 1)


@pytest.mark.parametrize("policy", [Greedy(), Waterfill(), LookAhead()], ids=lambda p: p.name)
def test_the_cheap_one_first_and_the_dear_one_where_it_pays(policy: Policy) -> None:
    panel = [Labeler("dear", 0.95, 9, price=3.0), Labeler("cheap", 0.75, 9, price=0.01)]
    s = Scheduler(panel, ["a", "b"], policy)
    s.arrive([Item("light", weight=5), Item("heavy", weight=30)])
    given = [(a.item, a.labeler) for a in s.assign()]
    assert given == [("heavy", "cheap"), ("light", "cheap"), ("heavy", "dear")]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_prices_survive_snapshots_replay_and_coming_back(policy: Policy) -> None:
    panel = [Labeler("ann", 0.9, price=0.5), Labeler("bob", 0.8, price=0.1)]
    s = Scheduler(panel, ["a", "b"], policy)
    s.arrive([Item(f"i{k}", weight=9) for k in range(6)])
    s.assign()
    s.close()
    s.leave("bob")
    s.join(Labeler("bob", price=7.0))
    s.join(Labeler("eve", 0.7, price=0.2))
    assert [who.price for who in s.panel] == [0.5, 7.0, 0.2]
    again = Scheduler.restore(s.snapshot())
    assert again.panel == s.panel
    assert again.fingerprint() == s.fingerprint()
    assert Scheduler(panel, ["a", "b"], policy).replay(s.log).fingerprint() == s.fingerprint()
    assert [a.labeler for a in again.assign()] == [a.labeler for a in s.assign()]


def test_policies_come_near_the_optimum_where_labels_cost() -> None:
    """Random small worlds against the exact optimum."""
    shares: dict[str, list[float]] = {policy.name: [] for policy in POLICIES}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        panel = [
            Labeler(f"m{k}", float(p), price=float(c))
            for k, (p, c) in enumerate(zip(rng.uniform(0.6, 0.95, 4), rng.random(4), strict=True))
        ]
        arrival = np.sort(rng.integers(0, 5, 10))
        items = [Item(f"i{k}", float(w)) for k, w in enumerate(rng.uniform(2, 12, 10))]
        world = World.trace(items, arrival, panel, seed=seed)
        run = simulate(world, Greedy(), slots=8)
        best = optimum(offline_of(world, run.items, 8, 1.0)).value
        for policy in POLICIES:
            shares[policy.name].append(simulate(world, policy, slots=8).utility / best)
    means = {name: float(np.mean(of)) for name, of in shares.items()}
    assert means["greedy"] > 0.7
    assert means["waterfill"] > 0.7
    assert means["lookahead"] > 0.7
    assert means["fixed-overlap"] < means["greedy"]
