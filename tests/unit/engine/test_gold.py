"""Gold: what a trusted labeler says of an item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.marks import nightly
from venire import (
    FixedOverlap,
    Item,
    Label,
    Labeler,
    LearnWhileServing,
    Scheduler,
)
from venire.engine import Scheduler as Engine
from venire.errors import InputError, StateError
from venire.events import Closed, GoldGiven
from venire.model import Bounds, ExitReason, Verdict
from venire.server.store import decode, encode

CLASSES = ["spam", "ok"]


def known(revisions: int = 0) -> Scheduler:
    panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
    return Scheduler(panel, CLASSES, FixedOverlap(2), revisions=revisions)


def labelled(s: Scheduler, item: str, said: str) -> None:
    s.arrive(Item(item, weight=9))
    for a in s.assign():
        s.observe(Label(a.item, a.labeler, said))


def same(one: Scheduler, other: Scheduler) -> bool:
    return one.fingerprint() == other.fingerprint()


def test_an_open_item_is_labelled_on_and_leaves_with_its_gold() -> None:
    s = known()
    s.arrive(Item("a", weight=9))
    s.gold("a", "ok")
    given = s.assign()
    assert [a.labeler for a in given] == ["ann", "bob"]
    s.observe([Label(a.item, a.labeler, "spam") for a in given])
    restored = Engine.restore(s.snapshot())
    assert same(restored, s)
    assert restored.close()[0].verdict == Verdict("ok", 1.0)
    assert s.close()[0].verdict == Verdict("ok", 1.0)
    assert s.state.gold == {}


def test_gold_below_the_confidence_is_not_undecided() -> None:
    s = Scheduler([Labeler("ann", 0.6)], CLASSES, bounds=Bounds(min_confidence=0.99))
    s.arrive([Item("a"), Item("b")])
    s.gold("a", "ok")
    for item in "ab":
        s.observe(Label(item, "ann", "spam"))
    reasons = {e.item: e.reason for e in s.close()}
    assert reasons == {"a": ExitReason.CONFIDENT, "b": ExitReason.UNDECIDED}


@pytest.mark.parametrize("revisions", [0, 10])
def test_an_item_that_left_is_revised(revisions: int) -> None:
    s = known(revisions)
    labelled(s, "a", "spam")
    exit = s.close()[0]
    s.gold("a", "ok", exit.verdict, exit.labels)
    event = s.log[-1]
    assert isinstance(event, GoldGiven)
    assert event.revision is not None
    assert (event.revision.before, event.revision.verdict) == (exit.verdict, Verdict("ok", 1.0))
    assert event.revision.labels == 2
    assert "a" not in s.state.departed.items  # no belief revises it again


def test_the_verdict_before_is_remembered_as_long_as_it_may_be_revised() -> None:
    s = known(revisions=10)
    labelled(s, "a", "spam")
    s.close()
    s.gold("a", "ok")
    event = s.log[-1]
    assert isinstance(event, GoldGiven)
    assert event.before is not None
    assert event.before.label == "spam"
    assert event.labels == 2


def test_gold_that_confirms_is_no_revision() -> None:
    s = known(revisions=10)
    labelled(s, "a", "spam")
    s.close()
    s.gold("a", "spam")
    event = s.log[-1]
    assert isinstance(event, GoldGiven)
    assert event.revision is None


def test_gold_once_given_stays() -> None:
    s = known()
    s.arrive(Item("a"))
    s.gold("a", "ok")
    events = len(s.log)
    s.gold("a", "ok")
    assert len(s.log) == events
    with pytest.raises(StateError, match="say corrects='ok' to correct it"):
        s.gold("a", "spam")
    with pytest.raises(InputError, match="expected one of"):
        s.gold("a", "eggs")
    with pytest.raises(InputError, match="never arrived"):
        s.gold("z", "ok")


def test_gold_is_corrected() -> None:
    """Of an open item and of one that has left; the log says what was wrong."""
    s = known()
    s.arrive(Item("a"))
    s.gold("a", "ok")
    with pytest.raises(StateError, match="is 'ok', got 'spam' in place of None"):
        s.gold("a", "spam")
    with pytest.raises(InputError, match="expected another class"):
        s.gold("a", "ok", corrects="ok")
    assert s.gold("a", "spam", corrects="ok")
    assert s.verdict("a").label == "spam"
    labelled(s, "b", "spam")
    exits: dict[Any, Any] = {}
    for _ in range(5):
        exits |= {e.item: e for e in s.close()}
        for a in s.assign():
            s.observe(Label(a.item, a.labeler, "spam"))
    s.gold("b", "ok", exits["b"].verdict, exits["b"].labels)
    s.gold("b", "spam", Verdict("ok", 1.0), exits["b"].labels, corrects="ok")
    event = s.log[-1]
    assert isinstance(event, GoldGiven)
    assert event.revision is not None
    assert (event.corrects, event.revision.verdict) == ("ok", Verdict("spam", 1.0))
    assert exits["a"].verdict == Verdict("spam", 1.0)
    again = decode(encode("posts", 0, 1.0, s.log))
    assert again == list(s.log)
    assert same(known().replay(again), s)


def test_nothing_is_left_of_gold_that_was_corrected() -> None:
    """Once competences are learned again, they are those of somebody who never erred."""
    right, wrong = learner(), learner()
    for s in (right, wrong):
        collude(s, 60, gold=0)
    left = [e.item for event in right.log if isinstance(event, Closed) for e in event.exits][:30]
    for item in left:
        right.gold(item, CLASSES[0], Verdict(CLASSES[1], 0.7), 2)
        wrong.gold(item, CLASSES[1], Verdict(CLASSES[1], 0.7), 2)
    for s in (right, wrong):
        s.advance(s.slot + 100)
    assert right.competences != wrong.competences
    for item in left:
        wrong.gold(item, CLASSES[0], Verdict(CLASSES[1], 1.0), 2, corrects=CLASSES[1])
    for s in (right, wrong):
        s.advance(s.slot + 100)
    assert right.competences == wrong.competences


@pytest.mark.parametrize("revisions", [0, 10])
def test_gold_that_teaches_nothing_says_so(revisions: int) -> None:
    """An item that left and is forgotten: its verdict is revised, and nothing is learned."""
    panel = [Labeler("ann"), Labeler("bob")]
    start, s = (
        Scheduler(panel, CLASSES, learning=LearnWhileServing(), remember=1, revisions=revisions)
        for _ in range(2)
    )
    exits = {}
    for item in "abc":
        labelled(s, item, "spam")
        exits[item] = s.close()[0]
    assert s.gold("c", "ok", exits["c"].verdict, exits["c"].labels)
    with pytest.warns(UserWarning, match=r"no longer remembered \(remember=1\)"):
        assert not s.gold("a", "ok", exits["a"].verdict, exits["a"].labels)
    if revisions:
        with pytest.warns(UserWarning, match="teach nothing"):
            assert not s.gold("b", "ok")
    else:
        with pytest.raises(InputError, match="remember more items, or say which verdict"):
            s.gold("b", "ok")
    event = s.log[-1]
    assert isinstance(event, GoldGiven)
    assert event.revision is not None
    assert same(start.replay(s.log), s)  # without a warning


def test_a_log_with_gold_is_read_and_replayed() -> None:
    s = learner()
    collude(s, 300, gold=60)
    again = decode(encode("posts", 0, 1.0, s.log))
    assert again == s.log
    assert same(learner().replay(again), s)
    half = len(s.log) // 2
    early = learner().replay(s.log[:half])
    assert same(Engine.restore(early.snapshot()).follow(s.log[half:]), s)
    assert same(learner().follow(s.log, obey=True), s)


def learner(revisions: int = 0) -> Scheduler:
    return Scheduler(
        [f"m{k}" for k in range(9)],
        CLASSES,
        FixedOverlap(9),
        LearnWhileServing(longest=20),
        revisions=revisions,
    )


def collude(s: Scheduler, items: int, gold: int, seed: int = 0) -> float:
    """Five of nine labelers repeat a coin; the rest is right 4 times in 5. The share that is right.

    Of the last third of the items; gold is of the first.
    """
    rng = np.random.default_rng(seed)
    truth, coin = rng.integers(2, size=(2, items))
    right, late = 0, 0
    for i in range(items):
        s.arrive(Item(f"i{i}", weight=50))
        for a in s.assign():
            honest = int(a.labeler[1:]) < 4
            said = truth[i] if rng.random() < 0.8 else 1 - truth[i]
            s.observe(Label(a.item, a.labeler, CLASSES[said if honest else coin[i]]))
        for e in s.close():
            number = int(e.item[1:])
            if number < gold:
                s.gold(e.item, CLASSES[truth[number]], e.verdict, e.labels)
            if number >= items * 2 // 3:
                late += 1
                right += e.verdict.label == CLASSES[truth[number]]
    return right / late


@pytest.mark.parametrize("seeds", [(2,), nightly((0, 1, 2))], ids=str)
def test_gold_finds_a_colluding_majority(seeds: tuple[int, ...]) -> None:
    """Without gold it may be found to be copies, or pass for the truth."""
    assert min(collude(learner(), 300, gold=0, seed=seed) for seed in seeds) < 0.65
    assert min(collude(learner(), 300, gold=50, seed=seed) for seed in seeds) > 0.8


def test_a_learned_revision_does_not_touch_gold() -> None:
    s = learner(revisions=1000)
    collude(s, 300, gold=50)
    told = {e.item: e.slot for e in s.log if isinstance(e, GoldGiven)}
    revised = [(r.item, r.slot) for e in s.log if isinstance(e, Closed) for r in e.revisions]
    assert revised  # once the majority was found out, its verdicts are others
    assert all(slot < told[item] for item, slot in revised if item in told)
