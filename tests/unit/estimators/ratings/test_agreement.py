"""Krippendorff's alpha: published numbers, a plain reference, invariants."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.estimators.worlds import Ints, label_matrices, plain
from venire import InputError, LabelTable, UnknownName, krippendorff_alpha, vote_entropy
from venire.estimators.metrics import Level, alpha_of

#: Krippendorff, Computing Krippendorff's Alpha-Reliability: four observers, twelve units.
OBSERVERS = {
    "A": "123321412...",
    "B": "1233224125.3",
    "C": ".3332342251.",
    "D": "12332441251.",
}
PUBLISHED = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}
LEVELS: list[Level] = ["nominal", "ordinal", "interval"]


def published() -> list[tuple[int, str, int]]:
    assert {len(said) for said in OBSERVERS.values()} == {12}
    return [
        (unit, who, int(x))
        for who, said in OBSERVERS.items()
        for unit, x in enumerate(said)
        if x != "."
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_the_published_example(level: Level) -> None:
    assert krippendorff_alpha(published(), level) == pytest.approx(PUBLISHED[level], abs=5e-4)


def reference(said: list[list[int | None]], level: str) -> float:
    """All pairs of labels, one by one."""
    units = [[x for x in row if x is not None] for row in said]
    units = [unit for unit in units if len(unit) > 1]
    values = [x for unit in units for x in unit]
    n = {k: values.count(k) for k in range(10)}

    def distance(a: int, b: int) -> float:
        low, high = min(a, b), max(a, b)
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return float((a - b) ** 2)
        return (sum(n[g] for g in range(low, high + 1)) - (n[low] + n[high]) / 2) ** 2

    observed = sum(
        distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    )
    expected = sum(distance(a, b) for a, b in permutations(values, 2))
    if not expected:
        return math.nan
    return 1 - (observed / len(values)) / (expected / (len(values) * (len(values) - 1)))


@pytest.mark.parametrize("level", LEVELS)
@given(drawn=label_matrices())
def test_alpha_equals_the_plain_reference(level: Level, drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    found = alpha_of(LabelTable.from_matrix(matrix, classes), level)
    assert found == pytest.approx(reference(plain(matrix), level), nan_ok=True)


@given(label_matrices(), st.integers(0, 99))
def test_names_and_order_of_classes_are_irrelevant_to_nominal_alpha(
    drawn: tuple[Ints, int], seed: int
) -> None:
    matrix, classes = drawn
    new = np.random.default_rng(seed).permutation(classes)
    one, two = (
        alpha_of(LabelTable.from_matrix(m, classes))
        for m in (matrix, np.where(matrix >= 0, new[matrix], -1))
    )
    assert two == pytest.approx(one, nan_ok=True)


@given(label_matrices())
def test_ordinal_alpha_is_the_same_upside_down(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    turned = np.where(matrix >= 0, classes - 1 - matrix, -1)
    one, two = (alpha_of(LabelTable.from_matrix(m, classes), "ordinal") for m in (matrix, turned))
    assert two == pytest.approx(one, nan_ok=True)


def test_perfect_agreement_and_nothing_to_compare() -> None:
    assert krippendorff_alpha([("a", 1, "x"), ("a", 2, "x"), ("b", 1, "y"), ("b", 2, "y")]) == 1
    assert math.isnan(krippendorff_alpha([("a", 1, "x"), ("b", 1, "y")]))


def test_an_order_of_words() -> None:
    words = {1: "bad", 2: "poor", 3: "fair", 4: "good", 5: "great"}
    rows = [(unit, who, words[x]) for unit, who, x in published()]
    found = krippendorff_alpha(rows, "ordinal", order=list(words.values()))
    assert found == pytest.approx(PUBLISHED["ordinal"], abs=5e-4)
    with pytest.raises(InputError, match="order is not known"):
        krippendorff_alpha(rows, "ordinal")
    with pytest.raises(InputError, match="expected numbers"):
        krippendorff_alpha(rows, "interval", order=list(words.values()))
    with pytest.raises(UnknownName, match="did you mean 'ordinal'"):
        krippendorff_alpha(rows, "ordnal")  # type: ignore[arg-type]


def test_entropy_of_votes() -> None:
    rows = [("a", m, x) for m, x in enumerate("xxyy")] + [("b", m, x) for m, x in enumerate("xyzw")]
    assert vote_entropy([*rows, ("c", 0, "x")]) == {"a": 1.0, "b": 2.0, "c": 0.0}


@given(label_matrices())
def test_entropy_equals_the_plain_reference(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    found = vote_entropy(LabelTable.from_matrix(matrix, classes))
    for item, row in enumerate(plain(matrix)):
        said = [x for x in row if x is not None]
        shares = [said.count(k) / len(said) for k in set(said)]
        assert found[item] == pytest.approx(-sum(p * math.log2(p) for p in shares))
