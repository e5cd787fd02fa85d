from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.marks import examples, nightly
from venire import (
    Algorithm2,
    DawidSkene,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    LearnWhileServing,
    LookAhead,
    OneCoin,
    Poisson,
    Policy,
    Realised,
    RealisedProxy,
    Scheduler,
    Waterfill,
    World,
    simulate,
)
from venire.errors import UnknownName
from venire.scheduling.base import Learner
from venire.scheduling.by_name import learning_named
from venire.scheduling.learning import GROWTH, Periods
from venire.simulation import Run
from venire_research.common.label_sets import Sets

PAPER: NDArray[np.float64] = 0.9 - 0.005 * np.arange(1, 31, dtype=np.float64)

#: The best of six; it may begin with bad luck.
GOOD = (0.95, 0.75, 0.72, 0.7, 0.68, 0.66)


def unlucky(seed: int, slots: int) -> World:
    """The best labeler is wrong all the time at first."""
    return World.synthetic(seed, (0.01, *GOOD[1:]), Poisson(2), changes=[(slots, GOOD)])


def late_share(run: Run, labeler: int, since: int) -> float:
    """Labels a slot of a labeler from some slot on."""
    late = run.touches[run.touches["slot"] >= since]
    return float((late["labeler"] == labeler).sum()) / (run.slots - since)


def learner_after(learning: LearnWhileServing, said: NDArray[np.int64]) -> Learner:
    """A learner that has heard a complete matrix of labels, 20 items at each look."""
    items, labelers = said.shape
    learner = learning.begin([None] * labelers, 2)
    for a in range(0, items, 20):
        part = said[a : a + 20]
        item = np.repeat(np.arange(a, a + len(part)), labelers)
        learner.learn(item, np.tile(np.arange(labelers), len(part)), part.ravel())
    return learner


def drawn(p: list[float], items: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    right = rng.random((items, len(p))) < p
    return np.where(right, truth[:, None], 1 - truth[:, None]), truth


# when it looks


@given(st.integers(1, 300), st.floats(0, 0.99), st.integers(0, 3000))
def test_periods_are_what_a_walk_from_slot_0_finds(longest: int, explore: float, slot: int) -> None:
    start = 0
    while start + (length := min(longest, max(1, int(GROWTH * start)))) <= slot:
        start += length
    periods = Periods(longest, explore)
    assert periods.of(slot) == (start, length)
    explored = {start + k for k in range(length) if k < explore * length}
    ends = {start + length - 1} | ({max(explored)} if explored else set())
    assert periods.next_refresh(slot) == min(end for end in ends if end >= slot)


def test_looks_never_end_and_are_few_at_first() -> None:
    how, looks = LearnWhileServing(), [-1]
    while looks[-1] < 100_000:
        looks.append(how.next_refresh(looks[-1] + 1))
    assert max(np.diff(looks)) <= how.longest
    assert len([t for t in looks if t < 1000]) < 70
    assert how.next_refresh(10**15) is not None


# what it earns


def test_it_earns_nearly_what_the_genie_does_from_the_first_slot_on() -> None:
    for seed in range(3):
        run = simulate(World.synthetic(seed), Greedy(), learning=LearnWhileServing(), slots=300)
        rival = simulate(World.synthetic(seed), Greedy(), learning=Algorithm2(8), slots=300)
        assert run.normalised_regret < 2 < 8 < rival.normalised_regret
        assert run.ledger.counts.all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["dawid-skene", "one-coin"])
def test_regret_on_the_synthetic_set(model: str) -> None:
    how = learning_named(f"while-serving:{model}")
    worlds = map(World.synthetic, range(10))
    found = [simulate(w, Greedy(), learning=how, slots=10_000).normalised_regret for w in worlds]
    assert np.mean(found) <= 3.0


@pytest.mark.slow
@pytest.mark.parametrize("slots", [100, 1000, 10_000])
def test_it_beats_the_best_learning_phase(slots: int) -> None:
    def mean(how: LearnWhileServing | Algorithm2) -> float:
        worlds = map(World.synthetic, range(4))
        return float(np.mean([simulate(w, Greedy(), how, slots).normalised_regret for w in worlds]))

    lengths = [n for n in (2, 3, 5, 8, 12, 20, 30, 45, 70, 100) if n <= slots // 4]
    assert mean(LearnWhileServing()) < 0.2 * min(mean(Algorithm2(n)) for n in lengths)


@pytest.mark.parametrize("estimator", [OneCoin(), DawidSkene()])
def test_any_estimator(estimator: OneCoin | DawidSkene) -> None:
    how = LearnWhileServing(estimator=estimator, window=500)
    run = simulate(World.synthetic(1), Greedy(), learning=how, slots=600)
    assert run.normalised_regret < 4


@pytest.mark.slow
def test_bird_with_full_matrices_and_no_truth(data: Path) -> None:
    """At least 80 % of the verdicts are right, where the genie's one-coin gets some 72 %."""
    found = Sets(data).load("bluebird")
    world = World.recorded(found.table, found.truth, found.competences, seed=0)
    run = simulate(world, Greedy(), learning=LearnWhileServing(), slots=2_000)
    assert run.accuracy is not None
    assert run.accuracy >= 0.8
    assert run.genie.accuracy is not None
    assert run.genie.accuracy < 0.75


def test_four_classes() -> None:
    world = World.synthetic(0, np.linspace(0.4, 0.9, 12), Poisson(3), classes=4)
    run = simulate(world, Greedy(), learning=LearnWhileServing(), slots=600)
    assert run.ratio is not None
    assert run.ratio > 0.97


# the feedback loop


@pytest.mark.parametrize("seed", [0, nightly(1), nightly(2)])
def test_who_begins_with_bad_luck_is_found_again(seed: int) -> None:
    world = unlucky(seed, 200)
    run = simulate(world, Greedy(), learning=LearnWhileServing("one-coin"), slots=2_500)
    assert late_share(run, 0, 1_500) > 0.9


@pytest.mark.parametrize("seed", [0, nightly(1)])
@pytest.mark.parametrize(
    "policy", [Waterfill(), LookAhead(), Realised(), RealisedProxy()], ids=lambda p: p.name
)
def test_so_it_is_under_the_other_policies(policy: Policy, seed: int) -> None:
    """It is asked nearly as often as by somebody who knows the panel."""
    run = simulate(unlucky(seed, 200), policy, LearnWhileServing(), slots=2_500)
    known = simulate(World.synthetic(seed, GOOD, Poisson(2)), policy, slots=2_500)
    assert late_share(run, 0, 1_500) > 0.95 * late_share(known, 0, 1_500) > 0.8


def test_with_full_matrices_who_is_always_wrong_is_asked_and_so_found() -> None:
    run = simulate(unlucky(0, 200), Greedy(), learning=LearnWhileServing(), slots=2_500)
    assert late_share(run, 0, 1_500) > 0.9


def test_who_guesses_is_asked_in_few_slots() -> None:
    """One-coin: who is at chance is explored in about 5 % of the slots, and hardly more."""
    world = World.synthetic(0, [*PAPER[:10], *[0.3] * 5])
    run = simulate(world, Greedy(), learning=LearnWhileServing("one-coin"), slots=3_000)
    shares = [late_share(run, m, 1_000) for m in range(10, 15)]
    assert max(shares) < 0.12
    assert min(shares) > 0.03
    assert run.ratio is not None
    assert run.ratio > 0.99


# flips


def test_what_was_believed_before_has_no_say() -> None:
    """Whatever it has come to believe: once labels have doubled it is what they say."""
    said, _ = drawn([0.9, 0.8, 0.75, 0.7], 1_000)
    for model in ("one-coin", "dawid-skene"):
        how = learning_named(f"while-serving:{model}:0:none:none")
        assert isinstance(how, LearnWhileServing)
        learner, other = learner_after(how, said[:300]), learner_after(how, said[:300])
        state = learner.state()
        state["estimate.found.competences"] = 1 - state["estimate.found.competences"]
        if model == "dawid-skene":
            state["estimate.found.confusions"] = state["estimate.found.confusions"][..., ::-1]
        learner.restore(state)
        item = np.repeat(np.arange(300, 1_000), 4)
        for each in (learner, other):
            each.learn(item, np.tile(np.arange(4), 700), said[300:].ravel())
        assert learner.belief is not None
        assert other.belief is not None
        assert (learner.belief.competences == other.belief.competences).all()


@pytest.mark.parametrize("model", ["one-coin", "dawid-skene"])
def test_a_panel_that_begins_below_chance_is_not_taken_upside_down(model: str) -> None:
    p = np.linspace(0.7, 0.9, 8)
    world = World.synthetic(2, 1 - p, Poisson(2), changes=[(30, p.tolist())])
    run = simulate(world, Greedy(), learning=learning_named(f"while-serving:{model}"), slots=1_000)
    late = run.rows["arrival"] >= 300
    right = run.rows["verdict"] == run.items.truth
    best = run.genie.rows["verdict"] == run.items.truth
    assert right[late].mean() > best[late].mean() - 0.02 > 0.8


def test_who_is_reliably_wrong_is_taken_by_the_contrary() -> None:
    """With full matrices what they say is turned round; one-coin has no use for them."""
    world = World.synthetic(0, [0.85] * 12 + [0.2] * 3)
    right = {}
    for model in ("dawid-skene", "one-coin"):
        run = simulate(
            world, Greedy(), learning=learning_named(f"while-serving:{model}"), slots=1_500
        )
        share = late_share(run, 13, 500)
        assert share > 0.9 if model == "dawid-skene" else share < 0.1
        right[model] = run.accuracy or 0.0
        assert run.ratio is not None
        assert run.ratio > 0.98
    assert right["dawid-skene"] > right["one-coin"] + 0.01 > 0.85  # two or three labels an item


# drift


@pytest.mark.parametrize("model", ["one-coin", nightly("dawid-skene")])
def test_a_labeler_that_gets_worse_is_followed(model: str) -> None:
    after = PAPER.copy()
    after[0] = 0.6
    world = World.synthetic(1, PAPER, changes=[(1_000, after.tolist())])
    how = learning_named(f"while-serving:{model}")
    run = simulate(world, Greedy(), learning=how, slots=2_000)
    deaf = simulate(world, Greedy(), learning=LearnWhileServing(model, drift=None), slots=2_000)  # type: ignore[arg-type]
    assert run.normalised_regret < 4
    assert run.normalised_regret < deaf.normalised_regret


def test_a_half_life_follows_too() -> None:
    rng = np.random.default_rng(0)
    said, truth = drawn([0.9, 0.85, 0.8, 0.8, 0.75], 1_500)
    guess = rng.random(700) < 0.55
    said[800:, 0] = np.where(guess, truth[800:], 1 - truth[800:])
    found = {}
    for half_life in (None, 100.0):
        how = LearnWhileServing("one-coin", half_life=half_life, drift=None)
        belief = learner_after(how, said).belief
        assert belief is not None
        found[half_life] = belief.competences[0]
    assert found[100.0] == pytest.approx(0.55, abs=0.15)
    assert found[None] > 0.7


@pytest.mark.slow
def test_regret_after_a_change_is_bounded() -> None:
    """It stops growing: what the change costs is paid within some hundred slots."""
    after = PAPER.copy()
    after[:10] = 0.6
    world = World.synthetic(0, PAPER, changes=[(2_000, after.tolist())])
    early, late = (
        simulate(world, Greedy(), learning=LearnWhileServing(), slots=n).normalised_regret
        for n in (3_000, 6_000)
    )
    assert early < 12
    assert late - early < 3


# the engine


def test_a_competence_that_somebody_says_is_where_it_begins() -> None:
    panel = [Labeler("ann", 0.95), Labeler("bob"), Labeler("cat", 0.2)]
    s = Scheduler(panel, ["a", "b"], learning=LearnWhileServing())
    assert s.competences == pytest.approx({"ann": 0.95, "bob": 0.7, "cat": 0.5})
    s.join(Labeler("dan", 0.8))
    s.join("eve")
    assert s.competences is not None
    assert (s.competences["dan"], s.competences["eve"]) == pytest.approx((0.8, 0.7))


def test_late_labels_are_learned_from() -> None:
    """The label of somebody whose lease had ended counts although its item has left."""
    panel = ["ann", "bob", "dan", "eve", "fay", "cat"]
    s = Scheduler(panel, [0, 1], Greedy(), LearnWhileServing("one-coin"))
    waiting: list[Label] = []
    for slot in range(60):
        s.arrive([Item(f"{slot}", 3.0)])
        for a in s.assign():
            label = Label(a.item, a.labeler, slot % 2 if a.labeler != "cat" else 1 - slot % 2)
            if a.labeler == "cat":
                waiting.append(label)
                s.release(a.item, a.labeler, bar=True)
            else:
                s.observe(label)
        left = {e.item for e in s.close()}
        for label in [w for w in waiting if w.item in left]:
            waiting.remove(label)
            s.observe(label)
    assert any(event.late for event in s.log if hasattr(event, "late"))
    assert s.competences is not None
    assert s.competences["ann"] > 0.8 > 0.5 >= s.competences["cat"]


@examples(night=15, day=6)
@given(st.integers(0, 1000), st.integers(0, 60), st.integers(1, 40), st.booleans())
def test_a_snapshot_anywhere_goes_on_to_the_bit(
    seed: int, stop: int, window: int, one_coin: bool
) -> None:
    said, _ = drawn([0.9, 0.7, 0.5, 0.4], 120, seed)
    how = LearnWhileServing("one-coin" if one_coin else "dawid-skene", window=window, longest=3)
    whole, part = (how.begin([None] * 4, 2) for _ in range(2))
    for look in range(60):
        if look == stop:
            restored = how.begin([0.9], 2)
            restored.restore(part.state())
            part = restored
        labels = said[2 * look : 2 * look + 2, : 1 + look % 4]
        item, labeler = np.indices(labels.shape)
        for learner in (whole, part):
            learner.learn(2 * look + item.ravel(), labeler.ravel(), labels.ravel())
    ours, theirs = whole.state(), part.state()
    assert {n: a.tobytes() for n, a in ours.items()} == {n: a.tobytes() for n, a in theirs.items()}


def test_memory_is_bounded() -> None:
    how = LearnWhileServing(window=200)
    sizes = []
    learner = how.begin([None] * 5, 2)
    for k in range(60):
        said, _ = drawn([0.9, 0.8, 0.7, 0.7, 0.6], 50, k)
        item, labeler = np.indices(said.shape)
        learner.learn(50 * k + item.ravel(), labeler.ravel(), said.ravel())
        sizes.append(sum(a.nbytes for a in learner.state().values()))
    assert sizes[-1] < 1.3 * sizes[20]


# its settings


def test_names() -> None:
    assert learning_named("while-serving") == LearnWhileServing()
    some = LearnWhileServing("one-coin", 0.1, None, None, 500)
    assert learning_named("while-serving:one-coin:0.1:none:none:500") == some
    assert some.describe() == "while-serving:one-coin:0.1:none:none:500"
    with pytest.raises(UnknownName, match="one-coin"):
        learning_named("while-serving:one-coni")


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "two-coin"},
        {"explore": 1.0},
        {"explore": -0.1},
        {"window": 0},
        {"longest": 0},
        {"half_life": 0.5},
        {"prior": (3.0, 7.0)},
    ],
    ids=repr,
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises((InputError, UnknownName)):
        LearnWhileServing(**settings).begin([None, None], 2)  # type: ignore[arg-type]


# who is paired with whom


def test_whoever_is_unknown_meets_everybody() -> None:
    world = World.synthetic(seed=0, competences=[0.8] * 16, arrivals=Poisson(6.0), weights=[30.0])
    run = simulate(world, Realised(), LearnWhileServing(), slots=60)
    met = np.zeros((16, 16), np.bool_)
    for row in np.unique(run.touches["row"]):
        who = run.touches["labeler"][run.touches["row"] == row]
        met[np.ix_(who, who)] = True
    assert np.triu(met, 1).sum() > 0.95 * 16 * 15 / 2


def test_a_newcomer_gets_work_though_experts_are_there() -> None:
    experts = [Labeler(name, 0.97) for name in "abcdef"]
    scheduler = Scheduler(experts, ["yes", "no"], Realised(), LearnWhileServing())
    asked = []
    for slot in range(60):
        if slot == 20:
            scheduler.join(Labeler("new"))
        scheduler.arrive(Item(f"{slot}-{k}", weight=20.0) for k in range(6))
        work = scheduler.assign()
        asked += [slot for a in work if a.labeler == "new"]
        scheduler.observe(Label(a.item, a.labeler, "yes") for a in work)
        scheduler.close()
    assert asked
    assert asked[0] < 40


def test_among_equals_those_come_first_who_gave_fewer_labels() -> None:
    panel = [Labeler(name, capacity=9) for name in "abc"]
    scheduler = Scheduler(panel, ["yes", "no"], Realised(), LearnWhileServing())
    scheduler.arrive(Item(str(k), weight=50.0) for k in range(9))
    first = scheduler.by_worth[0]
    scheduler.observe(Label(a.item, a.labeler, "yes") for a in scheduler.assign([first]))
    assert scheduler.by_worth[-1] == first
