"""What another plan would have bought, against streams where that is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.whatif.streams import SKILLS, labels_of, panel, run
from venire import (
    Bounds,
    Budget,
    FixedOverlap,
    InputError,
    Item,
    Label,
    Labeler,
    LearnWhileServing,
    Plan,
    Recorded,
    Scheduler,
    what_if,
)
from venire.scheduling.by_name import policy_named
from venire.whatif import rerun

#: Plans that draw nothing at random, so that a run on a complete log can be made directly too.
POLICIES = ["fixed-overlap:3", "realised", "greedy"]


def right_of(s: Scheduler, truth: np.ndarray, log: list) -> tuple[float, float]:  # type: ignore[type-arg]
    """The share of right exits, and labels per item, of a direct run."""
    exits = [e for event in log if hasattr(event, "exits") for e in event.exits]
    right = [e.verdict.label == truth[int(e.item[1:])] for e in exits]
    return float(np.mean(right)), float(np.mean([e.labels for e in exits]))


@pytest.mark.parametrize("policy", POLICIES)
def test_on_a_complete_log_a_replay_is_the_run_itself(policy: str) -> None:
    """Where everybody labelled everything, another policy is replayed to the label."""
    start, s, _ = run(120, seed=1)
    again = rerun(Recorded.of(start, s.log), Plan(policy=policy))
    _, direct, _ = run(120, seed=1, policy=policy_named(policy))
    exits = {e.item: e for event in direct.log if hasattr(event, "exits") for e in event.exits}
    assert {name: e.verdict for name, e in again.exits.items()} == {
        name: e.verdict for name, e in exits.items()
    }
    assert again.drawn == 0


@pytest.mark.parametrize("policy", ["fixed-overlap:1", "fixed-overlap:3"])
def test_the_answer_agrees_with_the_truth_within_its_standard_error(policy: str) -> None:
    """What the policy does on other streams of the same world is what the replay says."""
    other = []
    for seed in range(100, 110):
        _, direct, truth = run(400, seed, policy_named(policy))
        other.append(right_of(direct, truth, direct.log))
    right, labels = np.mean(other, axis=0)
    scores = []
    for seed in range(8):
        start, s, truth = run(300, seed)
        found = what_if(
            Recorded.of(start, s.log),
            Plan(policy=policy),
            truth={f"i{n}": int(k) for n, k in enumerate(truth)},
        )
        assert found.held == 1
        assert found.measures["labels"].would_be.value == pytest.approx(labels)
        would_be = found.measures["right"].would_be
        scores.append((would_be.value - right) / would_be.error)
    assert np.abs(scores).max() < 3.5
    assert 0.4 < np.sqrt(np.mean(np.square(scores))) < 1.8


def test_without_truth_the_expected_share_of_right_verdicts_is_near_the_true_one() -> None:
    start, s, truth = run(400, seed=5)
    recorded, plan = Recorded.of(start, s.log), Plan(policy="fixed-overlap:2")
    expected = what_if(recorded, plan).measures["right"]
    known = what_if(recorded, plan, truth={f"i{n}": int(k) for n, k in enumerate(truth)})
    true = known.measures["right"]
    assert not what_if(recorded, plan).measured
    assert known.measured
    assert abs(expected.change.value - true.change.value) < 3 * expected.change.error


def test_the_same_plan_changes_nothing() -> None:
    start, s, _ = run(100, seed=2, policy=policy_named("fixed-overlap:2"))
    found = what_if(Recorded.of(start, s.log), Plan())
    assert found.items == found.compared == found.left == 100
    for paired in found.measures.values():
        assert paired.change.value == pytest.approx(0.0)


def test_a_sparse_log_says_what_it_does_not_hold() -> None:
    start, s, _ = run(100, seed=2, policy=policy_named("fixed-overlap:2"))
    recorded = Recorded.of(start, s.log)
    more = what_if(recorded, Plan(policy="fixed-overlap:4"))
    assert more.measures["labels"].would_be.value == pytest.approx(2.0)
    assert more.ran_out == pytest.approx(1.0)
    drawn = what_if(recorded, Plan(policy="fixed-overlap:4"), simulate_missing=True)
    assert drawn.measures["labels"].would_be.value == pytest.approx(4.0)
    assert 0.2 <= drawn.held <= 0.6
    assert drawn.ran_out < 0.05


def test_who_is_left_out_labels_nothing() -> None:
    start, s, _ = run(60, seed=3)
    plan = Plan(without=frozenset({"ann", "eve"}))
    again = rerun(Recorded.of(start, s.log), plan)
    assert {name for names in again.labels.values() for name in names} == {"bob", "cem", "dot"}
    everyone = Plan(without=frozenset(SKILLS))
    with pytest.raises(InputError, match="nobody is left on the panel"):
        rerun(Recorded.of(start, s.log), everyone)
    with pytest.raises(InputError, match="unknown labeler 'anne': did you mean 'ann'"):
        rerun(Recorded.of(start, s.log), Plan(without=frozenset({"anne"})))


@given(st.integers(0, 150), st.sampled_from(["labels", "money"]))
@settings(max_examples=20, deadline=None)
def test_a_budget_is_never_exceeded(most: int, kind: str) -> None:
    start, s, _ = run(40, seed=4, price=0.5)
    budget = Budget(labels=most) if kind == "labels" else Budget(money=most * 0.5)
    again = rerun(Recorded.of(start, s.log), Plan(policy="fixed-overlap:3", budget=budget))
    given_labels = sum(len(names) for names in again.labels.values())
    assert given_labels == min(most, 120)


@given(
    st.integers(1, 5),
    st.sampled_from(["fixed-overlap:1", "fixed-overlap:4", "everyone", "random:2"]),
    st.sets(st.sampled_from(sorted(SKILLS)), max_size=3),
    st.integers(0, 1000),
)
@settings(max_examples=25, deadline=None)
def test_only_recorded_labels_are_bought_and_each_once(
    overlap: int, policy: str, without: set[str], seed: int
) -> None:
    start, s, _ = run(20, seed, policy_named(f"random:{overlap}", seed))
    recorded = Recorded.of(start, s.log)
    again = rerun(recorded, Plan(policy=policy, without=frozenset(without)), seed)
    pairs = [(item, name) for item, names in again.labels.items() for name in names]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) <= set(recorded.said)
    assert not without & {name for _, name in pairs}
    assert again.drawn == 0
    for item, exit in again.exits.items():
        assert exit.labels == len(again.labels.get(item, []))
        assert (exit.verdict.label is None) == (exit.labels == 0)


def test_money_is_counted_by_the_prices_of_the_labelers() -> None:
    start, s, _ = run(40, seed=4, price=0.5)
    found = what_if(Recorded.of(start, s.log), Plan(policy="fixed-overlap:3"))
    money = found.measures["money"]
    assert (money.was, money.would_be.value) == pytest.approx((2.5, 1.5))


def test_visits_and_delays_are_those_of_the_log() -> None:
    """Labelers who pull their work, and whose labels take time."""
    panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
    start, s = (Scheduler(panel, ["a", "b"], policy_named("everyone")) for _ in range(2))
    s.arrive([Item("x", 9), Item("y", 5)])
    for name in ("ann", "bob"):
        [work] = s.assign([name])
        s.advance(s.slot + 2)
        s.observe(Label(work.item, name, "a"))
        [more] = s.assign([name])
        s.observe(Label(more.item, name, "b"))
    s.advance(8)
    s.close()
    again = rerun(Recorded.of(start, s.log), Plan(policy="fixed-overlap:1"))
    assert again.visits == 4
    assert sum(map(len, again.labels.values())) == 2
    assert {e.slot for e in again.exits.values()} <= {2, 3, 4}


def test_items_that_were_withdrawn_are_withdrawn_again() -> None:
    start, s, _ = run(8, seed=0)
    s.arrive(Item("late", 5))
    s.withdraw("late")
    s.close()
    found = what_if(Recorded.of(start, s.log), Plan())
    assert (found.items, found.compared) == (9, 8)


def test_a_scheduler_that_has_begun_is_refused() -> None:
    _, s, _ = run(8, seed=0)
    with pytest.raises(InputError, match="before the first event of its log"):
        Recorded.of(s, s.log)


def test_a_log_without_labels_is_refused() -> None:
    start = Scheduler([Labeler("ann", 0.9)], ["a", "b"])
    with pytest.raises(InputError, match="the log holds no label"):
        what_if(Recorded.of(start, []), Plan())


def test_gold_is_given_again() -> None:
    """The same plan on a log with gold, before and after the exit, is what happened."""
    truth, said = labels_of(90, 3)
    start, s = (Scheduler(panel(), [0, 1], FixedOverlap(2), LearnWhileServing()) for _ in range(2))
    for first in range(0, 90, 3):
        s.arrive([Item(f"i{n}", weight=6) for n in range(first, first + 3)])
        s.gold(f"i{first}", int(truth[first]))
        s.observe([Label(a.item, a.labeler, said[a.item, a.labeler]) for a in s.assign()])
        s.close()
        if first >= 30:
            s.gold(f"i{first - 29}", int(truth[first - 29]))
    recorded = Recorded.of(start, s.log)
    again = rerun(recorded, Plan())
    known = {item: again.exits[item].verdict for item in recorded.exits if item in again.exits}
    assert known == {item: exit.verdict for item, exit in recorded.exits.items() if item in known}
    assert len(known) == len(recorded.exits)


def test_work_that_was_fetched_ahead_is_replayed_ahead() -> None:
    """A labeler of capacity 1 who held three items is visited as it was."""
    start, s = (Scheduler([Labeler("ann", 0.8)], ["a", "b"], FixedOverlap(1)) for _ in range(2))
    s.arrive([Item(f"i{n}") for n in range(6)])
    for _ in range(3):
        given = [work for _ in range(3) for work in s.assign(["ann"], ahead=2)]
        s.observe([Label(work.item, "ann", "a") for work in given])
        s.close()
    again = rerun(Recorded.of(start, s.log), Plan())
    assert len(again.exits) == 6
    assert {e.slot for e in again.exits.values()} == {0, 1}


@settings(max_examples=20, deadline=None)
@given(most=st.integers(1, 5), seed=st.integers(0, 20))
def test_no_item_has_more_labels_than_the_plan_allows(most: int, seed: int) -> None:
    start, s, _ = run(40, seed)
    again = rerun(Recorded.of(start, s.log), Plan(max_labels=most))
    assert {exit.labels for exit in again.exits.values()} == {most}
    assert all(len(labels) <= most for labels in again.labels.values())


@settings(max_examples=20, deadline=None)
@given(least=st.floats(0.5, 0.999), seed=st.integers(0, 20))
def test_an_item_leaves_when_its_verdict_is_as_sure_as_the_plan_wants(
    least: float, seed: int
) -> None:
    start, s, _ = run(40, seed)
    again = rerun(Recorded.of(start, s.log), Plan(min_confidence=least))
    for exit in again.exits.values():
        assert exit.verdict.confidence >= least or exit.labels == len(SKILLS)
    stricter = rerun(Recorded.of(start, s.log), Plan(min_confidence=min(1.0, least + 0.2)))
    labels = [sum(map(len, each.labels.values())) for each in (again, stricter)]
    assert labels[0] <= labels[1]


def test_a_plan_that_allows_fewer_labels_than_the_least_lowers_that_too() -> None:
    bounds = Bounds(min_labels=3, max_labels=5)
    assert Plan(max_labels=2).bounds(bounds) == Bounds(min_labels=2, max_labels=2)
    assert Plan().bounds(bounds) == bounds


def test_gold_teaches_from_when_its_item_leaves_and_is_not_scored() -> None:
    start, s, truth = run(200, seed=6, policy=policy_named("fixed-overlap:2"))
    recorded = Recorded.of(start, s.log)
    known = {f"i{n}": int(k) for n, k in enumerate(truth)}
    gold = {name: known[name] for name in list(known)[:150]}
    plan = Plan(learning="while-serving", gold=gold)
    again, without = rerun(recorded, plan), rerun(recorded, Plan(learning="while-serving"))
    first = next(iter(gold))
    assert again.exits[first] == without.exits[first]
    assert any(again.exits[name].verdict != exit.verdict for name, exit in without.exits.items())

    found = what_if(recorded, plan, truth=known)
    rest = [name for name in known if name not in gold]
    right = [again.exits[name].verdict.label == known[name] for name in rest]
    assert found.gold == 150
    assert found.measures["right"].would_be.value == pytest.approx(np.mean(right))
    assert any("150 gold labels teach" in note and "other 50 items" in note for note in found.notes)


def test_gold_that_cannot_teach_is_refused() -> None:
    start, s, _ = run(20, seed=6)
    recorded = Recorded.of(start, s.log)
    with pytest.raises(InputError, match="expected one of the classes"):
        what_if(recorded, Plan(gold={"i0": "spam"}))
    with pytest.raises(InputError, match="none of which has a label in the log"):
        what_if(recorded, Plan(gold={"nobody": 1}))
