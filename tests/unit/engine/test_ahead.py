"""Labelers who hold items ahead of their capacity: the next one while they label another."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import Bounds, Budget, FixedOverlap, Greedy, Item, Label, Labeler, Realised, Scheduler
from venire.errors import InputError
from venire.scheduling.base import Policy

PANEL = (Labeler("ann", 0.9), Labeler("bob", 0.8, capacity=2))
POLICIES: list[Policy] = [Greedy(), FixedOverlap(2), Realised()]


def scheduler(policy: Policy | None = None, bounds: Bounds | None = None) -> Scheduler:
    return Scheduler(PANEL, ["spam", "ok"], policy, bounds=bounds)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("bounds", [None, Bounds(min_labels=2, max_labels=2)], ids=["free", "two"])
def test_a_labeler_holds_its_capacity_and_so_many_ahead(
    policy: Policy, bounds: Bounds | None
) -> None:
    s = scheduler(policy, bounds)
    s.arrive([Item(f"i{n}", 500.0) for n in range(9)])
    assert [len(s.assign(["ann"])) for _ in range(2)] == [1, 0]
    assert [len(s.assign(["ann"], ahead=2)) for _ in range(4)] == [1, 1, 0, 0]
    assert [len(s.assign(["ann", "bob"], ahead=1)) for _ in range(4)] == [1, 1, 1, 0]
    assert Counter(labeler for _, labeler in s.in_flight) == {"ann": 3, "bob": 3}
    assert scheduler(policy, bounds).replay(s.log).fingerprint() == s.fingerprint()
    held = [item for item, labeler in s.in_flight if labeler == "ann"]
    for item in held[:2]:
        s.observe(Label(item, "ann", "ok"))
    assert len(s.assign(["ann"])) == 0  # the third fills the capacity
    s.observe(Label(held[2], "ann", "ok"))
    assert len(s.assign(["ann"])) == 1


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 3), st.booleans()), max_size=20
    )
)
def test_any_history_keeps_to_it_and_replays(steps: list[tuple[str, int, bool]]) -> None:
    s = scheduler(Realised())
    s.arrive([Item(f"i{n}", 100.0) for n in range(12)])
    for labeler, ahead, answers in steps:
        before = Counter(who for _, who in s.in_flight)[labeler]
        capacity = next(who.capacity for who in PANEL if who.id == labeler)
        if s.assign([labeler], ahead):
            assert before < capacity + ahead
        if answers and s.in_flight:
            item, who = s.in_flight[0]
            s.observe(Label(item, who, "ok"))
        elif answers:
            s.close()
    again = scheduler(Realised()).replay(s.log)
    assert (again.fingerprint(), again.log) == (s.fingerprint(), s.log)
    obeyed = scheduler(Realised()).follow(s.log, obey=True)
    assert obeyed.in_flight == s.in_flight


def test_a_budget_is_kept_ahead_too() -> None:
    s = Scheduler(PANEL, ["spam", "ok"], Greedy(), budget=Budget(labels=2, slots=10))
    s.arrive([Item(f"i{n}", 500.0) for n in range(9)])
    assert [len(s.assign(["ann"], ahead=5)) for _ in range(3)] == [1, 1, 0]


def test_who_has_left_gets_nothing_ahead() -> None:
    s = scheduler(Greedy(), Bounds(min_labels=1))
    s.arrive(Item("i0", 500.0))
    s.leave("ann")
    assert s.assign(["ann"], ahead=3) == ()


@pytest.mark.parametrize(("asked", "ahead"), [(None, 1), (["ann"], -1)])
def test_bad_calls_are_refused(asked: list[str] | None, ahead: int) -> None:
    with pytest.raises(InputError, match="got ahead="):
        scheduler().assign(asked, ahead)
