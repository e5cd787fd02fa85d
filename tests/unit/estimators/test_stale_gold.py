"""Gold of another mix than the rest: the test against SciPy's, and how rarely it is wrong."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from tests.marks import examples
from venire.estimators import Auto
from venire.estimators.teaching import another_mix
from venire.labels import LabelTable


def told(gold: list[int], rest: list[int]) -> str | None:
    """What is said of these counts of verdicts by class, on gold items and on the rest."""
    verdicts = np.concatenate([np.repeat(np.arange(len(c)), c) for c in (gold, rest)])
    table = LabelTable.from_matrix(np.array([verdicts, verdicts]).T, len(gold))
    known = np.where(np.arange(len(verdicts)) < sum(gold), verdicts, -1)
    return another_mix(table, known, np.eye(len(gold))[verdicts])


@examples(night=60, day=20)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(20, 300)), min_size=2, max_size=4))
def test_it_is_pearsons_chi_square(counts: list[tuple[int, int]]) -> None:
    gold, rest = [g for g, _ in counts], [r for _, r in counts]
    whole = sum(gold) + sum(rest)
    if min(sum(gold) * (g + r) / whole for g, r in counts) < 5:
        return  # classes would be pooled
    square = chi2_contingency([gold, rest], correction=False).statistic
    stale = np.sqrt(2 * square) > np.sqrt(2 * (len(counts) - 1) - 1) + 3
    assert (told(gold, rest) is not None) == stale


def test_rare_classes_are_pooled_and_little_gold_says_nothing() -> None:
    assert told([4, 0, 0], [100, 100, 100]) is None
    assert told([50, 0, 1], [500, 3, 3]) is None
    assert told([0, 50, 0], [300, 200, 5]) is not None


def test_gold_drawn_at_random_is_hardly_ever_stale() -> None:
    rng = np.random.default_rng(0)
    verdicts = rng.choice(3, 600, p=(0.6, 0.3, 0.1))
    table = LabelTable.from_matrix(np.array([verdicts, verdicts]).T, 3)
    q, said = np.eye(3)[verdicts], 0
    for _ in range(400):
        known = np.full(600, -1)
        known[rng.permutation(600)[:50]] = 0
        said += another_mix(table, known, q) is not None
    assert said <= 6


def test_auto_says_it_and_asked_items_do_not_count() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=400)
    said = np.where(rng.random((400, 5)) < 0.8, truth[:, None], 1 - truth[:, None])
    table = LabelTable.from_matrix(said)
    ones = np.flatnonzero(truth == 1)[:40].tolist()
    gold = dict.fromkeys(ones, 1)
    found = Auto().fit(table, gold)
    assert found.checked_ is not None
    assert found.checked_.record()["stale"] == found.checked_.stale is not None
    assert "; stale: the mix of items is another" in found.rests_on_
    even = {int(i): int(truth[i]) for i in range(40)}
    assert "stale" not in Auto().fit(table, even).rests_on_
    asked = Auto().fit(table, gold | even, [i for i in ones if i not in even])
    assert "stale" not in asked.rests_on_
