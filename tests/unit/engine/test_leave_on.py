"""`Scheduler.suffice`: one word is enough, whatever the policy, the bounds and the others say."""

from __future__ import annotations

import numpy as np
import pytest

from venire import (
    Bounds,
    Budget,
    FixedOverlap,
    Greedy,
    Item,
    Label,
    Labeler,
    LearnThenServe,
    LearnWhileServing,
    Realised,
    Scheduler,
)
from venire.errors import InputError
from venire.events import Sufficed
from venire.model import ExitReason
from venire.scheduling.base import Learning, Policy
from venire.server.store import decode, encode
from venire.whatif import Plan, Recorded, rerun

CLASSES = ["illegal", "ok"]
PANEL = [Labeler("ann", 0.9), Labeler("bob", 0.8), Labeler("cem", 0.7)]


def drawn(seed: int, policy: Policy, learning: Learning | None, bounds: Bounds) -> Scheduler:
    """A stream in which ann's word is enough for `illegal`, with labels in flight and late."""
    draw = np.random.default_rng(seed)
    budget = Budget(labels=40, slots=30) if seed % 3 == 0 else None
    s = Scheduler(PANEL, CLASSES, policy, learning, bounds=bounds, revisions=9, budget=budget)
    held: list[tuple[str, str]] = []
    for n in range(40):
        s.arrive(Item(f"i{n}", 8.0))
        held += [(a.item, a.labeler) for a in s.assign(["ann", "bob", "cem"])]
        draw.shuffle(held)
        for _ in range(draw.integers(0, len(held) + 1)):
            item, labeler = held.pop()
            if (item, labeler) in s.in_flight and draw.random() < 0.1:
                s.release(item, labeler)
                continue
            said = CLASSES[int(draw.random() < 0.6)]
            s.observe(Label(item, labeler, said))
            if labeler == "ann" and said == "illegal" and item in s.outstanding:
                s.suffice(item, labeler, said)
        if n == 20:
            s.change(bounds=Bounds(spent=True) if seed % 2 else Bounds(deadline=3))
        if draw.random() < 0.7:
            s.close()
    s.advance(60)
    s.close()  # which is in the log
    return s


BOUNDS = [Bounds(), Bounds(2, 3, 0.95), Bounds(deadline=4), Bounds(min_labels=3)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("policy", [Realised(), Greedy(), FixedOverlap(2)])
def test_replay_snapshot_and_a_rerun_give_the_same(seed: int, policy: Policy) -> None:
    learning = [None, LearnWhileServing(longest=12), LearnThenServe(5)][seed % 3]
    s = drawn(seed, policy, learning, BOUNDS[seed % 4])
    log = list(s.log)
    enough = [event for event in log if isinstance(event, Sufficed)]
    assert enough
    assert repr(decode(encode("s", 0, 0.0, log))) == repr(log)
    budget = Budget(labels=40, slots=30) if seed % 3 == 0 else None

    def fresh() -> Scheduler:
        how = policy, learning
        return Scheduler(PANEL, CLASSES, *how, bounds=BOUNDS[seed % 4], revisions=9, budget=budget)

    assert fresh().replay(log).fingerprint() == s.fingerprint()
    obeyed = fresh().follow(log, obey=True)
    assert obeyed.state.sufficed == s.state.sufficed == {}
    cut = log.index(enough[0]) + 1
    half = fresh().replay(log[:cut])
    assert half.state.sufficed
    assert Scheduler.restore(half.snapshot()).follow(log[cut:]).fingerprint() == s.fingerprint()
    exits = {exit.item: exit for event in log for exit in getattr(event, "exits", ())}
    for event in enough:
        exit = exits[event.item]
        assert (exit.verdict.label, exit.reason) == ("illegal", ExitReason.LEAVE_ON)
        assert exit.slot == event.slot
    recorded = Recorded.of(fresh(), log)
    assert rerun(recorded, Plan()).exits == recorded.exits


def test_nobody_else_gets_it_and_labels_in_flight_are_not_waited_for() -> None:
    s = Scheduler(PANEL, CLASSES, FixedOverlap(3), bounds=Bounds(3, 3, 0.999))
    s.arrive([Item("a", 9.0), Item("b", 9.0)])
    given = {(x.item, x.labeler) for x in s.assign(["ann", "bob"])}
    assert given == {("a", "ann"), ("b", "bob")}
    s.observe(Label("a", "ann", "illegal"))
    assert ("a", "cem") in [(x.item, x.labeler) for x in s.assign(["cem"])]
    s.suffice("a", "ann", "illegal")
    s.suffice("a", "cem", "ok")  # the first word counts
    s.observe(Label("b", "bob", "ok"))
    assert s.assign(["bob"]) == ()
    (gone,) = s.close()
    assert (gone.item, gone.verdict.label, gone.labels) == ("a", "illegal", 1)
    assert gone.verdict.confidence == pytest.approx(0.9)
    s.observe(Label("a", "cem", "ok"))  # late
    assert "a" not in s.state.departed.items


def test_its_confidence_is_that_of_its_class_and_gold_is_the_verdict() -> None:
    s = Scheduler(PANEL, CLASSES, FixedOverlap(3))
    s.arrive([Item("a", 9.0), Item("b", 9.0)])
    s.observe([Label(i, n, "ok") for i in "ab" for n in ("ann", "bob")])
    s.observe([Label(i, "cem", "illegal") for i in "ab"])
    before = s.posterior("a")["illegal"]
    for item in "ab":
        s.suffice(item, "cem", "illegal")
    s.gold("b", "ok")
    a, b = s.close()
    assert (a.verdict.label, a.verdict.confidence) == ("illegal", before)
    assert before < 0.1
    assert (b.verdict.label, b.verdict.confidence) == ("ok", 1.0)
    assert a.reason == b.reason == "leave_on"


def test_what_is_not_open_or_no_class_is_refused() -> None:
    s = Scheduler(PANEL, CLASSES, FixedOverlap(1))
    s.arrive(Item("a", 9.0))
    with pytest.raises(InputError, match="expected one of"):
        s.suffice("a", "ann", "good")
    s.suffice("a", "boss", "illegal")  # whose word it is need not be a labeler's: see gold
    s.withdraw("a")
    assert s.state.sufficed == {}
    with pytest.raises(InputError, match="outstanding"):
        s.suffice("a", "ann", "illegal")
