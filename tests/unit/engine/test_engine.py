"""The engine: labels in flight, late labels, labelers that come and go, and replay."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import (
    Algorithm2,
    Everyone,
    FixedOverlap,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    LookAhead,
    Policy,
    Random,
    ReplayError,
    RoundRobin,
    Scheduler,
    StateError,
    Verdict,
    Waterfill,
    World,
)
from venire.events import Assigned, Closed, Event, Observed, Released
from venire.model import Assignment, Exit
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


@pytest.mark.parametrize("policy", [FixedOverlap(2), RoundRobin(2), Random(2)], ids=repr)
def test_an_item_whose_label_was_released_does_not_leave_short_of_its_labels(
    policy: Policy,
) -> None:
    s = scheduler(policy)
    s.arrive([Item("a", 50.0)])
    first, second = s.assign()
    s.release("a", first.labeler, bar=True)
    s.observe(Label("a", second.labeler, "ok"))
    assert s.close() == ()
    (third,) = s.assign()
    assert third.labeler not in (first.labeler, second.labeler)
    s.observe(Label("a", third.labeler, "ok"))
    (left,) = s.close()
    assert (left.labels, left.reason) == (2, "overlap")


def test_everyone_comes_back_to_what_was_released() -> None:
    s = Scheduler([Labeler("a", 0.9), Labeler("b", 0.8)], CLASSES, Everyone())
    s.arrive(Item("x"))
    s.assign()
    s.observe(Label("x", "a", "ok"))
    s.close()
    s.arrive(Item("y"))
    assert [(a.item, a.labeler) for a in s.assign()] == [("y", "a")]
    s.release("y", "a")
    s.close()
    assert [(a.item, a.labeler) for a in s.assign()] == [("y", "a")]
    assert s.in_flight == (("x", "b"), ("y", "a"))


def test_while_everybody_is_away_items_wait_as_long_as_it_pays() -> None:
    for policy, waits in ((Greedy(), 2), (FixedOverlap(2), 9)):
        s = Scheduler([Labeler("ann", 0.9)], CLASSES, policy)
        s.leave("ann")
        s.arrive(Item("a", 5.0))  # 5 * 0.585 = 2.9 slots
        left: list[Exit] = []
        while not left and s.slot < 9:
            left += s.close()
        assert s.slot == (waits + 1 if left else 9)
    assert s.outstanding == ("a",)
    s.join("ann")
    assert [a.item for a in s.assign()] == ["a"]


def test_a_batch_of_labels_is_taken_whole_or_not_at_all() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0)])
    s.assign()
    state = s.fingerprint()
    good, bad = Label("a", "ann", "ok"), Label("a", "bob", "what")
    for batch in ([good, bad], [good, Label("a", "ann", "spam")], [good, Label("b", "bob", "ok")]):
        with pytest.raises((InputError, StateError)):
            s.observe(batch)
        assert s.fingerprint() == state
    with pytest.raises(InputError, match="expected one of"):
        s.observe(Label("a", "ann", []))  # type: ignore[arg-type]


def test_a_drained_log_replays_together_with_what_came_after() -> None:
    s = scheduler()
    s.arrive([Item("a", 9.0)])
    first = s.drain()
    s.assign()
    again = scheduler().replay([*first, *s.log])
    assert again.fingerprint() == s.fingerprint()
    with pytest.raises(StateError, match="fresh"):
        s.replay([])


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    program = (
        "from venire import Item, Labeler, Scheduler\n"
        "names = {'ann', 'bob', 'eve'}\n"
        "s = Scheduler([Labeler(n, 0.8) for n in sorted(names)], ['a', 'b'])\n"
        "s.arrive(Item('x', eligible=names))\n"
        "print(s.fingerprint())\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(printed) == 1


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
    s.observe(Label("a", "bob", "spam"))
    assert len([e for e in s.log if isinstance(e, Observed)]) == 2
    with pytest.raises(StateError, match="cannot be changed"):
        s.observe(Label("a", "bob", "ok"))
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
    _, _, s = drive(World.synthetic(seed=1), Greedy(), 40, Algorithm2(20))
    assert s.competences is not None
    mean = sum(s.competences.values()) / len(s.competences)
    s.join("newcomer")
    assert s.competences["newcomer"] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.arrive([Item("a"), Item("a")]), "has arrived before"),
        (lambda s: s.arrive(["a"]), r"got the item 'a', expected such as Item\('post-1', weight=8"),
        (lambda s: s.observe(Label("x", "ann", "ok")), "never arrived"),
        (lambda s: s.observe(Label("x", "who", "ok")), "not on the panel"),
        (lambda s: s.observe(Label("x", "ann", "maybe")), "expected one of"),
        (lambda s: s.join("dan"), "has no competence"),
        (lambda s: s.leave("dan"), "not on the panel"),
        (lambda s: Scheduler(["ann"], CLASSES), "has no competence"),
        (lambda s: Scheduler("ann", CLASSES), "list of names"),
        (lambda s: Scheduler(PANEL, "ab"), "list of names"),
        (lambda s: Scheduler(PANEL, CLASSES, c=float("nan")), "above 0"),
        (lambda s: Item("a", eligible="ann"), "set of names"),  # type: ignore[arg-type]
        (lambda s: Item("a", weight=1e300), "up to"),
        (lambda s: Labeler("a", 0.8, 2**31), "capacity"),
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


POLICIES: list[Policy] = [
    Greedy(),
    FixedOverlap(2),
    RoundRobin(2),
    Random(2),
    Everyone(),
    Waterfill(),
    LookAhead(),
]


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
    check_it_drains(s)


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


def check_it_drains(s: Scheduler) -> None:
    """When all are here and every label comes, nothing stays for ever."""
    for name in ("ann", "bob", "eve"):
        with contextlib.suppress(StateError):
            s.join(name)
    for _ in range(100):
        for item, labeler in s.in_flight:
            s.observe(Label(item, labeler, "ok"))
        for a in s.assign():
            s.observe(Label(a.item, a.labeler, "ok"))
        s.close()
    assert s.outstanding == ()


WEIGHTS = st.sampled_from([0.5, 2.0, 3.0, 8.0, 20.0])


def check_invariants(s: Scheduler) -> None:
    """Nobody labels an item twice, nobody is over capacity, nothing leaves twice."""
    left = [e.item for event in s.log if isinstance(event, Closed) for e in event.exits]
    assert len(left) == len(set(left))
    assert not set(left) & set(s.outstanding)
    exits = [e for event in s.log if isinstance(event, Closed) for e in event.exits]
    assert all(e.labels >= 2 for e in exits if e.reason == "overlap")
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
