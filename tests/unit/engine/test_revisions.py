"""Verdicts of items that have left are looked at again when beliefs change, and never silently."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.format import dtype_to_descr

from tests.marks import examples
from venire import (
    Algorithm2,
    FixedOverlap,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    LearnThenServe,
    LearnWhileServing,
    ReplayError,
    Revision,
    Scheduler,
    Verdict,
)
from venire.engine.registry import Departed, Kept
from venire.events import Closed, Event
from venire.model import Exit, ExitReason
from venire.scheduling.base import Belief
from venire.scheduling.kernel.verdicts import decide_apart
from venire.server.store.log import decode, encode

NAMES = ("ann", "bob", "cem", "dan", "eve")
CLASSES = ("spam", "ok", "odd")


def begin(revisions: int = 5, **more: Any) -> Scheduler:
    learning = more.pop("learning", LearnWhileServing(longest=3))
    return Scheduler(
        NAMES, CLASSES, FixedOverlap(2), learning, revisions=revisions, remember=8, **more
    )


def plain_verdict(belief: Belief, votes: list[tuple[int, int]]) -> tuple[int, float, bool]:
    """The rule that decides an item, in plain words; whether it is a tie, but for rounding."""
    if not votes:
        return -1, 0.0, False
    weights = belief.votes(len(CLASSES))
    prior = belief.prior if belief.prior is not None else np.ones(len(CLASSES))
    share = np.clip(prior, 1e-6, 1.0)
    scores = np.log(share / share.sum()) + sum(weights[m, said] for m, said in votes)
    odds = np.exp(scores - scores.max())
    tie = bool(np.sort(scores)[-1] - np.sort(scores)[-2] < 1e-6)
    return int(scores.argmax()), float(odds.max() / odds.sum()), tie


class World:
    """A stream at random, and a book of what was said, and published, of what left last."""

    def __init__(self, s: Scheduler, data: st.DataObject) -> None:
        self.s, self.data = s, data
        self.said: dict[str, dict[str, str]] = {}
        self.published: dict[str, Verdict] = {}
        self.last: list[str] = []

    def draw(self, *values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def tell(self, item: str, labeler: str) -> None:
        said = self.draw(*CLASSES)
        self.s.observe(Label(item, labeler, said))
        self.said[item].setdefault(labeler, said)

    def step(self) -> None:
        s = self.s
        match self.draw("arrive", "arrive", "work", "work", "late", "join", "close", "close"):
            case "arrive":
                item = f"i{len(self.said)}"
                self.said[item] = {}
                s.arrive(Item(item, 5.0))
            case "work":
                for a in s.assign([self.draw(*NAMES)]):
                    self.tell(a.item, a.labeler)
            case "late" if self.last:
                item, labeler = self.draw(*self.last[-5:]), self.draw(*NAMES)
                if labeler not in self.said[item]:
                    self.tell(item, labeler)
            case "join" if len(s.panel) < 7:
                s.join(Labeler(f"new {len(s.panel)}", self.draw(None, 0.55, 0.95)))
            case "close":
                self.close()

    def close(self) -> None:
        refreshed = self.s.learning.next_refresh(self.s.slot) == self.s.slot  # type: ignore[union-attr]
        self.s.close()
        event = self.s.log[-1]
        assert isinstance(event, Closed)
        for exit in event.exits:
            self.published[exit.item] = exit.verdict
            self.last.append(exit.item)
        self.check(event, refreshed)

    def check(self, event: Closed, refreshed: bool) -> None:
        belief, number = self.s.state.queue.belief, self.s.state.registry.number
        assert belief is not None
        found = {r.item: r for r in event.revisions}
        assert refreshed or not found
        for item in self.last[-self.s.revisions :] if self.s.revisions else ():
            votes = [(number[m], CLASSES.index(said)) for m, said in self.said[item].items()]
            code, sure, tie = plain_verdict(belief, votes)
            label = CLASSES[code] if code >= 0 else None
            if refreshed and label != self.published[item].label and not tie:
                revision = found.pop(item)
                assert revision.before == self.published[item]
                assert revision.verdict.label == label
                assert revision.verdict.confidence == pytest.approx(sure, abs=1e-6)
                assert revision.labels == len(votes)
                self.published[item] = revision.verdict
            elif tie and item in found:
                self.published[item] = found.pop(item).verdict
            assert self.s.verdict(item) == self.published[item]
        assert not found, "an item was revised that is not among the last that left"


@examples(night=100, day=30)
@given(st.data())
def test_what_is_published_is_what_the_labels_say_by_now(data: st.DataObject) -> None:
    world = World(begin(data.draw(st.sampled_from([0, 2, 5]))), data)
    for _ in range(data.draw(st.integers(5, 50))):
        world.step()
    s = world.s
    assert decode(encode("posts", 0, 0.0, s.log)) == s.log
    again = begin(s.revisions).replay(decode(encode("posts", 0, 0.0, s.log)))
    again.advance(s.slot)
    assert again.fingerprint() == s.fingerprint()
    restored = Scheduler.restore(s.snapshot())
    assert restored.fingerprint() == s.fingerprint()
    n = len(s.log)
    for _ in range(5):
        world.step()
    restored.follow(s.log[n:])
    restored.advance(s.slot)
    assert restored.fingerprint() == s.fingerprint()


def turned() -> Scheduler:
    """Three who always agree, and one who says otherwise; of i0 there is one label of each kind."""
    s = Scheduler(
        ("ann", "bob", "cem", "odd"),
        ("spam", "ok"),
        FixedOverlap(1),
        Algorithm2(1),
        revisions=100,
    )
    s.arrive([Item(f"i{k}", 5.0) for k in range(20)])
    s.observe([Label("i0", "odd", "ok"), Label("i0", "ann", "spam")])
    for k in range(1, 20):
        truth = "spam" if k % 2 else "ok"
        s.observe([Label(f"i{k}", name, truth) for name in ("ann", "bob", "cem")])
        s.observe(Label(f"i{k}", "odd", "ok" if k % 2 else "spam"))
    return s


def test_who_turns_out_to_be_wrong_always_takes_its_verdicts_back() -> None:
    s = turned()
    exits = {e.item: e for e in s.close()}
    assert exits["i0"].verdict == Verdict("ok", 0.5)  # a tie of votes goes to the later class
    (closed,) = [e for e in s.log if isinstance(e, Closed)]
    (revision,) = closed.revisions
    assert (revision.item, revision.slot, revision.labels) == ("i0", 0, 2)
    assert revision.before == exits["i0"].verdict
    assert revision.verdict.label == "spam"
    assert s.verdict("i0") == revision.verdict
    assert closed.exits[0].verdict == Verdict("ok", 0.5), "the exit stays what it was"


def test_off_by_default_and_nothing_is_kept() -> None:
    s = Scheduler([Labeler("ann", 0.9)], CLASSES, Greedy())
    s.arrive(Item("a", 0.001))
    s.observe(Label("a", "ann", "ok"))
    s.close()
    assert (s.revisions, s.state.departed.items) == (0, {})
    with pytest.raises(InputError, match="not outstanding"):
        s.verdict("a")


def test_it_can_be_switched_on_and_off_and_the_log_says_so() -> None:
    s = begin(0)
    for number in range(3):
        s.change(revisions=[0, 2, 1][number])
        s.arrive([Item(f"{number}-{k}", 1.0) for k in range(3)])
        s.observe([Label(f"{number}-{k}", m, "ok") for k in range(3) for m in NAMES[:2]])
        s.close()
    assert list(s.state.departed.items) == ["2-2"]
    assert begin(0).replay(s.log).fingerprint() == s.fingerprint()
    assert Scheduler.restore(s.snapshot()).revisions == 1


@pytest.mark.parametrize("bad", [-1, 1.5, True])
def test_a_number_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="got revisions="):
        begin(bad)


def packed(s: Scheduler, number: int) -> bytes:
    """A snapshot as it was before the third format, with everything in its first line."""
    head, roll, departed, heard, arrays = s.capture()
    if number == 1:
        del head["revisions"]
    else:
        head["departed"] = departed.state()
    shapes = [[name, dtype_to_descr(a.dtype), list(a.shape)] for name, a in arrays.items()]
    head |= {"roll": roll.state(), "heard": list(heard), "arrays": shapes}
    body = b"".join(a.tobytes() for a in arrays.values())
    return b"venire-%d\n" % number + zlib.compress(json.dumps(head).encode() + b"\n" + body)


@pytest.mark.parametrize("number", [1, 2])
def test_snapshots_of_earlier_formats_are_read(number: int) -> None:
    s = begin(0 if number == 1 else 2)
    one, other = frozenset(NAMES[:1]), frozenset(NAMES[1:2])
    s.arrive([Item("a", 1.0), Item("b", 5.0, eligible=one), Item("c", excluded=other)])
    s.observe([Label("a", name, "ok") for name in NAMES[:2]])
    s.close()
    s.arrive([Item(f"more-{n}") for n in range(5)])
    assert Scheduler.restore(packed(s, number)).fingerprint() == s.fingerprint()


def test_a_late_label_counts_once() -> None:
    kept = Departed(1)
    kept.add("a", Kept((0,), (1,), 1, 0.9))
    kept.late("a", 0, 0)
    kept.late("a", 2, 0)
    kept.late("gone", 2, 0)
    assert kept.items == {"a": Kept((2, 0), (0, 1), 1, 0.9)}


@settings(max_examples=50, deadline=None)
@given(st.data(), st.booleans())
def test_apart_from_a_desk_is_decided_as_on_it_to_the_bit(data: st.DataObject, known: bool) -> None:
    panel = [Labeler(name, data.draw(st.floats(0.4, 0.99))) for name in NAMES]
    learning = None if known else LearnThenServe(9)
    s = Scheduler(panel, CLASSES, Greedy(), learning)
    s.arrive([Item(f"i{k}", 50.0) for k in range(4)])
    pairs = st.tuples(st.integers(0, 3), st.sampled_from(NAMES), st.sampled_from(CLASSES))
    for k, name, word in data.draw(st.lists(pairs, max_size=15, unique_by=lambda p: p[:2])):
        s.observe(Label(f"i{k}", name, word))
    labels = [s.state.queue.labels_of(row) for row in range(4)]
    start = np.cumsum([0, *(len(said) for _, said in labels)])
    who, said = (np.array([x for pair in labels for x in pair[j]], np.int64) for j in (0, 1))
    found, sure = decide_apart(s.state.queue.belief, len(CLASSES), start, who, said)
    for row in range(4):
        assert (int(found[row]), float(sure[row])) == s.state.queue.decide(row)


def test_a_closed_slot_without_revisions_is_written_as_it_always_was() -> None:
    exit = Exit("a", 0, 3, 1, Verdict("ok", 0.9), ExitReason.NO_GAIN)
    (row,) = encode("posts", 0, 0.0, [Closed(3, (exit,))])
    assert row.body == '[["a",0,3,1,"ok",0.9,"no_gain"]]'
    both = Closed(3, (exit,), (Revision("b", 3, Verdict(None, 0.0), Verdict("ok", 0.6), 2),))
    assert decode(encode("posts", 0, 0.0, [both])) == [both]


def test_revisions_of_another_version_of_the_engine_are_taken_from_its_log() -> None:
    one = begin(50)
    for n in range(12):
        one.arrive(Item(f"i{n}", 5.0))
        for a in [*one.assign(NAMES[:2]), *one.assign(NAMES[2:])]:
            said = "spam" if a.labeler in ("ann", "bob", "cem") else CLASSES[n % 3]
            one.observe(Label(a.item, a.labeler, said))
        one.close()
    closed = [event for event in one.log if isinstance(event, Closed)]
    assert any(event.exits for event in closed)
    left = next(exit for event in closed for exit in event.exits)
    other = "odd" if left.verdict.label != "odd" else "ok"
    last = closed[-1]
    told = Revision(left.item, last.slot, left.verdict, Verdict(other, 0.75), left.labels)
    log = [replace(e, revisions=(told,)) if e is last else replace_none(e) for e in one.log]
    obeys = begin(50).follow(log, obey=True)
    assert obeys.log == log
    assert obeys.verdict(left.item) == Verdict(other, 0.75)
    with pytest.raises(ReplayError):
        begin(50).replay(log)


def replace_none(event: Event) -> Event:
    """The same without revisions."""
    return replace(event, revisions=()) if isinstance(event, Closed) else event
