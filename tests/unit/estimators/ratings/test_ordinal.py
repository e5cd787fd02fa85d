"""Ordered classes: against the plain reference, its invariants, and the simplest rivals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.rating_worlds import SEEN, UNORDERED, UNSEEN, Rated, Rng
from benchmarks.ratings import verdicts
from tests.marks import nightly
from tests.unit.estimators.worlds import Ints, label_matrices, plain
from venire import Auto, InputError, LabelTable, Ordinal
from venire.estimators.ratings.ordinal import order_strength, rater_types
from venire.testing import check_competence


def reference(
    said: list[list[int | None]], K: int, iterations: int
) -> tuple[list[list[float]], list[list[float]]]:
    """Mean-field EM in plain Python: posteriors, and who is of which type."""
    T = rater_types(K).tables.tolist()
    C, M = len(T), len(said[0])
    rho, types = [1 / C] * C, [[0.0] * C for _ in range(M)]
    votes = [[x for x in row if x is not None] for row in said]
    q = [[v.count(k) / len(v) if v else 0.0 for k in range(K)] for v in votes]
    labels = [(s, m, x) for s, row in enumerate(said) for m, x in enumerate(row) if x is not None]
    pi = [0.0] * K
    for _ in range(iterations + 1):
        for m in range(M):
            own = [(s, x) for s, who, x in labels if who == m]
            fit = [
                math.log(rho[c])
                + sum(q[s][k] * math.log(T[c][k][x]) for s, x in own for k in range(K))
                for c in range(C)
            ]
            odds = [math.exp(f - max(fit)) for f in fit]
            types[m] = [o / sum(odds) for o in odds]
        rho = [(sum(r[c] for r in types) + 5 / C) / (M + 5) for c in range(C)]
        items = [sum(q[s][k] for s in range(len(said)) if votes[s]) + 1 for k in range(K)]
        pi = [x / sum(items) for x in items]
        for s, row in enumerate(said):
            logs = [math.log(p) for p in pi]
            for m, x in enumerate(row):
                if x is not None:
                    for k in range(K):
                        logs[k] += sum(
                            r * math.log(T[c][k][x]) for c, r in enumerate(types[m]) if r > 1e-12
                        )
            odds = [math.exp(f - max(logs)) for f in logs]
            q[s] = [o / sum(odds) for o in odds] if votes[s] else pi
    return q, types


@settings(max_examples=15)
@given(label_matrices(max_items=5, max_labelers=3), st.integers(0, 3))
def test_it_equals_the_plain_reference(drawn: tuple[Ints, int], rounds: int) -> None:
    matrix, K = drawn
    table = LabelTable.from_matrix(matrix, K)
    found = Ordinal(max_iter=rounds, tol=0.0, least_order=0.0).fit(table)
    q, types = reference(plain(matrix), K, found.n_iter_)
    np.testing.assert_allclose(found.posteriors_, q, atol=1e-6)
    idle = np.array(types)[:, -(K + 1) :].sum(axis=1)
    np.testing.assert_allclose(found.idle_, idle, atol=1e-6)


@given(label_matrices())
def test_the_bound_never_falls(drawn: tuple[Ints, int]) -> None:
    table = LabelTable.from_matrix(*drawn)
    found = Ordinal(least_order=0.0, max_iter=30).fit(table)
    heights = [step.log_likelihood for step in found.history_]
    assert (np.diff(heights) > -1e-7).all()
    assert np.allclose(found.posteriors_.sum(axis=1), 1)
    assert np.allclose(found.confusions_.sum(axis=2), 1)


@given(label_matrices())
def test_upside_down_is_the_same_upside_down(drawn: tuple[Ints, int]) -> None:
    matrix, K = drawn
    turned = np.where(matrix >= 0, K - 1 - matrix, -1)
    one, two = (
        Ordinal(least_order=0.0, max_iter=20).fit(LabelTable.from_matrix(m, K))
        for m in (matrix, turned)
    )
    np.testing.assert_allclose(two.posteriors_[:, ::-1], one.posteriors_, atol=1e-6)
    np.testing.assert_allclose(two.biases_, -one.biases_, atol=1e-5)


#: Four seconds of computing and more.
DEAR = {"60 labelers, 4 labels each", "7 classes", "10 classes"}


def scored(make: Callable[[Rng], Rated], seeds: range) -> dict[str, float]:
    """The share of right verdicts of each method."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        said, truth, K = make(np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Dawid-Skene
            got_by = verdicts(said, K)
        for method, got in got_by.items():
            found.setdefault(method, []).append(float(np.mean(got == truth)))
    return {method: float(np.mean(shares)) for method, shares in found.items()}


@pytest.mark.parametrize(
    "kind",
    [nightly(k) if k in DEAR else k for k in (*SEEN, *UNSEEN) if k != "3 labelers"],
)
def test_it_beats_the_simplest_rivals_where_there_is_an_order(kind: str) -> None:
    got = scored((SEEN | UNSEEN)[kind], range(200, 204))
    for rival in ("rounded mean", "median", "majority", "Dawid-Skene"):
        assert got["Ordinal"] > got[rival], rival


@pytest.mark.parametrize("kind", UNORDERED)
def test_where_there_is_none_it_is_as_good_as_auto(kind: str) -> None:
    got = scored(UNORDERED[kind], range(200, 204))
    for rival in ("rounded mean", "median"):
        assert got["Ordinal"] > got[rival], rival
    assert got["Ordinal"] >= got["majority"] - 0.005
    assert got["Ordinal"] > got["Auto"] - 0.03


def test_with_three_labelers_it_is_about_as_good_as_the_mean() -> None:
    got = scored(UNSEEN["3 labelers"], range(200, 206))
    assert got["Ordinal"] > got["rounded mean"] - 0.03
    assert got["Ordinal"] > got["majority"]


def test_spammers_and_biases_are_found() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(5, size=(400, 1))
    bias = np.array([1.0, 0.0, 0.0, -1.0])
    said = np.clip(np.rint(truth + bias + 0.6 * rng.normal(size=(400, 4))), 0, 4).astype(int)
    said = np.column_stack([said, np.full(400, 2), rng.integers(5, size=400)])
    found = Ordinal().fit(LabelTable.from_matrix(said, 5))
    assert found.ordered_
    assert found.chosen_ == "ordinal"
    np.testing.assert_allclose(found.biases_[:4], bias, atol=0.2)
    assert found.idle_[:4].max() < 0.1
    assert found.idle_[4:].min() > 0.5


def test_without_an_order_it_is_auto() -> None:
    said, _, K = UNORDERED["coin, 2 spammers"](np.random.default_rng(5))
    table = LabelTable.from_matrix(said, K)
    found = Ordinal().fit(table)
    assert not found.ordered_
    assert found.chosen_ == "auto"
    assert "little to do with the order" in found.why_
    assert (found.posteriors_ == Auto().fit(table).posteriors_).all()
    assert np.isnan(found.biases_).all()


def order_reference(said: list[list[int | None]], K: int) -> float:
    """The weakest boundary, pair by pair."""
    units = [[x for x in row if x is not None] for row in said]
    units = [unit for unit in units if len(unit) > 1]
    values = [x for unit in units for x in unit]
    links = [math.inf]
    for k in range(K - 1):
        near, far = [(k, k + 1)], [(i, j) for i in range(k + 1) for j in range(k + 1, K)]
        far.remove((k, k + 1))
        seen, chance = [], []
        for pairs in (near, far):
            seen.append(
                sum(
                    sum((a, b) in pairs for a, b in permutations(unit, 2)) / (len(unit) - 1)
                    for unit in units
                )
            )
            n = max(len(values), 1)
            chance.append(sum(values.count(i) * values.count(j) for i, j in pairs) / n)
        if min(chance) >= 10:
            added = [seen[i] + 4 * chance[i] / sum(chance) for i in (0, 1)]
            links.append((added[0] / chance[0]) / (added[1] / chance[1]))
    return min(links)


@given(label_matrices(), st.integers(1, 12))
def test_the_strength_of_an_order_equals_the_plain_reference(
    drawn: tuple[Ints, int], times: int
) -> None:
    matrix, K = np.tile(drawn[0], (times, 1)), drawn[1]
    found = order_strength(LabelTable.from_matrix(matrix, K))
    assert found == pytest.approx(order_reference(plain(matrix), K) if K > 2 else 0.0)


def test_classes_mistaken_in_pairs_have_no_order() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=(400, 1))
    said = np.where(rng.random((400, 5)) < 0.7, truth, truth ^ 1)
    assert order_strength(LabelTable.from_matrix(said, 4)) == pytest.approx(1)
    near = np.clip(truth + rng.integers(-1, 2, size=(400, 5)), 0, 3)
    assert order_strength(LabelTable.from_matrix(near, 4)) > 1.2


def test_the_median_is_of_least_expected_error() -> None:
    said, _, K = SEEN["latent"](np.random.default_rng(1))
    found = Ordinal().fit(LabelTable.from_matrix(said, K))
    k = np.arange(K)
    expected = found.posteriors_ @ np.abs(k[:, None] - k)
    median = np.array(list(found.medians_.values()))
    chosen = expected[np.arange(len(median)), median]
    np.testing.assert_allclose(chosen, expected.min(axis=1), atol=1e-8)


def test_a_second_fit_forgets_the_first() -> None:
    found = Ordinal(least_order=0.0).fit(LabelTable.from_matrix([[0, 0], [2, 2]], 3))
    assert list(found.medians_.values()) == [0, 2]
    found.fit(LabelTable.from_matrix([[2, 2], [0, 0]], 3))
    assert list(found.medians_.values()) == [2, 0]


def test_words_need_an_order() -> None:
    rows = [(s, m, ("low", "mid", "high")[(s + m // 2) % 3]) for s in range(9) for m in range(3)]
    with pytest.raises(InputError, match=r"'high', 'low', 'mid' are not numbers.*--classes"):
        Ordinal().fit(rows)
    found = Ordinal(order=["low", "mid", "high"]).fit(rows)
    assert found.classes_ == ("low", "mid", "high")
    with pytest.raises(InputError, match="expected one of the classes"):
        Ordinal(order=["low", "mid"]).fit(rows)
    with pytest.raises(InputError, match="expected each of the classes"):
        Ordinal(order=["low", "mid"]).fit(LabelTable.from_rows(rows))


def test_text_of_numbers_goes_by_size() -> None:
    rows = [(s, m, ("2", "10", "9.5")[s % 3]) for s in range(6) for m in range(2)]
    assert Ordinal().fit(rows).classes_ == ("2", "9.5", "10")


def test_too_many_classes_are_measurements() -> None:
    with pytest.raises(InputError, match=r"got 150 classes.*--numeric"):
        Ordinal().fit([(x, "ann", x) for x in range(150)])


def test_the_battery() -> None:
    check_competence(Ordinal())
    check_competence(Ordinal(least_order=0.0))


def test_items_without_labels() -> None:
    table = LabelTable.from_matrix([[0, 0, 1], [-1, -1, -1], [2, 2, 1]], 3)
    found = Ordinal(least_order=0.0).fit(table)
    assert found.labels_[1] is None
    assert found.medians_[1] is None
    np.testing.assert_allclose(found.posteriors_[1], found.priors_)
