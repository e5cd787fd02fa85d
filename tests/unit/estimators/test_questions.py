"""The items to ask about: what they tell, against a plain sum, and what the answers change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.errors import InputError
from venire.estimators.questions import _camp, _information, questions
from venire.labels import LabelTable


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 5))
def test_information_against_a_plain_sum(seed: int, classes: int, candidates: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(classes), size=(candidates, 6))
    weights = rng.dirichlet(np.ones(candidates))
    found = _information(weights[None], rows)[0]
    for i in range(6):
        plain = 0.0
        for k in range(classes):
            mean = sum(weights[c] * rows[c, i, k] for c in range(candidates))
            for c in range(candidates):
                joint = weights[c] * rows[c, i, k]
                plain += joint * math.log2(rows[c, i, k] / mean)
        assert found[i] == pytest.approx(plain, abs=1e-9)


def herd() -> tuple[LabelTable, Any]:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    wrong = np.where(rng.random(300) < 0.6, truth, 1 - truth)
    said = [wrong, wrong, wrong, np.where(rng.random(300) < 0.95, truth, 1 - truth)]
    return LabelTable.from_matrix(np.array(said).T), truth


def test_a_few_answers_find_the_expert() -> None:
    table, truth = herd()
    first = questions(table, 5)
    assert len({one.item for one in first.asked}) == 5
    assert (first.gold, first.changed) == (0, 0)
    answers = {one.item: int(truth[one.item]) for one in first.asked}
    then = questions(table, 3, answers)
    assert not answers.keys() & {one.item for one in then.asked}
    assert then.changed > 60
    assert "verdicts change" in then.words[0]
    assert then.record()["gold"] == 5
    again = questions(table, 5)
    assert [one.item for one in again.asked] == [one.item for one in first.asked]


def test_where_all_agree_nothing_is_worth_asking() -> None:
    said = np.repeat(np.arange(60)[:, None] % 2, 4, axis=1)
    found = questions(LabelTable.from_matrix(said), 2)
    assert max(one.information for one in found.asked) < 0.02
    assert not found.pays


def test_no_items_are_refused() -> None:
    with pytest.raises(InputError, match="expected how many items"):
        questions([("a", "ann", 0), ("b", "ann", 1)], 0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_camps_against_a_plain_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, 3, size=(40, 5))
    table = LabelTable.from_matrix(said, classes=3)
    known = rng.integers(-1, 3, size=40)
    found = _camp(table, (1, 3), known)
    counts = [0, 0, 0]
    for row, truth in zip(said.tolist(), known.tolist(), strict=True):
        best = []
        for camp in ([1, 3], [0, 2, 4]):
            votes = [sum(row[m] == k for m in camp) for k in range(3)]
            best.append(votes.index(max(votes)) if votes.count(max(votes)) == 1 else None)
        if truth >= 0 and None not in best and best[0] != best[1]:
            counts = [counts[0] + (best[0] == truth), counts[1] + (best[1] == truth), counts[2] + 1]
    assert [found.right, found.others, found.differ] == counts


def test_camps_are_named_and_the_answers_speak_for_one() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=300)
    herd = np.where(rng.random(300) < 0.7, truth, 1 - truth)
    rows = []
    for i in range(300):
        rows += [(i, f"gpt-{m}", int(herd[i])) for m in "abc"]
        right = rng.random(3) < 0.9
        rows += [(i, f"other {m}", int(truth[i] if right[m] else 1 - truth[i])) for m in range(3)]
    first = questions(rows, 10)
    right_label = dict(enumerate(truth.tolist()))
    found = questions(rows, 1, {q.item: right_label[q.item] for q in first.asked})  # type: ignore[index] # items are numbers
    camp = next(camp for camp in found.camps if set(camp.members) == {"gpt-a", "gpt-b", "gpt-c"})
    assert camp.others > camp.right
    told = f"where the camp of gpt-* and the others differ, the others are right on {camp.others}"
    assert f"{told} of {camp.differ}" in found.words
