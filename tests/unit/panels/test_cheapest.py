"""The cheapest panel, against a search of all of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import venire as vn
from tests.marks import examples
from venire.panels import best_panel, cheapest_panel


def plain(accuracy: dict[frozenset[int], float], costs: list[float], want: float) -> float:
    """The cost of the cheapest panel that reaches what is wanted."""
    good = [some for some, right in accuracy.items() if right >= want - 1e-12 and some]
    return min(math.fsum(costs[m] for m in some) for some in good)


def coverage(seed: int, labelers: int) -> dict[frozenset[int], float]:
    """A monotone, submodular accuracy: the share of items that a panel covers."""
    rng = np.random.default_rng(seed)
    covers = rng.random((labelers, 60)) < rng.uniform(0.05, 0.6, size=(labelers, 1))
    return {
        frozenset(some): float(covers[list(some)].any(axis=0).mean()) if some else 0.0
        for size in range(labelers + 1)
        for some in itertools.combinations(range(labelers), size)
    }


@given(st.integers(0, 10_000), st.integers(2, 8), st.floats(0.5, 1.0))
@examples(night=150, day=40)
def test_it_reaches_what_is_wanted_and_nobody_on_it_can_go(
    seed: int, labelers: int, share: float
) -> None:
    accuracy = coverage(seed, labelers)
    costs = np.random.default_rng(seed + 1).uniform(1, 30, size=labelers).tolist()
    want = share * accuracy[frozenset(range(labelers))]
    found = cheapest_panel(accuracy.__getitem__, costs, want)
    assert found.reached
    assert found.accuracy == accuracy[found.members] >= want - 1e-12
    assert found.cost == pytest.approx(math.fsum(costs[m] for m in found.members))
    assert found.cost >= plain(accuracy, costs, want) - 1e-9
    for m in found.members:
        assert accuracy[found.members - {m}] < want - 1e-12 or len(found.members) == 1


def test_it_is_close_to_the_search_of_all_panels() -> None:
    """Over 200 panels: how much dearer it is than the cheapest of all."""
    excess = []
    for seed in range(200):
        accuracy, rng = coverage(seed, 7), np.random.default_rng(seed)
        costs = rng.uniform(1, 30, size=7).tolist()
        want = 0.9 * accuracy[frozenset(range(7))]
        found = cheapest_panel(accuracy.__getitem__, costs, want)
        excess.append(found.cost / plain(accuracy, costs, want))
    assert np.mean(excess) < 1.06
    assert np.mean(np.array(excess) < 1 + 1e-9) > 0.6


def test_more_than_all_of_them_reach_is_said() -> None:
    found = cheapest_panel(lambda some: 0.1 * len(some), [1.0, 2.0, 3.0], 0.9)
    assert not found.reached
    assert sorted(found.members) == [0, 1, 2]
    assert found.cost == 6.0


def test_losses_are_looked_up_again_only_for_those_who_are_next() -> None:
    """A panel of 60, of whom 20 copies of three can go: far fewer replays than 60 squared."""
    asked = []

    def accuracy(some: frozenset[int]) -> float:
        asked.append(some)
        return len({m % 3 for m in some}) / 3 + 1e-6 * len(some)

    found = cheapest_panel(accuracy, [1.0] * 60, 0.99)
    assert len(found.members) == 3
    assert len(asked) < 60 * 8


def test_some_of_them_may_be_better_than_all() -> None:
    """The third one does harm: without it the others reach what all do not."""

    def accuracy(some: frozenset[int]) -> float:
        return 0.3 * len(some & {0, 1}) - 0.2 * (2 in some)

    assert not cheapest_panel(accuracy, [1, 1, 1], 0.5).reached
    found = cheapest_panel(accuracy, [1, 1, 1], 0.5, start=frozenset({0, 1}))
    assert (found.members, found.reached) == (frozenset({0, 1}), True)
    assert cheapest_panel(accuracy, [1, 1, 1], 0.5, start=frozenset({0, 1, 2})).reached
    assert not cheapest_panel(accuracy, [1, 1, 1], 0.7, start=frozenset({0, 1})).reached


@given(st.integers(0, 10_000), st.integers(2, 7), st.floats(0.0, 1.2))
@examples(night=100, day=30)
def test_the_best_panel_at_a_price_is_paid_and_near_the_best_of_all(
    seed: int, labelers: int, share: float
) -> None:
    accuracy = coverage(seed, labelers)
    costs = np.random.default_rng(seed + 1).uniform(1, 30, size=labelers).tolist()
    most = max(min(costs), share * sum(costs))
    found = best_panel(accuracy.__getitem__, costs, most)
    assert found.cost <= most + 1e-9
    assert found.accuracy == accuracy[found.members]
    paid = [some for some in accuracy if math.fsum(costs[m] for m in some) <= most]
    assert accuracy[found.members] >= max(accuracy[some] for some in paid) * (1 - 1 / math.e) / 2


def test_two_who_tie_do_not_end_the_search_at_a_price() -> None:
    by_size = {0: 0.0, 1: 0.7, 2: 0.7, 3: 0.8}
    found = best_panel(lambda some: by_size[len(some)], [1.0, 1.0, 1.0], 3.0)
    assert found.members == {0, 1, 2}


def test_a_price_that_pays_nobody() -> None:
    with pytest.raises(vn.InputError, match="at least the cost of one labeler, 2"):
        best_panel(len, [2.0, 3.0], 1.0)
