"""Gold in methods that stay near the vote: it is known truth, and it can overrule the vote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.errors import InputError
from venire.estimators import Anchored, Auto, Streaming, WeightedMajority
from venire.estimators.gold import PANEL_ITEMS, RECORD_LABELS, gold_votes
from venire.labels import LabelTable

NEAR_THE_VOTE = [WeightedMajority, Anchored, Auto]


def panel(
    seed: int, honest: tuple[float, ...], colluding: int = 0, per_item: int | None = None
) -> tuple[Any, LabelTable]:
    """400 items; the colluding ones repeat one coin, nine times in ten."""
    rng = np.random.default_rng(seed)
    truth, coin = rng.integers(2, size=(2, 400, 1))
    said = np.where(rng.random((400, len(honest))) < honest, truth, 1 - truth)
    copied = np.where(rng.random((400, colluding)) < 0.9, coin, 1 - coin)
    matrix = np.hstack([said, copied])
    if per_item is not None:
        order = rng.random(matrix.shape).argsort(axis=1).argsort(axis=1)
        matrix[order >= per_item] = -1
    return truth[:, 0], LabelTable.from_matrix(matrix, classes=2)


def share_right(fitted: Any, truth: Any, among: Any) -> float:
    return float(np.mean([fitted.labels_[int(i)] == truth[i] for i in among]))


@pytest.mark.parametrize("method", [Anchored, Auto])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("per_item", [None, 6])
def test_fifty_gold_items_find_a_colluding_majority(
    method: Any, seed: int, per_item: int | None
) -> None:
    truth, table = panel(seed, (0.85, 0.8, 0.8, 0.75), colluding=5, per_item=per_item)
    known = {i: int(truth[i]) for i in range(50)}
    rest = range(50, 400)
    without = share_right(method().fit(table), truth, rest)
    told = share_right(method().fit(table, known), truth, rest)
    assert without < 0.65
    assert told > 0.75


@pytest.mark.parametrize("method", [Anchored, Auto])
def test_gold_does_no_harm_elsewhere(method: Any) -> None:
    gained = []
    for seed in range(6):
        skills = ((0.9, 0.8, 0.7, 0.6, 0.6), (0.75,) * 7, (0.95, 0.6, 0.6, 0.6, 0.6))[seed % 3]
        truth, table = panel(seed, skills, per_item=4)
        rest, plain = range(50, 400), method().fit(table)
        for number in (3, 10, 50):
            known = {i: int(truth[i]) for i in range(number)}
            told = share_right(method().fit(table, known), truth, rest)
            gained.append(told - share_right(plain, truth, rest))
    assert np.mean(gained) > -0.003  # 30 other seeds: from -0.003 +- 0.002 to +0.030 +- 0.006
    assert min(gained) > -0.08  # three gold items can mislead: the vote errs on all of them


@pytest.mark.parametrize("method", NEAR_THE_VOTE)
def test_what_is_known_is_known(method: Any) -> None:
    truth, table = panel(1, (0.8, 0.7, 0.7, 0.6))
    known = {i: 1 - int(truth[i]) for i in range(5)}
    fitted = method().fit(table, known)
    assert {i: fitted.labels_[i] for i in range(5)} == known
    assert (fitted.posteriors_[:5].max(axis=1) == 1.0).all()


@pytest.mark.parametrize("method", NEAR_THE_VOTE)
def test_without_gold_nothing_changes(method: Any) -> None:
    _, table = panel(2, (0.8, 0.7, 0.7, 0.6), per_item=3)
    plain = method().fit(table)
    for nothing in ({}, {"elsewhere": 1}):
        again = method().fit(table, nothing)
        assert (again.posteriors_ == plain.posteriors_).all()
        assert (again.confusions_ == plain.confusions_).all()


def test_an_unknown_class_is_refused() -> None:
    _, table = panel(0, (0.8, 0.7, 0.6))
    with pytest.raises(InputError, match="has the gold label 7"):
        Anchored().fit(table, {0: 7})


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 12), st.integers(2, 4))
def test_weights_by_gold_against_a_plain_loop(seed: int, number: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, classes, size=(12, 4))
    matrix[0] = 0
    table = LabelTable.from_matrix(matrix, classes=classes)
    known = {i: int(rng.integers(classes)) for i in range(number)}
    told = gold_votes(table, known)
    if number == 0:
        assert told is None
        return
    assert told is not None
    pairs = [(m, matrix[i, m] == known[i]) for i in known for m in range(4) if matrix[i, m] >= 0]
    shares = [
        np.mean([matrix[i, m] == known[i] for m in range(4) if matrix[i, m] >= 0])
        for i in known
        if (matrix[i] >= 0).any()
    ]
    mean = (sum(shares) + PANEL_ITEMS[0]) / (len(shares) + sum(PANEL_ITEMS))
    rates = []
    for m in range(4):
        mine = [hit for who, hit in pairs if who == m]
        rates.append((sum(mine) + RECORD_LABELS * mean) / (len(mine) + RECORD_LABELS))
    assert np.allclose(told.rates, rates)
    for i, label in known.items():
        assert told.shares[i, label] == 1.0


def test_a_stream_learns_from_gold_and_keeps_it(tmp_path: Path) -> None:
    truth, table = panel(3, (0.85, 0.8, 0.8, 0.75), colluding=5)
    rows = table.item, table.labeler, table.said
    stream = Streaming(classes=(0, 1), labelers=tuple(range(9)))
    stream.update(rows[0].tolist(), rows[1], rows[2])
    before = share_right(stream, truth, range(50, 400))
    stream.add_gold({i: int(truth[i]) for i in range(50)})
    assert before < 0.65 < 0.75 < share_right(stream, truth, range(50, 400))
    assert stream.posterior_of([0])[0, truth[0]] == 1.0
    stream.save(tmp_path / "stream.npz")
    loaded = Streaming.load(tmp_path / "stream.npz")
    assert (loaded.posteriors_ == stream.posteriors_).all()
    with pytest.raises(InputError, match="expected one of the classes"):
        stream.add_gold({0: "eggs"})


def test_a_stream_drops_gold_with_its_item() -> None:
    stream = Streaming(classes=("x", "y"), labelers=("ann", "bob"), max_items=20)
    stream.add_gold({0: "y"})
    for i in range(40):
        stream.update([i, i], [0, 1], [0, 0])
    assert stream.is_final(0)
    assert stream.labels_[0] == "y"
    assert stream.state.gold == {}


def test_gold_of_the_same_items_in_another_type_is_not_passed_over() -> None:
    rows = [(1, "ann", "p"), (1, "bob", "q"), (2, "ann", "q")]
    with pytest.raises(InputError, match="gold has the item '1', and the labels have 1"):
        Auto().fit(rows, gold={"1": "p"})
    assert Auto().fit(rows, gold={7: "p"}).labels_ == Auto().fit(rows).labels_
