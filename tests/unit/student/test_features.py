"""What a student sees, whatever form contents have."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from venire.errors import InputError, MissingExtra
from venire.student import Student
from venire.student.models import LONGEST, rows_of


def test_a_record_is_all_of_its_text_but_for_its_id() -> None:
    one = rows_of([{"id": "a", "title": "Buy", "text": "now"}, {"id": "b", "text": "hello"}])
    two = rows_of(["Buy\nnow", "hello"])
    assert one.kind == "text"
    assert (one.rows != two.rows).nnz == 0


def test_a_picture_is_its_pixels() -> None:
    seen = rows_of([[[0, 1], [2, 3]], [[4, 5], [6, 7]], "no picture", [1, 2]])
    assert seen.rows[1].tolist() == [4, 5, 6, 7]
    assert seen.usable.tolist() == [True, True, False, False]


def test_numbers_that_are_none_are_not_used() -> None:
    seen = rows_of([[1.0, float("nan")], [1.0, 2.0], None])
    assert seen.usable.tolist() == [False, True, False]


def test_without_features_it_says_what_it_expects() -> None:
    with pytest.raises(InputError, match="expected a text or a list of numbers in the field 'x'"):
        rows_of([{"y": "text"}, {}], field="x")


def test_later_items_are_seen_as_those_it_was_taught() -> None:
    like = "vector", 2
    assert rows_of(["a text", [1, 2], [1, 2, 3]], like=like).usable.tolist() == [False, True, False]
    assert rows_of([None, "a text"], like=("text", 0)).usable.tolist() == [False, True]


def test_features_of_your_own_need_a_row_for_each_item() -> None:
    assert rows_of(["a", "b"], lambda texts: np.ones((len(texts), 3))).rows.shape == (2, 3)
    with pytest.raises(InputError, match="expected a row for each"):
        rows_of(["a", "b"], lambda texts: np.ones((1, 3)))


def test_text_without_scikit_learn_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    features = importlib.import_module("venire.student.models")
    features._hashings.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(MissingExtra, match=r"venire\[student\]"):
        rows_of(["a text"])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"bins": 0}, "bins=0"), ({"folds": 1}, "folds=1"), ({"id": " "}, "expected a name")],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Student(**wrong)  # type: ignore[arg-type] # they are wrong


def test_a_number_that_is_too_large_for_a_float_makes_one_item_unusable_and_no_other() -> None:
    assert rows_of([[10**400, 1], [1, 2]]).usable.tolist() == [False, True]


def test_a_vector_that_is_too_long_is_not_used() -> None:
    long = [0.5] * (LONGEST + 1)
    seen = rows_of([[1.0, 2.0], long, [[0.5] * 64] * 65, [3.0, 4.0]])
    assert seen.usable.tolist() == [True, False, False, True]
    assert seen.rows.shape == (4, 2)
    with pytest.raises(InputError, match="no features"):
        rows_of([long, long])
