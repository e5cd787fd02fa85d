"""Ties are broken by a draw from seed and names: order has no say in it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import DawidSkene, Known, MajorityVote, OneCoin, Streaming, WeightedMajority
from venire.estimators.base import BaseEstimator, winners
from venire.labels import LabelTable

SPLIT = [(f"i{s}", who, said) for s in range(40) for who, said in (("ann", "no"), ("bob", "yes"))]
ESTIMATORS = [
    MajorityVote(),
    WeightedMajority(),
    OneCoin(),
    DawidSkene(prior=None),
    Known({"ann": 0.7, "bob": 0.7}),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_tie_goes_to_neither_class_by_rule(estimator: BaseEstimator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing can be learned from such labels
        verdicts = list(estimator.fit(SPLIT).labels_.values())
    assert np.ptp(estimator.posteriors_) < 1e-9
    assert 10 <= verdicts.count("no") <= 30


def test_a_stream_breaks_ties_alike() -> None:
    stream = Streaming(model="one-coin", classes=("no", "yes")).partial_fit(SPLIT)
    assert stream.labels_ == MajorityVote().fit(SPLIT).labels_


def test_a_stream_without_labels_has_no_verdicts() -> None:
    assert Streaming().labels_ == {}


@given(seed=st.integers(0, 2**40), mixed=st.permutations(range(len(SPLIT))))
def test_the_order_of_rows_and_classes_is_irrelevant(seed: int, mixed: list[int]) -> None:
    first = MajorityVote(seed=seed).fit(SPLIT).labels_
    rows = [SPLIT[i] for i in mixed]
    again = MajorityVote(seed=seed).fit(LabelTable.from_rows(rows, ["yes", "no"])).labels_
    assert again == first
    alone = MajorityVote(seed=seed).fit(SPLIT[:2]).labels_
    assert alone["i0"] == first["i0"]


def test_another_seed_is_another_draw() -> None:
    one, two = (MajorityVote(seed=seed).fit(SPLIT).labels_ for seed in (0, 1))
    assert one != two


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=20))
def test_only_classes_on_top_win(votes: list[list[int]]) -> None:
    q = np.array(votes, float)
    best = winners(q, range(len(q)), "abc")
    assert (q[np.arange(len(q)), best] == q.max(axis=1)).all()


def test_every_class_wins_as_often() -> None:
    won = np.bincount(winners(np.full((5000, 5), 0.2), range(5000), "abcde"))
    assert won.min() > 900
