"""One labeler who is about as good as the whole panel labels the rest alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venire import Budget, InputError
from venire.batch import label_recorded
from venire.batch.outcome import Labelled
from venire.labels import LabelTable

ITEMS, GOLD = 500, 60


def tried(good: float = 0.97, budget: float = 6.0, **more: Any) -> Labelled:
    """Five of .65 of whom three repeat each other, and one who is better, with some gold."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(ITEMS, 1))
    right = rng.random((ITEMS, 6)) < [good, 0.65, 0.65, 0.65, 0.65, 0.65]
    right[:, 2:4] = right[:, 1:2]
    table = LabelTable.from_matrix(np.where(right, truth, 1 - truth))
    gold = {i: int(truth[i, 0]) for i in range(GOLD)}
    known = {i: int(truth[i, 0]) for i in range(ITEMS)}
    options = {"gold": gold, "alone": 0.02, "truth": known, **more}
    return label_recorded(table, Budget(labels=int(budget * ITEMS)), **options)


def test_who_is_as_good_as_all_labels_the_rest_alone() -> None:
    done = tried()
    assert done.alone is not None
    assert done.alone.id == 0
    assert done.alone.loss <= 0.02
    assert done.asked == 2 * GOLD * 6 + (ITEMS - 2 * GOLD)
    assert done.accuracy is not None
    assert done.accuracy > 0.95
    assert done.record()["alone"] == done.alone.record()


@pytest.mark.parametrize(
    "more",
    [
        {"good": 0.65, "alone": 0.001},  # nobody is good enough
        {"budget": 4.0},  # the trial would take more than a third
        {"asked": frozenset(range(GOLD))},  # no gold was drawn
        {"alone": None},
    ],
)
def test_otherwise_all_are_asked(more: dict[str, Any]) -> None:
    done = tried(**more)
    assert done.alone is None
    assert "alone" not in done.record()


@pytest.mark.parametrize(
    ("more", "words"), [({"gold": None}, "without gold"), ({"alone": 2}, "expected the share")]
)
def test_what_cannot_be(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        tried(**more)
