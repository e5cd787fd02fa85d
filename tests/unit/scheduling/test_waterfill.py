"""Water-filling: what the market sells, what it earns, and that it equals its plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marks import examples, nightly
from tests.strategies import Instance, instances
from tests.unit.scheduling import market_reference as plain
from tests.unit.scheduling.test_policies import in_names, steps
from venire import (
    Greedy,
    Item,
    Label,
    Labeler,
    LookAhead,
    Policy,
    Scheduler,
    Trace,
    Waterfill,
    World,
    simulate,
)
from venire.scheduling.kernel.desk import Desk, allocate
from venire.scheduling.policies.waterfill import choose, find_price, open_stall
from venire.testing import drive

#: Competence of a labeler whose label is worth 0.01.
WEAK = 0.5499166528872792

BIDS = st.lists(
    st.tuples(st.floats(0.01, 1e4), st.integers(0, 30), st.floats(0.01, 20.0)),
    min_size=1,
    max_size=40,
)


def counterexample() -> World:
    return World.synthetic(0, [WEAK] * 300, Trace((600,)), weights=(99,))


def stalls(bids: list[tuple[float, int, float]], slot: int) -> Desk:
    desk = allocate(len(bids), 0, 1)
    for row, (value, charge, cap) in enumerate(bids):
        desk.bounds[0] = max(desk.bounds[0], value)
        open_stall(desk, row, value, cap, slot - charge)
    return desk


@given(bids=BIDS, supply=st.floats(0.0, 50.0), guess=st.integers(-(2**26), 2**25))
def test_the_market_chooses_as_the_plain_reference_wherever_it_begins(
    bids: list[tuple[float, int, float]], supply: float, guess: int
) -> None:
    desk = stalls(bids, 100)
    expected = [plain.Bid(a, float(d), cap, i) for i, (a, d, cap) in enumerate(bids)]
    k, count = find_price(desk, supply, 100, guess)
    assert k == plain.price(expected, supply)
    chosen = desk.chosen[: choose(desk, supply, k, count)]
    assert sorted(chosen.tolist()) == sorted(plain.buyers(expected, supply))


@examples(night=200, day=30)
@given(instance=instances())
def test_simulator_and_engine_equal_the_plain_reference(instance: Instance) -> None:
    expected = in_names(instance, plain.waterfill(instance.plain()))
    run = simulate(instance.world(), Waterfill(), slots=instance.slots)
    assert steps(list(run.assignments()), list(run.exits())) == expected
    given, left = steps(*drive(instance.world(), Waterfill(), instance.slots)[:2])
    assert given == expected[0]
    assert left == [e for e in expected[1] if e[4] != "horizon"]


def test_many_weak_labels_pay_together_where_none_pays_alone() -> None:
    assert simulate(counterexample(), Greedy(), slots=300).utility == pytest.approx(295.5, abs=0.5)
    assert simulate(counterexample(), Waterfill(), slots=300).utility >= 7_300


@pytest.mark.parametrize("seed", range(3))
def test_in_the_papers_setting_it_is_never_below_algorithm_1(seed: int) -> None:
    ratio = simulate(World.synthetic(seed), Waterfill(), slots=500).ratio
    assert ratio is not None
    assert ratio >= 0.999


@pytest.mark.parametrize("slots", [100, 1_000, nightly(10_000)])
@pytest.mark.parametrize("policy", [Waterfill(), LookAhead()], ids=lambda p: p.name)
def test_in_the_papers_setting_never_below_algorithm_1_on_ten_seeds(
    policy: Policy, slots: int
) -> None:
    ratios = [simulate(World.synthetic(seed), policy, slots=slots).ratio for seed in range(10)]
    assert min(r for r in ratios if r is not None) >= 0.999


@pytest.mark.parametrize("policy", [Waterfill(), LookAhead()], ids=lambda p: p.name)
def test_a_serving_that_hands_out_nothing_leaves_no_trace(policy: Policy) -> None:
    s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.6)], ["a", "b"], policy)
    s.arrive([Item("i", 9.0), Item("j", 5.0)])
    s.assign()
    before = s.fingerprint()
    assert s.assign() == ()
    assert s.fingerprint() == before


@pytest.mark.parametrize("policy", [Waterfill(), LookAhead(), LookAhead(0)], ids=lambda p: repr(p))
def test_labelers_who_pull_labels_in_flight_joins_and_leaves_replay(policy: Policy) -> None:
    rng = np.random.default_rng(5)
    panel = [Labeler(f"m{m}", 0.55 + 0.05 * m, 1 + m % 2) for m in range(6)]
    s = Scheduler(panel, ["a", "b"], policy)
    away: list[str] = []
    for slot in range(80):
        n = 12 if slot % 20 == 0 else int(rng.integers(0, 3))
        names = frozenset({"m1", "m4"})
        s.arrive(
            Item(f"{slot}-{i}", float(rng.integers(3, 60)), names if rng.random() < 0.2 else None)
            for i in range(n)
        )
        for m in rng.permutation(6):
            s.assign(asked=[f"m{m}"])
        assert len(set(s.in_flight)) == len(s.in_flight)
        for item, labeler in s.in_flight:
            if rng.random() < 0.6:
                s.observe(Label(item, labeler, "ab"[rng.integers(2)]))
            elif rng.random() < 0.2:
                s.release(item, labeler, bar=bool(rng.integers(2)))
        if slot % 7 == 3:
            away.append(f"m{rng.integers(6)}")
            s.leave(away[-1])
        elif away:
            s.join(Labeler(away.pop(), 0.8, 2))
        s.close()
    again = Scheduler(panel, ["a", "b"], policy).replay(s.log)
    assert again.fingerprint() == s.fingerprint()
    assert again.counters == s.counters
