"""The engine: labels in flight, late labels, labelers that come and go, and replay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import (
    Everyone,
    FixedOverlap,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    LearnThenServe,
    Policy,
    Random,
    ReplayError,
    RoundRobin,
    Scheduler,
    StateError,
    Verdict,
    World,
)
from venire.model import Assigned, Assignment, Closed, Event, Observed, Released
from venire.testing import drive

PANEL = (Labeler("ann", 0.9), Labeler("bob", 0.8), Labeler("eve", 0.7, capacity=2))
CLASSES = ("spam", "ok")


def scheduler(policy: Policy | None = None) -> Scheduler:
    return Scheduler(PANEL, CLASSES, policy)


def test_an_item_waits_for_its_labels_in_flight() -> None:
    s = Scheduler([Labeler("ann", 0.9)], CLASSES)
    s.arrive([Item("a", 2.0)])
    assert [(a.item, a.labeler) for a in s.assign()] == [("a", "ann")]
    assert s.close() == ()
    assert s.assign() == ()
    assert s.close() == ()
    s.observe(Label("a", "ann", "ok"))
    (left,) = s.close()
    assert (left.slot, left.labels, left.reason) == (2, 1, "exhausted")
    assert left.verdict.label == "ok"


def test_a_busy_labeler_gets_no_more_work() -> None:
    s = Scheduler([Labeler("ann", 0.9)], CLASSES)
    s.arrive([Item("a", 20.0), Item("b", 20.0)])
    assert len(s.assign()) == 1
    s.close()
    assert s.assign() == ()
    s.observe(Label("a", "ann", "ok"))
    assert s.assign() == ()  # its capacity for this slot was taken by the label in flight
    s.close()
    assert [a.item for a in s.assign()] == ["b"]


def test_a_released_item_is_revalued_and_given_again() -> None:
    s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], CLASSES)
    s.arrive([Item("a", 9.0)])
    before = {a.labeler: a.gain for a in s.assign()}
    s.close()
    s.release("a", "bob")
    s.observe(Label("a", "ann", "ok"))
    again = s.assign()
    assert [a.labeler for a in again] == ["bob"]
    # the label of ann counts from the slot it came in, so that bob's is free of delay again
    assert again[0].gain == pytest.approx(before["bob"])
    s.observe(Label("a", "bob", "ok"))
    assert s.close()[0].verdict.confidence == pytest.approx(0.9 * 0.8 / (0.9 * 0.8 + 0.1 * 0.2))


def test_releasing_a_label_that_has_come_is_refused() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0)])
    s.assign()
    s.observe(Label("a", "ann", "ok"))
    with pytest.raises(StateError, match="nothing to release"):
        s.release("a", "ann")


def test_the_label_of_an_expired_lease_is_still_taken() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0)])
    s.assign()
    s.release("a", "bob")
    s.observe(Label("a", "bob", "spam"))
    assert s.verdict("a").label == "spam"
    assert s.verdict("a").confidence == pytest.approx(0.8)


def test_a_late_label_is_logged_and_changes_no_verdict() -> None:
    s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.6)], CLASSES)
    s.arrive([Item("a", 0.5)])
    for a in s.assign():
        if a.labeler == "ann":
            s.observe(Label("a", "ann", "ok"))
        else:
            s.release("a", a.labeler)
    assert [e.item for e in s.close()] == ["a"]
    s.observe(Label("a", "bob", "spam"))
    assert s.log[-1] == Observed(1, Label("a", "bob", "spam"), late=True)
    with pytest.raises(InputError, match="not outstanding"):
        s.verdict("a")


def test_the_same_label_twice_changes_nothing_and_another_one_is_refused() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0)])
    s.assign()
    s.observe(Label("a", "ann", "ok"))
    log, state = len(s.log), s.fingerprint()
    s.observe(Label("a", "ann", "ok"))
    assert (len(s.log), s.fingerprint()) == (log, state)
    with pytest.raises(StateError, match="cannot be changed"):
        s.observe(Label("a", "ann", "spam"))
    assert s.fingerprint() == state


def test_labelers_come_and_go() -> None:
    s = scheduler()
    s.leave("ann")
    s.arrive([Item("a", 9.0)])
    assert {a.labeler for a in s.assign()} == {"bob", "eve"}
    s.join("ann")
    assert [a.labeler for a in s.assign()] == ["ann"]
    s.join(Labeler("dan", 0.95))
    assert [a.labeler for a in s.assign()] == ["dan"]
    assert s.competences == {"ann": 0.9, "bob": 0.8, "eve": 0.7, "dan": 0.95}
    with pytest.raises(StateError, match="already"):
        s.join("dan")
    s.leave("dan")
    with pytest.raises(StateError, match="left already"):
        s.leave("dan")


def test_a_labeler_who_left_may_still_bring_its_label() -> None:
    s = Scheduler([Labeler("ann", 0.9)], CLASSES)
    s.arrive([Item("a", 3.0)])
    s.assign()
    s.leave("ann")
    assert s.close() == ()
    s.observe(Label("a", "ann", "ok"))
    assert s.close()[0].verdict.label == "ok"


def test_masks_hold_for_those_who_join_later() -> None:
    s = Scheduler([Labeler("ann", 0.9)], CLASSES)
    s.arrive(
        [
            Item("only-dan", 30.0, eligible=frozenset({"dan"}), excluded=frozenset()),
            Item("not-dan", 30.0, excluded=frozenset({"dan"})),
        ]
    )
    s.join(Labeler("dan", 0.9))
    assert {(a.item, a.labeler) for a in s.assign()} == {("not-dan", "ann"), ("only-dan", "dan")}
    with pytest.raises(StateError, match="may not label"):
        s.observe(Label("not-dan", "dan", "ok"))
    with pytest.raises(StateError, match="may not label"):
        s.observe(Label("only-dan", "ann", "ok"))


def test_an_item_nobody_may_label_leaves_at_once_without_a_verdict() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0, eligible=frozenset())])
    (left,) = s.close()
    assert (left.verdict, left.reason, left.labels) == (Verdict(None, 0.0), "exhausted", 0)


def test_a_newcomer_after_learning_counts_as_the_others_do() -> None:
    _, _, s = drive(World.synthetic(seed=1), Greedy(), 40, LearnThenServe(20))
    assert s.competences is not None
    mean = sum(s.competences.values()) / len(s.competences)
    s.join("newcomer")
    assert s.competences["newcomer"] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.arrive([Item("a"), Item("a")]), "has arrived before"),
        (lambda s: s.observe(Label("x", "ann", "ok")), "never arrived"),
        (lambda s: s.observe(Label("x", "who", "ok")), "not on the panel"),
        (lambda s: s.observe(Label("x", "ann", "maybe")), "expected one of"),
        (lambda s: s.join("dan"), "has no competence"),
        (lambda s: s.leave("dan"), "not on the panel"),
        (lambda s: Scheduler(["ann"], CLASSES), "has no competence"),
        (lambda s: Scheduler([], CLASSES), "panel is empty"),
        (lambda s: Scheduler(PANEL, ["ok"]), "at least two"),
        (lambda s: Scheduler([*PANEL, Labeler("ann", 0.6)], CLASSES), "twice"),
    ],
)
def test_bad_calls_are_refused_and_change_nothing(call: object, says: str) -> None:
    s = scheduler()
    state = s.fingerprint()
    with pytest.raises((InputError, StateError), match=says):
        call(s)  # type: ignore[operator]
    assert s.fingerprint() == state
    assert s.log == []


def test_a_log_that_was_changed_does_not_replay() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0)])
    s.assign()
    log = list(s.log)
    log[-1] = Assigned(0, (Assignment(0, "a", "eve", 1.0),))
    with pytest.raises(ReplayError, match="the log says"):
        scheduler().replay(log)
    with pytest.raises(StateError, match="fresh"):
        s.replay([])


POLICIES: list[Policy] = [Greedy(), FixedOverlap(2), RoundRobin(2), Random(2), Everyone()]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@settings(max_examples=40)
@given(data=st.data())
def test_any_history_replays_to_the_same_state(policy: Policy, data: st.DataObject) -> None:
    """Items, labels that come, come late or never, labelers that come and go."""
    s = scheduler(policy)
    held: list[Assignment] = []
    for _ in range(data.draw(st.integers(1, 12))):
        step(s, held, data)
        check_invariants(s)
    again = scheduler(policy).replay(s.log)
    assert again.fingerprint() == s.fingerprint()
    assert again.log == s.log
    assert again.assign() == s.assign()


def step(s: Scheduler, held: list[Assignment], data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 4))
    s.arrive([Item(f"i{s.slot}-{k}-{len(s.log)}", data.draw(WEIGHTS)) for k in range(n)])
    if data.draw(st.booleans()) and len(s.log) % 3 == 0:
        name = data.draw(st.sampled_from(["ann", "bob", "eve"]))
        try:
            s.leave(name)
        except StateError:
            s.join(name)
    held += s.assign()
    for a in list(held):
        fate = data.draw(st.sampled_from(["comes", "comes", "comes", "waits", "expires"]))
        if fate == "comes":
            s.observe(Label(a.item, a.labeler, data.draw(st.sampled_from(CLASSES))))
        elif fate == "expires":
            s.release(a.item, a.labeler)
        if fate != "waits":
            held.remove(a)
    s.close()


WEIGHTS = st.sampled_from([0.5, 2.0, 3.0, 8.0, 20.0])


def check_invariants(s: Scheduler) -> None:
    """Nobody labels an item twice, nobody is over capacity, nothing leaves twice."""
    left = [e.item for event in s.log if isinstance(event, Closed) for e in event.exits]
    assert len(left) == len(set(left))
    assert not set(left) & set(s.outstanding)
    open_work: set[tuple[str, str]] = set()
    done: set[tuple[str, str]] = set()
    for event in s.log:
        follow(event, open_work, done)
        for labeler in PANEL:
            assert sum(1 for _, who in open_work if who == labeler.id) <= labeler.capacity


def follow(event: Event, open_work: set[tuple[str, str]], done: set[tuple[str, str]]) -> None:
    if isinstance(event, Assigned):
        for a in event.assignments:
            assert (a.item, a.labeler) not in open_work | done
            open_work.add((a.item, a.labeler))
    elif isinstance(event, Observed):
        pair = (event.label.item, event.label.labeler)
        open_work.discard(pair)
        done.add(pair)
    elif isinstance(event, Released):
        open_work.discard((event.item, event.labeler))
