"""Exact, bounds and plans hold what they promise on instances where everything can be tried."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import Instance as Traced
from tests.strategies import instances
from tests.unit.offline.reference import best_by_trying, best_set_by_trying, tiny_instances
from venire import InputError, Policy, scheduling, simulate
from venire.offline import (
    Instance,
    bound_at,
    certify,
    find_prices,
    optimum,
    plan,
    value_of,
)
from venire.offline import certificate as certificates
from venire.offline.one_item import best_set, workspace_for
from venire.offline.prices import candidates, linear_prices

#: Every policy that the package exports; a new one is covered as soon as it is there. Those in
#: plain Python have their own tests.
POLICIES: list[Policy] = [
    kind()
    for kind in (getattr(scheduling, name) for name in dir(scheduling))
    if isinstance(kind, type) and issubclass(kind, Policy) and hasattr(kind, "name")
]


@settings(max_examples=80, deadline=None)
@given(instance=tiny_instances())
def test_the_exact_optimum_is_what_trying_everything_finds(instance: Instance) -> None:
    best = optimum(instance)
    expected = best_by_trying(instance)
    assert best.value == pytest.approx(expected, abs=2e-6)
    assert value_of(instance, best.schedule) == pytest.approx(best.value, abs=1e-12)
    assert best.bound >= expected


@settings(max_examples=80, deadline=None)
@given(instance=tiny_instances(), data=st.data())
def test_any_prices_bound_the_optimum(instance: Instance, data: st.DataObject) -> None:
    shape = (instance.slots, len(instance.capacity))
    flat = data.draw(
        st.lists(
            st.sampled_from([0.0, 0.01, 0.3, 0.3, 1.0, 2.5, 50.0]),
            min_size=shape[0] * shape[1],
            max_size=shape[0] * shape[1],
        )
    )
    assert bound_at(instance, np.reshape(flat, shape)) >= best_by_trying(instance)


@settings(max_examples=150, deadline=None)
@given(
    labelers=st.lists(
        st.tuples(
            st.sampled_from([0.002, 0.01, 0.01, 0.2, 0.2, 0.7, 1.3, 3.0]),
            st.sampled_from([0.0, 0.01, 0.1, 0.1, 0.9, 3.0, 12.0]),
        ),
        min_size=1,
        max_size=9,
    ),
    weight=st.sampled_from([0.5, 3.0, 10.0, 40.0]),
    nodes=st.sampled_from([0, 1, 2, 5, 300]),
)
def test_what_an_item_buys_is_near_the_best_set_and_the_bound_is_above_it(
    labelers: list[tuple[float, float]], weight: float, nodes: int
) -> None:
    evidence, price = np.array(labelers).T
    ones = np.ones(len(evidence), np.int64)
    instance = Instance(np.array([weight]), np.array([0]), 1, evidence[np.newaxis], ones)
    best = best_set_by_trying(weight, evidence, price)
    problem = instance.problem()
    space = workspace_for(problem, nodes)
    found, bound = best_set(problem, np.ascontiguousarray(price[np.newaxis]), 0, space)
    who = space.best[: space.size[0], 0]
    value = -weight * math.expm1(-evidence[who].sum()) - price[who].sum()
    assert found == pytest.approx(value, abs=1e-9)
    assert found <= best + 1e-9
    assert bound >= best - 1e-9
    if nodes == 300:
        assert bound <= best + 2e-4 * weight + 1e-9


def test_an_expert_among_weak_labelers_is_bought_whole_or_not_at_all() -> None:
    """Its half would look worth more than it is; the weak ones may as well be bought in part."""
    evidence = np.array([1.325, *np.linspace(0.0145, 0.0016, 29)])
    weights = np.arange(5.0, 51.0, 5.0)
    arrival, capacity = np.zeros(len(weights), np.int64), np.ones(30, np.int64)
    instance = Instance(weights, arrival, 1, evidence[np.newaxis], capacity)
    for level in (8.0, 10.0, 12.0, 15.0):
        for expert in (9.0, 12.0, 15.0, 20.0):
            price = np.array([[expert, *(level * evidence[1:])]])
            liquid = [
                max(
                    liquid_gain(w, level, evidence[1:].sum()),
                    liquid_gain(w * math.exp(-1.325), level, evidence[1:].sum())
                    - w * math.expm1(-1.325)
                    - expert,
                )
                for w in weights
            ]
            assert bound_at(instance, price) <= price.sum() + sum(liquid) * (1.0 + 3e-4)


def liquid_gain(left: float, price: float, most: float) -> float:
    """What evidence at a price, in any amount up to the most, adds to an item."""
    amount = min(most, max(0.0, math.log(left / price)))
    return -left * math.expm1(-amount) - price * amount


@settings(max_examples=30, deadline=None)
@given(instance=tiny_instances(), sweeps=st.sampled_from([4, 40]))
def test_found_prices_bound_it_and_plans_stay_below(instance: Instance, sweeps: int) -> None:
    expected = best_by_trying(instance)
    price, bound = find_prices(instance, sweeps)
    assert bound >= expected
    assert value_of(instance, plan(instance, price)) <= expected * (1 + 1e-12)
    certificate = certify(instance)
    assert certificate.lower <= expected * (1 + 1e-12)
    assert certificate.bound >= expected
    assert value_of(instance, certificate.schedule) == pytest.approx(certificate.lower)


@settings(max_examples=40, deadline=None)
@given(instance=tiny_instances(), guess=st.sampled_from([0.0, 0.1, 2.0, 30.0]))
def test_the_duals_of_the_linear_program_bound_the_optimum(
    instance: Instance, guess: float
) -> None:
    price = linear_prices(instance, np.full((instance.slots, len(instance.capacity)), guess))
    assert price is not None
    assert bound_at(instance, price) >= best_by_trying(instance)


def test_a_certificate_of_many_alike_items_comes_from_the_linear_program() -> None:
    """Erratum 4 in the small: 60 items at once for 40 labelers who hardly help."""
    many = Instance(
        np.full(60, 30.0),
        np.zeros(60, np.int64),
        30,
        np.full((1, 40), 0.05),
        np.ones(40, np.int64),
    )
    certificate = certify(many)
    assert certificate.method == "lp"
    assert certificate.gap < 0.03
    assert certificate.bound == min(found.bound for found in candidates(many))


def test_a_program_that_is_too_large_is_left_to_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    hard = Instance(
        rng.uniform(3, 11, 8),
        np.sort(rng.integers(0, 3, 8)),
        6,
        rng.random((1, 3)),
        np.ones(3, np.int64),
    )
    best = optimum(hard)
    monkeypatch.setattr(certificates, "COLUMNS", 1)
    certificate = certify(hard)
    assert certificate.method != "exact"
    assert certificate.lower <= best.value * (1 + 1e-9) <= certificate.bound
    with pytest.raises(InputError, match="ask for a certificate"):
        optimum(hard)


def test_columns_are_all_there_or_too_many() -> None:
    """Slot 0 is too dear, and some that wait earn nothing; they must not hide that others do."""
    evidence, one = np.array([[0.2, 0.6, 0.6]]), np.ones(3, np.int64)
    late = Instance(np.array([1.5]), np.array([0]), slots=2, evidence=evidence, capacity=one)
    price = np.array([[9.0, 9.0, 9.0], [0.0, 0.0, 0.0]])
    every = certificates._columns_of(late, price, 0, -0.9, 100)
    assert sum(column.value > 0 for column in every) == 2
    for room in range(1, len(every) + 3):
        found = certificates._columns_of(late, price, 0, -0.9, room)
        assert found == every or len(found) >= room


@settings(max_examples=8, deadline=None)
@given(instance=instances(max_labelers=4, max_slots=6))
def test_no_policy_earns_more_than_the_bounds(instance: Traced) -> None:
    runs = [simulate(instance.world(), policy, slots=instance.slots) for policy in POLICIES]
    certificate = runs[0].certificate()
    for run in runs:
        assert run.utility <= certificate.bound
        assert run.realised_utility <= certificate.bound
        if certificate.method == "exact":
            assert run.utility <= certificate.lower + 2e-6 * (1 + certificate.lower)


@settings(max_examples=30, deadline=None)
@given(instance=tiny_instances())
def test_a_larger_panel_or_a_longer_horizon_never_hurts(instance: Instance) -> None:
    wider = Instance(
        instance.weight,
        instance.arrival,
        instance.slots + 1,
        instance.evidence,
        instance.capacity + 1,
        instance.since,
        instance.group,
        instance.groups,
        instance.barred,
        instance.money,
    )
    assert optimum(wider).bound >= optimum(instance).value


def test_an_item_takes_a_block_from_one_that_loses_less_by_it() -> None:
    """At no prices the first item takes the only labeler; the second is worth more."""
    one = Instance(
        np.array([3.0, 8.0]), np.zeros(2, np.int64), 1, np.array([[1.0]]), np.ones(1, np.int64)
    )
    assert plan(one, np.zeros((1, 1))) == [(1, 0, 0)]


@settings(max_examples=30, deadline=None)
@given(instance=tiny_instances())
def test_a_plan_is_one_that_no_single_item_can_better(instance: Instance) -> None:
    """What is free at the end is of no use to anybody alone."""
    blocks = plan(instance, np.zeros((instance.slots, len(instance.capacity))))
    earned = value_of(instance, blocks)
    used = Counter((m, t) for _, m, t in blocks)
    pairs = {(s, m) for s, m, _ in blocks}
    for s in range(len(instance)):
        for m in instance.may_label(s):
            for t in range(int(instance.arrival[s]), instance.slots):
                if (s, m) not in pairs and used[m, t] < instance.capacity[m]:
                    better = value_of(instance, [*blocks, (s, m, t)])
                    assert better <= earned + 1e-3 * (1 + earned)


TINY = Instance(
    np.array([8.0, 3.0]), np.zeros(2, np.int64), 2, np.array([[1.0, 0.5]]), np.ones(2, np.int64)
)


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ([(0, 0, 2)], "outside of its window"),
        ([(0, 0, 0), (0, 0, 1)], "twice"),
        ([(0, 0, 0), (1, 0, 0)], "over capacity"),
    ],
)
def test_a_schedule_that_breaks_a_rule_is_refused(
    schedule: list[tuple[int, int, int]], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        value_of(TINY, schedule)


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (np.zeros((1, 2)), "shape"),
        (np.full((2, 2), -1.0), "negative"),
        (np.full((2, 2), np.nan), "finite"),
    ],
)
def test_prices_that_are_none_are_refused(price: np.ndarray, says: str) -> None:
    with pytest.raises(InputError, match=says):
        bound_at(TINY, price)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"arrival": [0]}, "arrivals"),
        ({"arrival": [0, 2]}, "outside"),
        ({"arrival": [1, 0]}, "order"),
        ({"evidence": [[1.0]]}, "shape"),
        ({"evidence": [[1.0, -1.0]]}, "negative"),
    ],
)
def test_instances_that_cannot_be_are_refused(fields: dict[str, object], says: str) -> None:
    good = {"weight": [8.0, 3.0], "arrival": [0, 0], "slots": 2}
    good |= {"evidence": [[1.0, 0.5]], "capacity": [1, 1]}
    with pytest.raises(InputError, match=says):
        Instance(**(good | fields))  # type: ignore[arg-type]


def test_the_example_of_the_documentation_by_hand() -> None:
    """docs/certificates.md: two items, two labelers, two slots."""
    best = optimum(TINY)
    first = 8 * (1 - np.exp(-1.5))
    second = 3 * (1 - np.exp(-1.5)) - 1
    assert best.value == pytest.approx(first + second)
    price = np.array([[0.6, 0.4], [0.0, 0.0]])
    assert bound_at(TINY, price) == pytest.approx(best.value, rel=3e-4)
    assert bound_at(TINY, price) >= best.value
