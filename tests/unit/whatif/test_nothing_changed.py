"""A recorded stream, run again with nothing changed, gives the recorded verdicts, to the bit.

The plain reference is the log itself: streams of any settings, driven as servers drive them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.marks import examples
from venire import (
    Bounds,
    Budget,
    Exit,
    FixedOverlap,
    Greedy,
    Item,
    Label,
    Labeler,
    LearnWhileServing,
    Plan,
    Realised,
    Recorded,
    Scheduler,
    Verdict,
    what_if,
)
from venire.events import Closed, Observed
from venire.whatif import rerun

CLASSES = ["keep", "remove"]
PEOPLE = ["ann", "bob", "cem", "dot"]
LATE = ["eve", "fay"]
VOICE = "student at .9"

worlds = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**20),
        "policy": st.sampled_from([Realised(), Greedy(), FixedOverlap(2)]),
        "learning": st.sampled_from([None, LearnWhileServing(longest=12)]),
        "costs": st.sampled_from([None, {("remove", "keep"): 20.0}]),
        "families": st.sampled_from([None, {"ann": "x", "bob": "x", "eve": "x"}]),
        "bounds": st.builds(
            Bounds,
            min_labels=st.integers(0, 2),
            max_labels=st.sampled_from([None, 3]),
            min_confidence=st.sampled_from([None, 0.9, 0.97]),
            deadline=st.sampled_from([None, 9]),
            floor=st.booleans(),
        ),
        "budget": st.sampled_from([None, Budget(labels=40, slots=30), Budget(money=9, slots=20)]),
        "revisions": st.sampled_from([0, 15]),
        "remember": st.sampled_from([None, 10]),
        "late": st.booleans(),
        "gold": st.booleans(),
        "pauses": st.booleans(),
        "student": st.booleans(),
        "spent": st.booleans(),
    }
)


class Driven:
    """A stream in which all happens that can happen, by chance."""

    def __init__(self, world: dict[str, Any], slots: int = 30) -> None:
        self.world, self.rng = world, np.random.default_rng(world["seed"])
        names = (
            "policy",
            "learning",
            "costs",
            "families",
            "bounds",
            "budget",
            "revisions",
            "remember",
        )
        panel = [Labeler(name, 0.8, capacity=2, price=0.1) for name in PEOPLE]
        self.start, self.s = (
            Scheduler(panel, CLASSES, **{name: world[name] for name in names}) for _ in range(2)
        )
        self.held: list[tuple[int, str, str]] = []
        self.away: set[str] = set()
        for t in range(slots):
            self.slot(t)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def slot(self, t: int) -> None:
        s, world = self.s, self.world
        if world["late"] and t in (5, 9):
            s.join(Labeler(LATE[t == 9], 0.8, price=0.2))
        if world["student"] and t == 8:
            s.join(Labeler(VOICE, 0.85))
            s.leave(VOICE)
        if world["spent"] and t in (18, 22):
            s.change(bounds=Bounds(spent=t == 18), costs={("keep", "remove"): 3.0})
        if t < 22:
            ids = [f"i{t}-{n}" for n in range(int(self.rng.integers(0, 3)))]
            s.arrive([Item(i, float(self.rng.uniform(2, 20))) for i in ids])
        if self.chance(0.1) and s.outstanding:
            s.withdraw(s.outstanding[-1])
        self.come_and_go()
        if not (world["pauses"] and 10 <= t < 14):
            self.visits()
        self.answers(t)
        if world["student"] and t >= 8:
            self.hand_in()
        if world["gold"]:
            self.give_gold()
        if world["pauses"] and t == 13:
            s.advance(s.slot + int(self.rng.choice([1, 40, 1500])))
        s.close()

    def come_and_go(self) -> None:
        for name in PEOPLE[2:]:
            if self.chance(0.05):
                if name in self.away:
                    self.s.join(Labeler(name, price=0.1))
                else:
                    self.s.leave(name)
                self.away ^= {name}

    def visits(self) -> None:
        known = [who.id for who in self.s.panel if who.id != VOICE]
        if self.chance(0.3):
            work = self.s.assign()
        else:
            asked = [name for name in known if self.chance(0.6)]
            work = self.s.assign(asked, ahead=int(self.rng.integers(0, 2)))
        for a in work:
            self.held.append((int(self.rng.integers(0, 3)), a.item, a.labeler))

    def answers(self, t: int) -> None:
        """Labels in flight come, later or never; some after their lease has ended."""
        still = []
        for wait, item, labeler in self.held:
            if wait:
                still.append((wait - 1, item, labeler))
            elif item not in self.s.outstanding:
                if item in self.s.state.registry.left and self.chance(0.5):
                    self.label(item, labeler)
            elif self.chance(0.15):
                self.s.release(item, labeler, bar=self.chance(0.3))
            elif self.chance(0.1):
                self.s.release(item, labeler)
                self.label(item, labeler)
            else:
                self.label(item, labeler)
        self.held = still

    def label(self, item: str, labeler: str) -> None:
        said = CLASSES[self.chance(0.3)]
        self.s.observe(Label(item, labeler, said))

    def hand_in(self) -> None:
        for item in self.s.outstanding:
            if self.chance(0.3):
                held = [e.label for e in self.s.log if isinstance(e, Observed)]
                if not any(x.item == item and x.labeler == VOICE for x in held):
                    self.label(item, VOICE)

    def give_gold(self) -> None:
        if self.s.outstanding and self.chance(0.1):
            item = self.s.outstanding[0]
            known = self.s.state.gold.get(item)
            if known is None:
                self.s.gold(item, "keep")
            elif CLASSES[known] == "keep":
                self.s.gold(item, "remove", corrects="keep")
        left = list(self.s.state.registry.left)
        if left and self.chance(0.2):
            exits = {e.item: e for x in self.s.log if hasattr(x, "exits") for e in x.exits}
            if left[0] in exits:
                self.s.gold(left[0], "remove", exits[left[0]].verdict, exits[left[0]].labels)


@given(worlds)
@examples(night=100, day=20)
def test_with_nothing_changed_the_verdicts_are_those_of_the_log(world: dict[str, Any]) -> None:
    driven = Driven(world)
    recorded = Recorded.of(driven.start, driven.s.log)
    again = rerun(recorded, Plan())
    assert again.exits == recorded.exits
    assert again.labels == recorded.labelled_by
    assert (again.departed, again.missing, again.gold_moved) == (None, {}, 0)


def test_streams_of_this_test_have_verdicts_labels_gold_and_releases() -> None:
    """Lest the property above be about nothing."""
    world: dict[str, Any] = {
        "seed": 1,
        "policy": Realised(),
        "learning": LearnWhileServing(longest=12),
        "costs": {("remove", "keep"): 20.0},
        "families": {"ann": "x", "bob": "x", "eve": "x"},
        "bounds": Bounds(min_confidence=0.97),
        "budget": None,
        "revisions": 15,
        "remember": None,
    } | dict.fromkeys(["late", "gold", "pauses", "student", "spent"], True)
    driven = Driven(world)
    kinds = {type(event).__name__ for event in driven.s.log}
    assert kinds >= {
        "Arrived",
        "Assigned",
        "Observed",
        "Released",
        "Joined",
        "Left",
        "Closed",
        "Withdrawn",
        "GoldGiven",
        "Changed",
    }
    recorded = Recorded.of(driven.start, driven.s.log)
    assert len(recorded.exits) > 15
    assert {VOICE, *LATE, *PEOPLE} == {labeler for _, labeler in recorded.said}
    found = what_if(recorded, Plan())
    assert found.repeated == found.recorded == len(recorded.exits)
    assert (
        found.notes[0]
        == f"with nothing changed it repeats {found.repeated} of {found.repeated} verdicts"
    )
    assert all(paired.change.value == 0 for paired in found.measures.values())


@given(
    worlds,
    st.builds(
        Plan,
        policy=st.sampled_from([None, "fixed-overlap:1", "realised"]),
        without=st.sampled_from([frozenset(), frozenset({"ann"})]),
        budget=st.sampled_from([None, Budget(labels=20)]),
        min_confidence=st.sampled_from([None, 0.8]),
        max_labels=st.sampled_from([None, 2]),
    ),
)
@examples(night=100, day=20)
def test_whatever_is_changed_only_labels_of_the_log_are_had(
    world: dict[str, Any], plan: Plan
) -> None:
    driven = Driven(world)
    recorded = Recorded.of(driven.start, driven.s.log)
    again = rerun(recorded, plan)
    pairs = [(item, name) for item, names in again.labels.items() for name in names]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) <= set(recorded.said)
    assert plan.without.isdisjoint(name for _, name in pairs)
    if plan.budget is not None:
        free = sum(name == VOICE for _, name in pairs)
        assert len(pairs) - free <= 20
    for item, exit in again.exits.items():
        assert exit.labels <= len(again.labels.get(item, []))


@given(worlds)
@examples(night=20, day=5)
def test_a_plan_that_says_what_was_departs_nowhere(world: dict[str, Any]) -> None:
    driven = Driven(world | {"policy": Realised()})
    recorded = Recorded.of(driven.start, driven.s.log)
    again = rerun(recorded, Plan(policy="realised"))
    assert (again.departed, again.exits) == (None, recorded.exits)


def moderated(items: int = 160) -> tuple[Recorded, dict[str, str]]:
    """Two models, and four people who came late; an error of one kind is 20 times as dear."""
    rng = np.random.default_rng(0)
    skills = {"m1": 0.93, "m2": 0.9, "ann": 0.97, "bob": 0.95, "cem": 0.96, "dot": 0.94}
    start, s = (
        Scheduler(
            [Labeler("m1", capacity=50), Labeler("m2", capacity=50)],
            CLASSES,
            learning=LearnWhileServing(),
            bounds=Bounds(min_confidence=0.97),
            costs={("remove", "keep"): 20.0},
        )
        for _ in range(2)
    )
    truth: dict[str, str] = {}

    def answer(work: tuple[Any, ...]) -> None:
        for a in work:
            right = rng.random() < skills[a.labeler]
            other = CLASSES[truth[a.item] == "keep"]
            s.observe(Label(a.item, a.labeler, truth[a.item] if right else other))

    for t in range(items // 2 + 30):
        if t == 30:
            for name in PEOPLE:
                s.join(name)
        if t < items // 2:
            ids = [f"i{t}-{n}" for n in range(2)]
            truth |= {i: CLASSES[int(rng.random() < 0.03)] for i in ids}
            s.arrive([Item(i, 20) for i in ids])
        for name in ["m1", "m1", "m1", "m2", "m2", "m2", *(PEOPLE if t >= 30 else [])]:
            answer(s.assign([name]))
        s.close()
    return Recorded.of(start, s.log), truth


def test_next_to_no_change_changes_next_to_nothing() -> None:
    """What a replay with nothing changed once called wrong nearly everywhere."""
    recorded, truth = moderated()
    for plan in (Plan(), Plan(min_confidence=0.9699), Plan(min_confidence=0.9701)):
        right = what_if(recorded, plan, truth=truth).measures["right"]
        assert abs(right.change.value) < 0.02


def test_it_says_which_labels_it_lacked_and_what_hangs_on_them() -> None:
    recorded, truth = moderated()
    found = what_if(recorded, Plan(without=frozenset({"m1"})), truth=truth)
    assert found.repeated == found.recorded
    assert found.held < 1
    assert found.turned_hanging <= min(found.turned, found.hanging)
    [said] = [note for note in found.notes if "are not in the log" in note]
    assert f"{found.hanging * 100:.1f} % of the verdicts lack them" in said
    assert "it does as the log says up to slot 0 of" in found.notes[1]
    later = what_if(recorded, Plan(min_confidence=0.9))
    assert later.notes[0] == found.notes[0]


def test_a_log_that_another_version_wrote_is_taken_as_it_is() -> None:
    """Verdicts that this version decides otherwise are counted, and no effect of the plan."""
    recorded, _ = moderated()
    other = [
        replace(event, exits=tuple(_turned(exit, n) for n, exit in enumerate(event.exits)))
        if isinstance(event, Closed)
        else event
        for event in recorded.log
    ]
    found = what_if(Recorded.of(recorded.start, other), Plan())
    assert 0 < found.repeated < found.recorded
    assert found.turned == 0
    assert "another version of venire decided the others" in found.notes[0]


def _turned(exit: Exit, n: int) -> Exit:
    verdict = Verdict("keep", 0.5) if n % 2 else exit.verdict
    return replace(exit, verdict=verdict)
