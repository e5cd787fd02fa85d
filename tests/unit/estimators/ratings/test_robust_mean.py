"""Numbers: the robust mean against its rivals, its invariants, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rating_worlds import NUMBERS, numbers
from benchmarks.ratings import _measure
from venire import InputError, LabelTable, RobustMean

Row = tuple[int, int, float]


@pytest.mark.parametrize("kind", [k for k in NUMBERS if k != "all alike, no bias"])
def test_it_beats_mean_and_median(kind: str) -> None:
    rngs = map(np.random.default_rng, range(200, 204))
    rows = [_measure(*numbers(rng, **NUMBERS[kind])) for rng in rngs]
    mean, median, robust, held = np.mean(rows, axis=0)
    assert robust < min(mean, median)
    assert held > 0.8  # of 90 % intervals


def test_it_costs_next_to_nothing_where_the_mean_is_best() -> None:
    rngs = map(np.random.default_rng, range(200, 204))
    how = NUMBERS["all alike, no bias"]
    mean, _, robust, _ = np.mean([_measure(*numbers(rng, **how)) for rng in rngs], axis=0)
    assert robust < 1.03 * mean


def reference(rows: list[Row], items: int, labelers: int, rounds: int) -> list[float]:
    """The same rounds in plain Python, with a fixed freedom of 4 degrees."""
    nu, least = 4.0, 1e-6
    xs = [x for _, _, x in rows]
    centre = sum(xs) / len(xs)
    unit = (sum((x - centre) ** 2 for x in xs) / len(xs)) ** 0.5 or 1.0
    rows = [(s, m, (x - centre) / unit) for s, m, x in rows]
    z = [float(np.median([x for s, _, x in rows if s == i] or [0.0])) for i in range(items)]
    z_var, b, b_var = [0.0] * items, [0.0] * labelers, [0.0] * labelers
    panel = min(float(np.median([(x - z[s]) ** 2 for s, _, x in rows])) * 2 + least, 1.0)
    sigma2, beta2, common = [panel] * labelers, 0.1, [1.0] * labelers

    def off(row: Row) -> float:
        s, m, x = row
        return (x - z[s] - b[m]) ** 2 + z_var[s] + b_var[m]

    for _ in range(rounds):
        u = [(nu + 1) / (nu + off(row) / sigma2[row[1]]) for row in rows]
        w = [x / sigma2[row[1]] for x, row in zip(u, rows, strict=True)]
        for i in range(items):
            own = [(v, x - b[m]) for v, (s, m, x) in zip(w, rows, strict=True) if s == i]
            total = sum(v for v, _ in own) or 1.0
            z[i], z_var[i] = sum(v * x for v, x in own) / total, 1 / total
        for j in range(labelers):
            own = [(v, x - z[s]) for v, (s, m, x) in zip(w, rows, strict=True) if m == j]
            common[j] = (3 + 1) / (3 + (b[j] ** 2 + b_var[j]) / beta2)
            total = sum(v for v, _ in own) + common[j] / beta2
            b[j], b_var[j] = sum(v * x for v, x in own) / total, 1 / total
        middle = sum(c * x for c, x in zip(common, b, strict=True)) / sum(common)
        b = [x - middle for x in b]
        terms = zip(common, b, b_var, strict=True)
        beta2 = sum(c * (x * x + v) for c, x, v in terms) / labelers + least
        for j in range(labelers):
            own = [(v, off(row)) for v, row in zip(u, rows, strict=True) if row[1] == j]
            noise = sum(v * x for v, x in own) + 4 * panel
            sigma2[j] = max(noise / (len(own) + 4), least)
        panel = (labelers + 1) / (sum(1 / x for x in sigma2) + 1 / max(panel, least))
    return [centre + unit * x for x in z]


@st.composite
def ratings(draw: st.DrawFn) -> list[Row]:
    pairs = draw(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=2))
    number = st.integers(-1000, 1000).map(lambda x: x / 10)
    return [(s, m, draw(number)) for s, m in sorted(pairs)]


@given(ratings(), st.integers(1, 5))
def test_it_equals_the_plain_reference(rows: list[Row], rounds: int) -> None:
    items = {s: i for i, s in enumerate(dict.fromkeys(s for s, _, _ in rows))}
    labelers = {m: i for i, m in enumerate(dict.fromkeys(m for _, m, _ in rows))}
    found = RobustMean(freedom=4.0, max_iter=rounds, tol=0.0).fit(rows)
    coded = [(items[s], labelers[m], x) for s, m, x in rows]
    expected = reference(coded, len(items), len(labelers), found.n_iter_)
    assert list(found.values_.values()) == pytest.approx(expected, abs=1e-6)


@given(ratings(), st.integers(-50, 50), st.sampled_from([0.5, 2.0, -1.0]))
def test_another_scale_is_another_scale_of_the_same(
    rows: list[Row], shift: int, scale: float
) -> None:
    one = RobustMean(max_iter=10).fit(rows)
    two = RobustMean(max_iter=10).fit([(s, m, shift + scale * x) for s, m, x in rows])
    for item, value in one.values_.items():
        assert two.values_[item] == pytest.approx(shift + scale * value, abs=1e-5)
        error = abs(scale) * one.standard_errors_[item]
        assert two.standard_errors_[item] == pytest.approx(error, rel=1e-3, abs=1e-5)


@given(ratings(), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_irrelevant(rows: list[Row], random: Any) -> None:
    mixed = list(rows)
    random.shuffle(mixed)
    one, two = RobustMean(max_iter=10).fit(rows), RobustMean(max_iter=10).fit(mixed)
    for item, value in one.values_.items():
        assert two.values_[item] == pytest.approx(value, abs=1e-6)


def test_all_the_same_number() -> None:
    found = RobustMean().fit([(s, m, 3.0) for s in range(3) for m in range(3)])
    assert set(found.values_.values()) == {3.0}
    assert found.converged_


def test_one_label_is_what_it_says() -> None:
    rows: list[Any] = [("a", "ann", 4.0), ("a", "bob", 4.0), ("b", "ann", 9.0)]
    assert RobustMean().fit(rows).values_["b"] == pytest.approx(9.0, abs=0.1)


def test_frames() -> None:
    rows: list[Any] = [("a", "ann", 3), ("a", "bob", 5), ("b", "ann", 4)]
    found = RobustMean().fit(rows)
    frame = found.to_frame("pandas")
    assert frame["labels"].tolist() == [2, 1]
    assert frame["standard_error"].tolist() == list(found.standard_errors_.values())
    skills = found.skills_frame("pandas")
    assert list(skills) == ["worker", "labels", "bias", "spread"]
    assert skills["worker"].tolist() == ["ann", "bob"]


def test_a_table_of_classes_that_are_numbers() -> None:
    rows = [("a", "ann", "10"), ("a", "bob", "9"), ("b", "ann", "9.5")]
    one, two = RobustMean().fit(rows), RobustMean().fit(LabelTable.from_rows(rows))
    assert one.values_ == two.values_


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("a", "ann", "4"), ("a", "bob", "many")], "row 1 .* label is 'many', expected a finite"),
        ([("a", "ann", "4"), ("a", "bob", "inf")], "label is 'inf'"),
        ([("a", "ann", 4.0), ("a", "ann", 5.0)], "row 1 .* worker 'ann' labels task 'a' again"),
        ([("a", "ann", True), ("a", "bob", False)], "label is True"),
        (LabelTable.from_rows([("a", 1, "x"), ("b", 1, "y")]), "expected numbers"),
    ],
)
def test_what_is_no_number(rows: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        RobustMean().fit(rows)


def test_freedom_must_leave_a_variance() -> None:
    with pytest.raises(InputError, match=r"freedom=1\.0"):
        RobustMean(freedom=1.0).fit([("a", "ann", 1), ("a", "bob", 2)])
