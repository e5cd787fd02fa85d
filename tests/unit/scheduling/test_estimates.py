"""What a stream remembers of earlier fits: who changed, who shares errors, and what was shown."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from venire.estimators.auto import Auto, Basis
from venire.estimators.clones import CloneGroup
from venire.estimators.screening import Independence
from venire.paper.accuracy import one_coin
from venire.scheduling.estimates import Estimate, Guess, Memory, Shown

Ints = NDArray[np.int64]


def some_labels(said: Ints, each: int, seed: int) -> Ints:
    """Each item is labelled by so many labelers at random: rows of item, labeler, said."""
    rng = np.random.default_rng(seed)
    return np.array(
        [
            (s, m, said[s, m])
            for s in range(len(said))
            for m in rng.permutation(said.shape[1])[:each]
        ]
    )


def learned(said: Ints, ends: list[int], each: int = 4, drift: float | None = 0.001) -> Estimate:
    """An estimate of the labels, fitted each time that so many items are there."""
    estimate = Estimate(Auto(), [None] * said.shape[1], 2, memory=Memory(drift=drift))
    rows, first = some_labels(said, each, seed=1), 0
    for end in ends:
        now = rows[(first <= rows[:, 0]) & (rows[:, 0] < end)]
        estimate.take(now[:, 0], now[:, 1], now[:, 2], thorough=True)
        first = end
    return estimate


def turning(items: int, turn: int, seed: int = 0) -> Ints:
    """Ten labelers of 0.8 to 0.65, and six who fall from 0.92 to 0.3."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(items, 1))
    late = np.arange(items)[:, None] >= turn
    right = np.hstack([np.tile(np.linspace(0.8, 0.65, 10), (items, 1)),
                       np.where(late, 0.3, 0.92) * np.ones(6)])  # fmt: skip
    return np.where(rng.random(right.shape) < right, truth, 1 - truth)


def test_what_was_said_before_many_changed_together_is_forgotten() -> None:
    said, ends = turning(1200, 600), [300, 600, 800, 1000, 1200]
    found = learned(said, ends)
    assert 600 <= found.labels[:, 0].min() <= 800
    assert (found.guess().competences[10:] <= 0.5).all()
    kept = learned(said, ends, drift=None)
    assert kept.labels[:, 0].min() == 0
    assert (kept.guess().competences[10:] > 0.5).all()


def test_nothing_is_forgotten_where_nobody_changes() -> None:
    for seed in range(3):
        said = turning(900, 900, seed)
        assert learned(said, [300, 400, 500, 600, 750, 900]).labels[:, 0].min() == 0


def nearly(excess: float) -> Auto:
    """A fit of 15 labelers whose errors have this excess of likeness; it is the vote."""
    fitted = Auto()
    fitted.basis_, fitted.families_ = Basis.VOTE, ()
    fitted.independence_ = Independence(excess, 105, 50.0, 15)
    return fitted


@pytest.fixture
def shown() -> Estimate:
    estimate = Estimate(Auto(), [None] * 15, 2)
    estimate.labels = np.zeros((400, 4), np.int64)
    estimate.found = Guess(np.full(15, 0.8))
    estimate.shown = Shown(one_coin(np.full(15, 0.8), 2), np.full(2, 0.5), 300)
    estimate.kin[:3] = 0
    return estimate


def test_what_falls_short_by_chance_does_not_change_the_belief(shown: Estimate) -> None:
    assert shown._kept(nearly(0.4)) is shown.found
    assert shown.shown is not None


@pytest.mark.parametrize("why", ["dependent", "twice as many labels", "gold"])
def test_a_belief_is_not_kept_for_ever(shown: Estimate, why: str) -> None:
    if why == "twice as many labels":
        shown.labels = np.zeros((601, 4), np.int64)
    if why == "gold":
        shown.gold = {0: 1}
    assert shown._kept(nearly(1.5 if why == "dependent" else 0.4)) is None
    assert shown.shown is None
    assert (shown.kin == -1).all()


def test_who_shares_errors_is_asked_again_in_the_next_fit(shown: Estimate) -> None:
    shown._relate([CloneGroup((1, 4, 7), 0.97), CloneGroup((2, 3), 0.1)])
    assert np.flatnonzero(shown.kin >= 0).tolist() == [1, 4, 7]
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(60, 1))
    said = np.where(rng.random((60, 15)) < 0.8, truth, 1 - truth)
    said[:, [4, 7]] = said[:, [1]]
    shown.labels = np.zeros((60 * 15, 4), np.int64)
    shown.labels[:, :3] = [(s, m, said[s, m]) for s in range(60) for m in range(15)]
    fitted = shown._fitted(shown._table())
    assert isinstance(fitted, Auto)
    (family,) = fitted.families_
    assert family.members == (1, 4, 7)
    assert family.correlation > 0.9


def test_a_snapshot_has_all_of_it(shown: Estimate) -> None:
    again = Estimate(Auto(), [None] * 15, 2)
    again.restore(shown.state())
    assert again.shown is not None
    assert shown.shown is not None
    assert again.shown.labels == 300
    assert np.array_equal(again.shown.confusions, shown.shown.confusions)
    assert np.array_equal(again.kin, shown.kin)


def test_families_that_are_declared_begin_anew(shown: Estimate) -> None:
    shown.relate({0: "a", 1: "a"})
    assert shown.shown is None
    assert (shown.kin == -1).all()


def test_a_newcomer_is_compared_as_an_unknown_labeler() -> None:
    said = turning(900, 900)
    estimate = learned(said[:600], [300, 600])
    assert estimate.shown is not None
    estimate.join(None)
    rows = some_labels(np.hstack([said, said[:, :1]]), 4, seed=1)
    late = rows[rows[:, 0] >= 600]
    estimate.take(late[:, 0], late[:, 1], late[:, 2], thorough=True)
    assert len(estimate.guess().competences) == 17
    assert estimate.labels[:, 0].min() == 0


def test_labels_that_nobody_else_checked_say_nothing_about_skill() -> None:
    """Two labelers without an item in common stay where an unknown labeler begins."""
    estimate = Estimate(Auto(), [None, None], 3)
    said = np.random.default_rng(0).choice(3, 300, p=[0.7, 0.25, 0.05])
    estimate.take(np.arange(300), np.arange(300) % 2, said, thorough=True)
    assert estimate.guess().competences.tolist() == [0.7, 0.7]
    matrices, _ = estimate.guess().read(3)
    assert matrices.max() < 0.75
    agree = np.repeat(np.arange(300, 330), 2), np.arange(60) % 2, np.repeat(said[:30], 2)
    estimate.take(*agree, thorough=True)
    assert estimate.guess().competences.min() > 0.8
