"""Policies in ordinary Python run like compiled ones, and the same rule gives the same schedule."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given

from tests.marks import examples
from tests.strategies import Instance, instances
from tests.unit.scheduling.plain_policies import (
    PlainGreedy,
    PlainOverlap,
    PlainRandom,
    Stranger,
)
from venire import (
    Bounds,
    Exit,
    FixedOverlap,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    LearnWhileServing,
    PythonPolicy,
    Run,
    Scheduler,
    World,
    simulate,
)
from venire.model import ExitReason
from venire.testing import check_policy, drive


def same_labels(one: Run, other: Run) -> None:
    for name in ("slot", "row", "labeler", "said", "gain"):
        assert one.touches[name].tolist() == other.touches[name].tolist(), name


@examples(night=200, day=30)
@given(instance=instances())
def test_algorithm_1_in_python_is_the_compiled_one_tie_for_tie(instance: Instance) -> None:
    plain, compiled = (
        simulate(instance.world(), policy, slots=instance.slots)
        for policy in (PlainGreedy(), Greedy())
    )
    same_labels(plain, compiled)
    assert list(plain.exits()) == list(compiled.exits())
    given, left, _ = drive(instance.world(), PlainGreedy(), instance.slots)
    expected = drive(instance.world(), Greedy(), instance.slots)
    assert (given, left) == expected[:2]


@examples(night=100, day=30)
@given(instance=instances(few=True, max_labelers=9))
def test_fixed_overlap_in_python_gives_the_same_labels(instance: Instance) -> None:
    plain, compiled = (
        simulate(instance.world(), policy, slots=instance.slots)
        for policy in (PlainOverlap(2), FixedOverlap(2))
    )
    same_labels(plain, compiled)
    assert plain.rows["exit"].tolist() == compiled.rows["exit"].tolist()


def test_it_is_the_same_while_it_learns() -> None:
    world = World.synthetic(seed=3)
    plain, compiled = (
        simulate(world, policy, LearnWhileServing(), slots=300)
        for policy in (PlainGreedy(), Greedy())
    )
    same_labels(plain, compiled)


@pytest.mark.parametrize("policy", [PlainGreedy(), PlainOverlap(2), PlainRandom()], ids=str)
def test_it_keeps_the_rules_of_every_policy(policy: PythonPolicy) -> None:
    check_policy(policy)


def test_it_is_named_after_its_class_and_settings() -> None:
    assert PlainGreedy().describe() == "plain-greedy"
    assert PlainOverlap(5).describe() == "plain-overlap:5"
    assert Stranger().describe() == "someone-else"


def test_it_must_choose_among_the_items_that_it_is_given() -> None:
    expected = "Stranger.choose returned 'an item' for labeler 0, expected one of the items"
    with pytest.raises(InputError, match=expected):
        simulate(World.synthetic(seed=0), Stranger(), slots=3)


def test_it_cannot_remember_anything() -> None:
    with pytest.raises(InputError, match=r"PlainGreedy sets self\.seen, and a policy must not"):
        PlainGreedy().seen = 3
    with pytest.raises(FrozenInstanceError):
        PlainOverlap().overlap = 3  # type: ignore[misc]


def test_without_choose_there_is_no_policy() -> None:
    with pytest.raises(TypeError, match="choose"):
        PythonPolicy()  # type: ignore[abstract]


class Looker(PythonPolicy):
    """It keeps what it saw, which no policy should: for this test alone."""

    def choose(self, labeler, items, slot):  # type: ignore[no-untyped-def]
        SEEN.append((labeler, items[0], items[0].said, items[0].posterior, items[0].eligible))
        return items[0]

    def leaves(self, item, slot):  # type: ignore[no-untyped-def]
        return False


SEEN: list[tuple[Any, ...]] = []


def test_what_it_is_shown() -> None:
    SEEN.clear()
    panel = [Labeler("ann", 0.9), Labeler("bob", 0.6), Labeler("eve", 0.8)]
    s = Scheduler(panel, ["spam", "ok"], Looker())
    s.arrive(Item("post", weight=8, excluded=frozenset(["bob"])))
    s.assign(asked=["eve"])
    s.observe(Label("post", "eve", "ok"))
    assert s.close() == ()
    s.assign()
    (_, _, said, posterior, eligible), (labeler, item, *then) = SEEN
    assert (said, posterior) == ({}, (0.5, 0.5))
    assert [one.number for one in eligible] == [0, 2]
    assert repr(item) == "ItemView(0, weight=8, labels=2)"
    assert repr(labeler) == "LabelerView(0, evidence=0.879, room=0)"
    assert then[0] == {2: 1}
    assert then[1] == pytest.approx((0.2, 0.8))


def test_bounds_hold_for_it_too() -> None:
    panel = [Labeler(name, 0.8) for name in ("ann", "bob", "eve")]
    s = Scheduler(panel, ["spam", "ok"], PlainGreedy(), bounds=Bounds(max_labels=2))
    s.arrive([Item("a", weight=90), Item("b", weight=80)])
    left: list[Exit] = []
    for _ in range(3):
        s.observe([Label(a.item, a.labeler, "ok") for a in s.assign()])
        left += s.close()
    assert [(e.item, e.labels, e.reason) for e in left] == [
        ("a", 2, ExitReason.MAX_LABELS),
        ("b", 2, ExitReason.MAX_LABELS),
    ]


def test_a_snapshot_refuses_it_and_says_what_to_do() -> None:
    s = Scheduler([Labeler("ann", 0.9)], ["spam", "ok"], PlainGreedy())
    with pytest.raises(InputError, match=r"not one of venire's own.*Keep the log instead"):
        s.snapshot()
