"""The confidence is a floor: nothing leaves below it while somebody may label it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marks import examples
from tests.unit.engine.test_live import POLICIES
from venire import (
    Bounds,
    FixedOverlap,
    Greedy,
    Item,
    Label,
    Labeler,
    LearnThenServe,
    LearnWhileServing,
    Policy,
    Scheduler,
    StateError,
)
from venire.events import Changed, Closed
from venire.model import Exit
from venire.scheduling.kernel.desk import HELD, OUTSTANDING, SHORT, SURE
from venire.server.store.log import decode, encode
from venire.server.store.records import EventRow

CLASSES = ("spam", "ok")
NAMES = ("ann", "bob", "cem", "dan", "eve")
PANEL = tuple(Labeler(name, 0.6 + 0.07 * k) for k, name in enumerate(NAMES))


def begin(policy: Policy, bounds: Bounds, **more: Any) -> Scheduler:
    return Scheduler(more.pop("panel", PANEL), CLASSES, policy, bounds=bounds, **more)


def left_who_may_label(s: Scheduler, item: Item, touched: set[str]) -> set[str]:
    """Who on the panel could still label an item, in plain words."""
    return {
        name
        for name in s.seated
        if name not in touched
        and name not in item.excluded
        and (item.eligible is None or name in item.eligible)
    }


class World:
    """A scheduler under whatever may happen, and a book of who has, or may not have, what."""

    def __init__(self, s: Scheduler, data: st.DataObject) -> None:
        self.s, self.data = s, data
        self.items: dict[str, Item] = {}
        self.touched: dict[str, set[str]] = {}

    def draw(self, *values: Any) -> Any:
        return self.data.draw(st.sampled_from(values))

    def step(self) -> None:
        verbs = (
            "arrive",
            "ask",
            "all",
            "tell",
            "tell",
            "release",
            "close",
            "close",
            "panel",
            "late",
        )
        getattr(self, f"_{self.draw(*verbs)}")()

    def _arrive(self) -> None:
        id = f"i{len(self.items)}"
        only = self.draw(None, None, frozenset({"ann"}), frozenset({"bob", "eve"}))
        item = Item(
            id, self.draw(0.01, 3.0, 30.0), only, self.draw(frozenset(), frozenset({"cem"}))
        )
        self.items[id], self.touched[id] = item, set()
        self.s.arrive(item)

    def _ask(self) -> None:
        for a in self.s.assign([self.draw(*NAMES)]):
            self.touched[a.item].add(a.labeler)

    def _all(self) -> None:
        for a in self.s.assign():
            self.touched[a.item].add(a.labeler)

    def _tell(self) -> None:
        if self.s.in_flight:
            item, labeler = self.draw(*self.s.in_flight)
            self.s.observe(Label(item, labeler, self.draw(*CLASSES)))

    def _release(self) -> None:
        if self.s.in_flight:
            item, labeler = self.draw(*self.s.in_flight)
            bar = self.draw(True, False)
            self.s.release(item, labeler, bar)
            if not bar:
                self.touched[item].discard(labeler)

    def _panel(self) -> None:
        who = self.draw(*PANEL)
        if who.id in self.s.seated:
            self.s.leave(who.id)
        else:
            self.s.join(Labeler(who.id, self.draw(who.competence, 0.6, 0.95)))

    def _late(self) -> None:
        if self.items:
            item, who = self.draw(*self.items), self.draw(*NAMES)
            try:
                self.s.observe(Label(item, who, self.draw(*CLASSES)))
                self.touched[item].add(who)
            except StateError:
                pass

    def _close(self) -> None:
        flying = {item for item, _ in self.s.in_flight}
        for e in self.s.close():
            self.check(e, flying)

    def check(self, e: Any, flying: set[str]) -> None:
        bounds = self.s.bounds
        floor = bounds.min_confidence or 0.0
        if e.verdict.confidence < floor:
            assert e.reason in ("undecided", "deadline")
        else:
            assert e.reason != "undecided"
        if e.reason == "undecided":
            full = bounds.max_labels is not None and e.labels >= bounds.max_labels
            left = left_who_may_label(self.s, self.items[e.item], self.touched[e.item])
            assert full or not left
            assert e.item not in flying
        if e.reason == "deadline":
            assert e.slot == e.arrival + (bounds.deadline or 0)


@examples(night=150, day=40)
@given(st.data(), st.sampled_from(POLICIES))
def test_nothing_leaves_below_the_floor_while_somebody_may_label_it(
    data: st.DataObject, policy: Policy
) -> None:
    most = data.draw(st.sampled_from([None, None, 2, 3]))
    bounds = Bounds(
        data.draw(st.integers(0, 2)),
        most,
        data.draw(st.sampled_from([0.7, 0.9, 0.99])),
        data.draw(st.sampled_from([None, None, 4])),
    )
    world = World(begin(policy, bounds), data)
    for _ in range(data.draw(st.integers(5, 40))):
        world.step()
        check_stands(world)
    middle = Scheduler.restore(world.s.snapshot())
    assert middle.fingerprint() == world.s.fingerprint()
    check_stands(World(middle, data))
    assert begin(policy, bounds).replay(world.s.log).fingerprint() == world.s.fingerprint()


def check_stands(world: World) -> None:
    """What is written on each row is what a plain look at it says."""
    bounded = world.s.state.bounded
    bounded.note()
    desk, bounds = bounded.desk, bounded.bounds
    wanted = bounds.min_confidence or 0.0
    for row in bounded.queue.outstanding().tolist():
        if row in bounded.retired:
            continue
        votes, pending, touched, k = [], [], set(), int(desk.rows["head"][row])
        while k >= 0:
            m, said = int(desk.touches["labeler"][k]), int(desk.touches["said"][k])
            touched.add(m)
            if said >= 0:
                votes.append((m, said))
            elif said == -1:
                pending.append(m)
            k = int(desk.touches["next"][k])
        now, best = plain_confidence(desk.votes, votes)
        then = plain_confidence(desk.votes, votes + [(m, best) for m in pending], best)[0]
        labels = len(votes) + len(pending)
        full = bounds.max_labels is not None and labels >= bounds.max_labels
        anybody = any(
            desk.panel["capacity"][m] > 0 and m not in touched and bounded.in_group(row, m)
            for m in range(len(desk.panel))
        )
        low = now < wanted and not full and anybody
        expected = SHORT * ((labels < bounds.min_labels and not full) or (low and then < wanted))
        expected |= HELD * low
        expected |= SURE * (now >= wanted and len(votes) >= max(1, bounds.min_labels))
        assert desk.rows["state"][row] == OUTSTANDING
        assert desk.rows["stand"][row] == expected


def plain_confidence(
    weights: Any, votes: list[tuple[int, int]], best: int | None = None
) -> tuple[float, int]:
    scores = [sum(float(weights[m, said, j]) for m, said in votes) for j in range(len(CLASSES))]
    if best is None:
        best = max(range(len(CLASSES)), key=lambda j: (scores[j], j))
    if not votes:
        return 0.0, best
    return 1.0 / sum(math.exp(x - scores[best]) for x in scores), best


@pytest.mark.parametrize("pulled", [True, False])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_everything_below_the_floor_gets_labels_until_it_is_sure_or_nobody_is_left(
    policy: Policy, pulled: bool
) -> None:
    s = begin(policy, Bounds(min_confidence=0.96))
    s.arrive([Item(f"i{k}", weight=0.01) for k in range(6)])  # no policy wants many of these
    said = {(f"i{k}", name): CLASSES[(k * j) % 2] for k in range(6) for j, name in enumerate(NAMES)}
    left: list[Exit] = []
    for _ in range(100):
        work = [a for m in NAMES for a in s.assign([m])] if pulled else s.assign()
        s.observe([Label(a.item, a.labeler, said[a.item, a.labeler]) for a in work])
        left += s.close()
        if not s.outstanding:
            break
    assert len(left) == 6
    for e in left:
        if e.reason == "undecided":
            assert e.labels == len(NAMES)
        else:
            assert (e.reason, e.verdict.confidence >= 0.96) == ("confident", True)
    undecided = {e.item for e in left if e.reason == "undecided"}
    assert {"i1", "i3"} <= undecided <= {"i1", "i3", "i5"}  # of the others all say the same


def test_labels_in_flight_that_can_be_enough_are_waited_for() -> None:
    s = begin(FixedOverlap(1), Bounds(min_confidence=0.8))
    s.arrive(Item("a", 1.0))
    assert [a.labeler for a in s.assign(["eve"])] == ["eve"]  # 0.88, if it confirms
    assert s.assign(["dan"]) == ()
    s.release("a", "eve", bar=True)
    assert [a.labeler for a in s.assign(["ann"])] == ["ann"]  # 0.6: not enough, whatever it says
    assert [a.labeler for a in s.assign(["dan"])] == ["dan"]
    assert s.assign(["cem"]) == ()
    assert s.close() == ()


def test_who_leaves_is_not_waited_for_and_who_comes_is() -> None:
    s = begin(FixedOverlap(1), Bounds(min_confidence=0.99))
    s.arrive([Item("a", 1.0)])
    for name in NAMES[1:]:
        s.leave(name)
    s.observe(Label("a", "ann", "ok"))
    s.join("eve")
    assert s.close() == ()
    assert [a.labeler for a in s.assign()] == ["eve"]
    s.release("a", "eve")
    s.leave("eve")
    assert [(e.reason, e.labels) for e in s.close()] == [("undecided", 1)]


def test_beliefs_that_change_decide_anew() -> None:
    s = begin(Greedy(), Bounds(min_confidence=0.9))
    s.arrive([Item("a", 50.0), Item("b", 50.0, eligible=frozenset({"ann", "eve"}))])
    s.observe([Label("a", "ann", "ok"), Label("b", "eve", "ok"), Label("b", "ann", "ok")])
    assert s.outstanding == ("a", "b")
    for name, now in (("ann", 0.95), ("eve", 0.55)):
        s.leave(name)
        s.join(Labeler(name, now))
    s.assign(["bob"])  # is not waited for: a is sure
    assert [(e.item, e.reason) for e in s.close()] == [("a", "confident"), ("b", "confident")]

    s = begin(Greedy(), Bounds(min_confidence=0.85))
    s.arrive(Item("a", 50.0))
    s.observe(Label("a", "eve", "ok"))  # sure, and about to leave
    assert s.assign() == ()
    s.leave("eve")
    s.join(Labeler("eve", 0.6))
    assert s.close() == ()
    assert len(s.assign()) == 4


def test_what_is_learned_decides_anew() -> None:
    s = Scheduler(
        NAMES, CLASSES, FixedOverlap(2), LearnWhileServing(), bounds=Bounds(min_confidence=0.9)
    )
    left: list[Exit] = []
    for slot in range(60):
        s.arrive(Item(f"i{slot}", 5.0))
        work = [a for _ in range(3) for name in NAMES for a in s.assign([name])]
        s.observe([Label(a.item, a.labeler, CLASSES[int(a.item[1:]) % 2]) for a in work])
        left += s.close()
    assert {e.reason for e in left} == {"confident"}
    assert min(e.verdict.confidence for e in left) >= 0.9


def test_a_learning_phase_keeps_the_floor_too() -> None:
    bounds = Bounds(min_confidence=0.9)
    s = Scheduler(NAMES, CLASSES, Greedy(), LearnThenServe(3), bounds=bounds)
    s.arrive([Item(f"i{k}", 20.0) for k in range(3)])
    work = s.assign()
    assert len(work) == 5  # one item for all
    for a in work[:-1]:
        s.observe(Label(a.item, a.labeler, "ok"))
    assert s.close() == ()  # nobody is known to be good: it waits for the last label
    s.observe(Label(work[-1].item, work[-1].labeler, "ok"))
    assert [e.reason for e in s.close()] == ["learning"]
    assert len(s.outstanding) == 2  # not dropped: somebody may still label them


def test_a_floor_that_is_none_lets_go_as_it_once_did() -> None:
    s = begin(FixedOverlap(1), Bounds(min_confidence=0.99, floor=False))
    s.arrive(Item("a", 1.0))
    s.observe(Label("a", "ann", "ok"))
    assert [(e.reason, e.labels) for e in s.close()] == [("overlap", 1)]


def test_bounds_of_older_logs_and_snapshots_are_what_they_were() -> None:
    old = Bounds(2, 5, 0.9, None, floor=False)
    row = EventRow(
        stream="posts",
        n=0,
        size=1,
        slot=0,
        at=0.0,
        kind="changed",
        body="[null,null,[2,5,0.9,null,false],null]",
    )
    assert decode([row]) == [Changed(0, bounds=old)]
    for bounds in (old, Bounds(2, 5, 0.9)):
        assert decode(encode("posts", 0, 0.0, [Changed(0, bounds=bounds)])) == [
            Changed(0, bounds=bounds)
        ]
    assert Bounds(floor=False) == Bounds()
    s = begin(Greedy(), Bounds(min_confidence=0.9))
    kept = s.capture()
    del kept.head["bounds"]["floor"]
    assert not Scheduler.restore(kept.pack()).bounds.floor
    assert Scheduler.restore(s.snapshot()).bounds.floor


def test_taking_the_floor_away_lets_go() -> None:
    s = begin(FixedOverlap(1), Bounds(min_confidence=0.99))
    s.arrive(Item("a", 1.0))
    s.observe(Label("a", "ann", "ok"))
    assert s.close() == ()
    s.change(bounds=Bounds())
    assert [e.reason for e in s.close()] == ["overlap"]


def test_more_labels_allowed_than_before_opens_what_was_full() -> None:
    s = begin(FixedOverlap(1), Bounds(max_labels=1, min_confidence=0.99))
    s.arrive(Item("a", 1.0))
    s.observe(Label("a", "ann", "ok"))
    s.change(bounds=Bounds(max_labels=2, min_confidence=0.99))
    assert s.close() == ()
    s.change(bounds=Bounds(max_labels=1, min_confidence=0.99))
    assert [(e.reason, e.labels) for e in s.close()] == [("undecided", 1)]


def test_asking_in_vain_does_not_look_at_the_same_items_again() -> None:
    s = begin(FixedOverlap(1), Bounds(min_confidence=0.999))
    s.arrive([Item(f"i{k}", 1.0) for k in range(300)])
    s.observe([Label(f"i{k}", name, "ok") for k in range(300) for name in ("ann", "bob")])
    assert s.assign(["ann"]) == ()
    cursors = s.state.bounded.cursors
    assert cursors[0] == 300
    (given,) = s.assign(["eve"])
    s.observe(Label(given.item, "eve", "spam"))
    assert s.assign(["ann"]) == ()
    assert cursors[0] == 300  # nothing of that was for ann
    s.arrive(Item("new", 1.0))
    assert [a.item for a in s.assign(["ann"])] == ["new"]


def test_reading_a_verdict_changes_nothing() -> None:
    s = begin(Greedy(), Bounds())
    s.arrive(Item("a", 8.0))
    s.observe(Label("a", "ann", "ok"))
    before = s.fingerprint()
    s.verdict("a"), s.posterior("a")
    assert s.fingerprint() == before


def test_every_exit_of_a_log_with_a_floor_is_written_and_read() -> None:
    s = begin(FixedOverlap(1), Bounds(max_labels=1, min_confidence=0.99))
    s.arrive(Item("a", 1.0))
    s.observe(Label("a", "ann", "ok"))
    s.close()
    (closed,) = [e for e in decode(encode("posts", 0, 0.0, s.log)) if isinstance(e, Closed)]
    assert [e.reason for e in closed.exits] == ["undecided"]
