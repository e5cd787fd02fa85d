"""The engine as a server drives it: work is pulled, bounds hold, time passes, and it restores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import examples
from venire import (
    Bounds,
    Everyone,
    FixedOverlap,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    LearnThenServe,
    LookAhead,
    Policy,
    Random,
    Realised,
    RealisedProxy,
    ReplayError,
    RoundRobin,
    Scheduler,
    StateError,
    Waterfill,
)
from venire.events import Closed, Event

PANEL = (Labeler("ann", 0.9), Labeler("bob", 0.8), Labeler("eve", 0.7, capacity=2))
CLASSES = ("spam", "ok")
POLICIES = (
    Greedy(),
    Waterfill(),
    LookAhead(),
    Realised(),
    RealisedProxy(),
    FixedOverlap(2),
    RoundRobin(2),
    Random(2, seed=3),
    Everyone(),
)


def scheduler(bounds: Bounds | None = None, policy: Policy | None = None) -> Scheduler:
    return Scheduler(PANEL, CLASSES, policy or Greedy(), bounds=bounds)


class TestPulling:
    def test_one_item_for_each_who_asks_and_nothing_for_the_others(self) -> None:
        s = scheduler()
        s.arrive([Item("a", 20), Item("b", 30)])
        assert [(a.item, a.labeler) for a in s.assign(["eve"])] == [("b", "eve")]
        assert [(a.item, a.labeler) for a in s.assign(["eve"])] == [("a", "eve")]
        assert s.assign(["eve"]) == ()

    def test_a_labeler_may_go_on_as_soon_as_it_is_done(self) -> None:
        s = scheduler()
        s.arrive([Item("a", 20), Item("b", 30)])
        s.assign(["ann"])
        assert s.assign(["ann"]) == ()
        s.observe(Label("b", "ann", "ok"))
        assert [a.item for a in s.assign(["ann"])] == ["a"]

    def test_asking_one_by_one_in_order_of_competence_is_the_whole_slot(self) -> None:
        items = [Item(f"i{k}", 3 + k) for k in range(5)]
        pulled, pushed = scheduler(), scheduler()
        for s in (pulled, pushed):
            s.arrive(items)
        one_by_one = [a for name in ("ann", "bob", "eve", "eve") for a in pulled.assign([name])]
        assert one_by_one == list(pushed.assign())

    def test_who_is_not_on_the_panel_gets_nothing(self) -> None:
        with pytest.raises(InputError, match="'zoe' is not on the panel"):
            scheduler().assign(["zoe"])

    def test_asking_in_vain_leaves_no_trace(self) -> None:
        s = scheduler()
        before = s.fingerprint()
        assert s.assign(["ann"]) == ()
        assert (s.fingerprint(), s.log) == (before, [])


class TestBounds:
    def test_never_more_than_the_most(self) -> None:
        s = scheduler(Bounds(max_labels=2))
        s.arrive(Item("a", 1000))
        assert len(s.assign()) == 2
        assert s.close() == ()
        s.observe([Label("a", "ann", "ok"), Label("a", "bob", "ok")])
        (left,) = s.close()
        assert (left.labels, left.reason) == (2, "max_labels")

    def test_a_released_label_makes_room_for_another(self) -> None:
        s = scheduler(Bounds(max_labels=1))
        s.arrive(Item("a", 1000))
        (given,) = s.assign()
        s.release("a", given.labeler, bar=True)
        (again,) = s.assign()
        assert again.labeler != given.labeler

    def test_not_fewer_than_the_least_while_somebody_can_label_it(self) -> None:
        s = scheduler(Bounds(min_labels=2), FixedOverlap(1))
        s.arrive(Item("a", 0.001))
        while work := s.assign():
            s.observe([Label(a.item, a.labeler, "ok") for a in work])
        (left,) = s.close()
        assert (left.labels, left.reason) == (2, "overlap")

    def test_fewer_than_the_least_if_nobody_is_left(self) -> None:
        s = scheduler(Bounds(min_labels=2))
        s.arrive(Item("a", 50, eligible=frozenset({"ann"})))
        s.observe([Label(a.item, a.labeler, "ok") for a in s.assign()])
        assert [(e.labels, e.reason) for e in s.close()] == [(1, "exhausted")]

    def test_a_sure_verdict_does_not_wait_for_labels_in_flight(self) -> None:
        s = scheduler(Bounds(min_confidence=0.85))
        s.arrive(Item("a", 1000))
        assert len(s.assign()) == 3
        s.observe(Label("a", "ann", "ok"))
        (left,) = s.close()
        assert (left.labels, left.reason) == (1, "confident")
        assert s.in_flight == ()
        s.observe(Label("a", "bob", "ok"))  # late
        s.arrive(Item("b", 50))
        assert {a.labeler for a in s.assign()} == {"ann", "bob", "eve"}

    def test_a_verdict_that_becomes_doubtful_in_time_is_not_sure(self) -> None:
        s = scheduler(Bounds(min_confidence=0.85))
        s.arrive(Item("a", 1000))
        s.observe(Label("a", "ann", "ok"))
        s.observe(Label("a", "bob", "spam"))
        assert s.close() == ()
        assert len(s.assign()) == 1

    def test_when_the_budget_is_spent_everything_leaves_and_says_so(self) -> None:
        s = scheduler(Bounds(min_labels=2))
        s.arrive([Item("x", weight=50), Item("y", weight=50)])
        s.observe(Label("x", "ann", "ok"))
        s.change(bounds=Bounds(spent=True))
        assert [(e.item, e.labels, e.reason) for e in s.close()] == [
            ("x", 1, "budget"),
            ("y", 0, "budget"),
        ]
        again = Scheduler.restore(s.snapshot())
        assert again.bounds.spent
        assert again.fingerprint() == s.fingerprint()

    def test_past_the_deadline_it_leaves_with_what_it_has(self) -> None:
        s = scheduler(Bounds(deadline=3))
        s.arrive(Item("a", 1000))
        s.assign(["ann"])
        s.assign(["bob"])
        s.observe(Label("a", "ann", "ok"))
        (left,) = s.advance(100)
        assert (left.slot, left.labels, left.reason) == (3, 1, "deadline")
        assert left.verdict.label == "ok"

    @pytest.mark.parametrize(
        ("bad", "says"),
        [
            ({"min_labels": -1}, "min_labels=-1"),
            ({"min_labels": 3, "max_labels": 2}, "min_labels=3 and max_labels=2"),
            ({"min_confidence": 1.5}, "min_confidence=1.5"),
            ({"deadline": 0.5}, "deadline=0.5"),
        ],
    )
    def test_bounds_that_cannot_be(self, bad: dict[str, Any], says: str) -> None:
        with pytest.raises(InputError, match=says):
            Bounds(**bad)


class TestTime:
    def test_a_quiet_billion_slots_cost_nothing_and_are_not_written_down(self) -> None:
        s = scheduler()
        s.advance(10**9)
        assert (s.slot, s.log) == (10**9, [])

    def test_to_advance_is_to_close_that_often(self) -> None:
        a, b = scheduler(), scheduler()
        for s in (a, b):
            s.arrive([Item("a", 7), Item("b", 9)])
            s.observe(Label("a", "ann", "ok"))
        stepped = [e for _ in range(20) for e in a.close()]
        assert list(b.advance(20)) == stepped
        assert a.fingerprint() == b.fingerprint()
        assert all(e.exits for e in b.log if isinstance(e, Closed))

    @pytest.mark.parametrize("policy", [LookAhead(), Realised()])
    def test_to_advance_is_to_close_that_often_for_those_who_forecast(self, policy: Policy) -> None:
        a, b = scheduler(policy=policy), scheduler(policy=policy)
        for s in (a, b):
            s.arrive([Item("a", 7), Item("b", 9)])
        for _ in range(20):
            a.close()
        b.advance(20)
        assert a.fingerprint() == b.fingerprint()

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.integers(1, 3000), min_size=1, max_size=5))
    def test_quiet_time_is_the_same_in_one_piece_and_in_many(self, pieces: list[int]) -> None:
        a, b = scheduler(policy=Realised()), scheduler(policy=Realised())
        for s in (a, b):
            s.arrive(Item("a", 7))
        for piece in pieces:
            a.advance(a.slot + piece)
        b.advance(sum(pieces))
        assert a.fingerprint() == b.fingerprint()

    def test_a_log_with_an_exit_too_few_does_not_replay(self) -> None:
        s = scheduler()
        s.arrive([Item("a", 7)])
        s.advance(20)
        s.arrive([Item("b", 7)])
        log = [e for e in s.log if not isinstance(e, Closed)]
        with pytest.raises(ReplayError):
            scheduler().replay(log)


def test_a_withdrawn_item_is_gone_and_its_labelers_are_free() -> None:
    s = scheduler()
    s.arrive([Item("a", 100)])
    assert len(s.assign()) == 3
    s.withdraw("a")
    assert (s.outstanding, s.in_flight, s.close()) == ((), (), ())
    with pytest.raises(InputError, match="not outstanding"):
        s.withdraw("a")


def test_settings_change_in_the_middle() -> None:
    s = scheduler()
    s.arrive([Item("a", 100)])
    s.change(policy="fixed-overlap:1")
    assert len(s.assign()) == 1
    s.change(bounds=Bounds(deadline=1), learning="then-serve:45")
    with pytest.raises(InputError, match="unknown policy"):
        s.change(policy="best")
    assert scheduler().replay(s.log).fingerprint() == s.fingerprint()


def test_only_the_last_are_remembered() -> None:
    s = Scheduler(PANEL, CLASSES, remember=1)
    s.arrive([Item("a", 0.001), Item("b", 0.001)])
    assert len(s.close()) == 2
    s.observe(Label("b", "ann", "ok"))
    with pytest.raises(InputError, match="'a' never arrived"):
        s.observe(Label("a", "ann", "ok"))


def test_bytes_that_are_no_snapshot_are_refused() -> None:
    with pytest.raises(InputError, match="another version"):
        Scheduler.restore(b"venire-0\n...")


def live(s: Scheduler, data: st.DataObject, steps: int) -> None:
    """Whatever can happen to a live stream."""
    for _ in range(steps):
        verb = data.draw(st.sampled_from(["arrive", "ask", "tell", "release", "time", "other"]))
        name = data.draw(st.sampled_from(["ann", "bob", "eve"]))
        held = s.in_flight
        if verb == "arrive":
            n = s.state.registry.arrived
            weight = data.draw(st.sampled_from([0.5, 3.0, 30.0]))
            only = data.draw(st.sampled_from([None, frozenset({"ann"}), frozenset({"bob", "eve"})]))
            s.arrive(Item(f"i{n}", weight, only))
        elif verb == "ask":
            s.assign([name])
        elif verb == "tell" and held:
            s.observe(Label(*data.draw(st.sampled_from(held)), data.draw(st.sampled_from(CLASSES))))
        elif verb == "release" and held:
            s.release(*data.draw(st.sampled_from(held)), bar=data.draw(st.booleans()))
        elif verb == "time":
            s.advance(s.slot + data.draw(st.integers(1, 4)))
        elif verb == "other" and s.outstanding:
            item = data.draw(st.sampled_from(s.outstanding))
            try:
                s.observe(Label(item, name, data.draw(st.sampled_from(CLASSES))))
            except StateError:
                s.withdraw(item)


@examples(night=60, day=20)
@given(st.data(), st.sampled_from(POLICIES))
def test_any_live_history_keeps_its_bounds_replays_and_restores(
    data: st.DataObject, policy: Policy
) -> None:
    bounds = Bounds(
        data.draw(st.integers(0, 2)),
        data.draw(st.sampled_from([None, 2, 3])),
        data.draw(st.sampled_from([None, 0.8, 0.95])),
        data.draw(st.sampled_from([None, 2, 6])),
    )
    s = scheduler(bounds, policy)
    live(s, data, 25)
    middle = Scheduler.restore(s.snapshot())
    assert middle.fingerprint() == s.fingerprint()
    before = list(s.log)
    live(s, data, 15)
    after: list[Event] = s.log[len(before) :]
    again = scheduler(bounds, policy).replay(s.log)
    for other in (middle.follow(after), again):
        other.advance(s.slot)  # the time since the last event
        assert other.fingerprint() == s.fingerprint()
    for event in s.log:
        if isinstance(event, Closed):
            for left in event.exits:
                assert left.slot <= left.arrival + (bounds.deadline or 10**9)
                if left.reason == "confident":
                    assert left.verdict.confidence >= (bounds.min_confidence or 0)
                if left.reason == "no_gain":
                    assert left.labels >= bounds.min_labels


@pytest.mark.parametrize("withdrawn", ["i0", "i1", "i2"])
def test_a_learning_phase_gives_nobody_an_item_that_was_withdrawn(withdrawn: str) -> None:
    s = Scheduler(["ann", "bob"], ["spam", "ok"], learning=LearnThenServe(5))
    s.arrive([Item(f"i{k}", 20.0) for k in range(3)])
    s.withdraw(withdrawn)
    assert withdrawn not in [work.item for work in s.assign(asked=["bob"])]
