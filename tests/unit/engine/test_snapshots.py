"""A snapshot keeps settings as data: whatever is restored goes on to the bit, or was refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random as Dice
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marks import examples
from venire import (
    Bounds,
    DawidSkene,
    Everyone,
    FixedOverlap,
    Greedy,
    InputError,
    Item,
    Label,
    Labeler,
    Learning,
    LearnThenServe,
    LearnWhileServing,
    LookAhead,
    MajorityVote,
    OneCoin,
    Policy,
    Random,
    Realised,
    RealisedProxy,
    RoundRobin,
    Scheduler,
    Waterfill,
    WeightedMajority,
)
from venire.estimators import Known
from venire.estimators.base import BaseEstimator

DATA = Path(__file__).parents[2] / "data"
CLASSES = ("spam", "ok")


def scheduler(policy: Policy, learning: Learning | None, bounds: Bounds | None = None) -> Scheduler:
    panel = [Labeler(f"m{k}", 0.55 + 0.07 * k, 1 + k % 2) for k in range(5)]
    return Scheduler(panel, CLASSES, policy, learning, bounds=bounds, remember=30, revisions=10)


def live(s: Scheduler, slots: int, seed: int) -> None:
    """Some slots; some labels come late, and some not at all."""
    dice = Dice(seed)
    for _ in range(slots):
        weights = [dice.choice((4.0, 9.0, 20.0)) for _ in range(dice.choice((0, 2, 5)))]
        s.arrive([Item(f"i{s.slot}-{k}", weight) for k, weight in enumerate(weights)])
        s.assign()
        for item, labeler in s.in_flight:
            what = dice.random()
            if what < 0.8:
                s.observe(Label(item, labeler, CLASSES[dice.random() < 0.4]))
            elif what < 0.85:
                s.release(item, labeler)
        s.close()


def goes_on(s: Scheduler, slots: int = 50) -> Scheduler:
    """Restore it; both do the same from there on."""
    again = Scheduler.restore(s.snapshot())
    assert again.policy == s.policy
    assert repr(again.learning) == repr(s.learning)
    assert again.fingerprint() == s.fingerprint()
    before = len(s.log)
    for one in (s, again):
        live(one, slots, seed=7)
    assert list(map(repr, again.log)) == list(map(repr, s.log[before:]))  # a gain may be nan
    assert again.fingerprint() == s.fingerprint()
    return again


@pytest.mark.parametrize(
    "learning",
    [
        LearnThenServe(5, estimator=OneCoin(start="majority")),
        LearnThenServe(30, seed=4, estimator=DawidSkene(prior=np.array([[3.0, 1.0], [1.0, 2.0]]))),
        LearnWhileServing(prior=(9, 1)),
        LearnWhileServing(estimator=OneCoin()),
        LearnWhileServing(estimator=Known({k: 0.6 + 0.05 * k for k in range(5)})),
    ],
)
def test_what_did_not_come_back(learning: Learning) -> None:
    s = scheduler(Greedy(), learning)
    live(s, 20, seed=1)
    goes_on(s)


POLICIES: st.SearchStrategy[Policy] = st.one_of(
    st.builds(LookAhead, st.sampled_from([0, 900, 1_000_000])),
    st.builds(Random, st.integers(1, 4), st.integers(0, 99)),
    st.builds(FixedOverlap, st.integers(1, 4)),
    st.builds(RoundRobin, st.integers(1, 4)),
    st.sampled_from([Greedy(), Waterfill(), Realised(), RealisedProxy(), Everyone()]),
)
ESTIMATORS: st.SearchStrategy[BaseEstimator] = st.one_of(
    st.builds(
        OneCoin,
        max_iter=st.integers(1, 50),
        start=st.sampled_from(["spectral", "majority", "votes"]),
        prior=st.none() | st.tuples(st.floats(1, 9), st.floats(0.1, 5)),
        seed=st.integers(0, 9),
    ),
    st.builds(
        DawidSkene,
        max_iter=st.integers(0, 20),
        prior=st.one_of(
            st.none(),
            st.floats(0.01, 3),
            st.just("panel"),
            st.builds(lambda p: np.array([[p, 1.0], [1.0, p]]), st.floats(1, 9)),
        ),
    ),
    st.builds(WeightedMajority, shrink=st.floats(0.5, 9)),
    st.builds(MajorityVote, seed=st.integers(0, 9)),
)
LEARNING: st.SearchStrategy[Learning | None] = st.one_of(
    st.none(),
    st.builds(
        LearnThenServe,
        st.integers(1, 40),
        seed=st.integers(0, 9),
        estimator=ESTIMATORS,
        rho=st.floats(0.001, 0.4),
    ),
    st.builds(
        LearnWhileServing,
        st.sampled_from(["dawid-skene", "one-coin"]),
        explore=st.floats(0, 0.5),
        half_life=st.none() | st.floats(2, 100),
        drift=st.none() | st.floats(0.001, 0.2),
        window=st.integers(5, 100),
        longest=st.integers(1, 20),
        prior=st.tuples(st.floats(5, 20), st.floats(0.5, 4)),
        estimator=st.none() | ESTIMATORS,
    ),
)
BOUNDS = st.one_of(
    st.none(),
    st.builds(
        Bounds,
        st.integers(0, 2),
        st.sampled_from([None, 3]),
        st.sampled_from([None, 0.9]),
        st.sampled_from([None, 9]),
    ),
)


@pytest.mark.filterwarnings("ignore::UserWarning")  # labels are drawn by lot
@examples(night=40, day=15)
@given(policy=POLICIES, learning=LEARNING, bounds=BOUNDS, slots=st.integers(0, 25))
def test_whatever_the_settings_are_it_goes_on_to_the_bit(
    policy: Policy, learning: Learning | None, bounds: Bounds | None, slots: int
) -> None:
    s = scheduler(policy, learning, bounds)
    live(s, slots, seed=slots)
    goes_on(goes_on(s), slots=5)


@dataclass(frozen=True)
class TwoLabels(FixedOverlap):
    """A policy of a user."""

    overlap: int = 2
    name: ClassVar[str] = "two-labels"


class Mine(OneCoin):
    """An estimator of a user."""


@pytest.mark.parametrize(
    ("policy", "learning", "says"),
    [
        (TwoLabels(), None, r"TwoLabels as policy, which is not one of venire's own: .*replay"),
        (Greedy(), LearnThenServe(5, estimator=Mine()), r"Mine as learning\.estimator, .*replay"),
        (
            Greedy(),
            LearnThenServe(5, estimator=DawidSkene(start=lambda: 0)),  # type: ignore[arg-type]
            r"function as learning\.estimator\.start, .*replay",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_when_the_snapshot_is_made(
    policy: Policy, learning: Learning | None, says: str
) -> None:
    s = scheduler(policy, learning)
    with pytest.raises(InputError, match=says):
        s.capture()
    s.arrive(Item("a", 20.0))  # it goes on, and what it is told to do instead works
    s.assign()
    again = scheduler(policy, learning).replay(s.log)
    assert again.fingerprint() == s.fingerprint()


def test_a_snapshot_of_the_second_format_is_read() -> None:
    """Written when settings were names: `lookahead:50000`, `while-serving:one-coin:0.1`."""
    body = (DATA / "snapshot-2.bin").read_bytes()
    assert body.startswith(b"venire-2\n")
    s = Scheduler.restore(body)
    assert s.policy == LookAhead(50_000)
    assert s.learning == LearnWhileServing("one-coin", explore=0.1)
    assert (s.slot, len(s.outstanding), len(s.in_flight), s.revisions) == (30, 48, 6, 5)
    assert s.bounds == Bounds(min_labels=1, deadline=30)
    assert s.counters == {"planned": 28, "grouped": 0, "fell_back": 0}
    assert s.price == pytest.approx(6.454303046904547)
    known: Any = s.competences
    assert known["m0"] == pytest.approx(0.8127340823970037)
    s.arrive(Item("next", 9.0))
    assert [(a.item, a.labeler) for a in s.assign()] == [("i29-2", "m3")]
    goes_on(s)


def test_settings_that_this_version_does_not_know_are_told() -> None:
    kept = scheduler(Greedy(), None).capture()
    for name, said in (("Greedier", {}), ("Greedy", {"k": 1}), ("FixedOverlap", {"overlap": -1})):
        head = kept.head | {"policy": {"class": name, "settings": said}}
        with pytest.raises(InputError, match=r"another version.*replay the log"):
            Scheduler.restore(kept._replace(head=head).pack())


def test_a_memory_with_other_names_is_not_read() -> None:
    s = scheduler(Waterfill(), None)
    live(s, 10, seed=1)
    kept = s.capture()
    assert kept.head["memory"] == [["price", 0, 1], ["sold_in", 1, 1], ["sold", 2, 1]]
    other = kept._replace(head=kept.head | {"memory": [["sold", 0, 1]]})
    again = Scheduler.restore(other.pack())
    assert s.state.queue.desk.gauges.any()
    assert not again.state.queue.desk.gauges.any()
    live(again, 5, seed=2)
