"""Learning first: the paper's way, and the one that is safe where its model does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from venire import Algorithm2, Auto, Greedy, LabelTable, LearnThenServe, World, simulate
from venire.scheduling import FixedOverlap, Realised
from venire.scheduling.by_name import learning_named
from venire_research.trust import measure


@pytest.mark.parametrize("policy", [Realised(), FixedOverlap(3)], ids=lambda p: p.name)
def test_spammers_do_not_deceive_it(policy: Realised | FixedOverlap) -> None:
    """12 labelers of 0.8 and six who always say one class; the paper's way ends in that class."""
    safe = measure("spammers-6", policy, LearnThenServe(45), slots=150)
    paper = measure("spammers-6", policy, Algorithm2(45), slots=150)
    assert safe["streamed"] >= safe["majority"] - 0.01
    assert safe["streamed"] >= safe["auto"] - 0.03
    assert paper["streamed"] < paper["majority"] - 0.05


def test_it_believes_what_the_table_says_and_goes_on_learning() -> None:
    """At the end of the phase, and later, the belief is `Auto` of all labels so far."""
    learning = LearnThenServe(5)
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(80, 1))
    said = np.where(rng.random((80, 4)) < [0.9, 0.8, 0.7, 0.6], truth, 1 - truth)
    learner = learning.begin([None] * 4, 2)
    before = learner.belief
    assert before is None
    for stop in (40, 80):
        items, labelers = np.divmod(np.arange(4 * stop), 4)
        new = items >= stop - 40
        learner.learn(items[new], labelers[new], said[:stop].ravel()[new])
        table = LabelTable.from_matrix(said[:stop])
        fitted = Auto(stranger=[[7.0, 3.0], [3.0, 7.0]]).fit(table)
        assert learner.belief is not None
        assert learner.belief.confusions == pytest.approx(fitted.rows_.clip(0.01, 0.99))
    assert learning.next_refresh(4) == 4
    assert learning.next_refresh(5) is not None
    assert Algorithm2(5).next_refresh(5) is None


def test_the_papers_way_by_name() -> None:
    named = learning_named("algorithm-2:45", seed=3)
    assert isinstance(named, Algorithm2)
    world = World.synthetic(1)
    run, same = (simulate(world, Greedy(), how, 200) for how in (named, Algorithm2(45, 3)))
    assert run.utility == same.utility
    assert named.describe() == "algorithm-2:45"


def test_what_earlier_versions_kept_is_restored() -> None:
    learner = LearnThenServe(5).begin([None] * 3, 2)
    old = {"labelers": np.array(2), "joined": np.array([np.nan]), "slot": np.array(0)}
    learner.restore(old)
    before = learner.belief
    assert before is None
    learner.restore(old | {"competences": np.array([0.9, 0.7, 0.8])})
    assert learner.belief is not None
    assert learner.belief.competences.tolist() == [0.9, 0.7, 0.8]
    learner.join(0.6)
    learner.learn(*np.array([[0, 0], [0, 1], [1, 1]]))
    assert len(learner.belief.competences) == 4
