"""Confidence as voices: against a plain reference, and what they change."""

from __future__ import annotations

from statistics import median

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import venire as vn
from venire.batch import Answer
from venire.batch.choice import believe, heard
from venire.estimators.voices import FEWEST, edge, voices_of
from venire.labels import LabelTable

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([None, 0.2, 0.5, 0.7, 0.9])), max_size=120
)


def plainly(rows: list[tuple[int, float | None]]) -> list[str]:
    """The voice of each answer, by name, as the docstring says it."""
    found = []
    for m, sure in rows:
        known = [q for n, q in rows if n == m and q is not None]
        name = f"l{m}"
        if sure is not None and len(known) >= FEWEST and len(set(known)) > 1:
            above = median(known) if median(known) > min(known) else min(
                q for q in known if q > median(known)
            )  # fmt: skip
            name += " (sure)" if sure >= above else " (unsure)"
        elif len(known) >= FEWEST and len(set(known)) > 1:
            name += " (sure)"  # without a confidence: with the voice that keeps its number
        found.append(name)
    return found


@given(ROWS)
def test_voices_are_those_of_the_plain_reference(rows: list[tuple[int, float | None]]) -> None:
    labeler = np.array([m for m, _ in rows], np.int64)
    sure = np.array([np.nan if q is None else q for _, q in rows], np.float64)
    found = voices_of(labeler, sure, ["l0", "l1", "l2"])
    names = plainly(rows)
    if found is None:
        assert all("sure" not in name for name in names)
    else:
        assert [found.names[v] for v in found.voice] == names
        assert found.labeler[found.voice].tolist() == labeler.tolist()


@given(st.lists(st.floats(0, 1), min_size=2))
def test_both_sides_of_the_edge_have_some(values: list[float]) -> None:
    border = edge(values)
    assert (border is None) == (len(set(values)) == 1)
    if border is not None:
        assert 0 < sum(value >= border for value in values) < len(values)


def test_what_is_believed_of_a_labeler_is_the_mean_of_its_voices() -> None:
    rng = np.random.default_rng(0)
    said = np.where(
        rng.random((60, 3)) < 0.8, np.arange(60)[:, None] % 2, rng.integers(0, 2, (60, 3))
    )
    labeler, item = np.tile(np.arange(3), 60), np.repeat(np.arange(60), 3)
    sure = np.where(labeler == 0, rng.random(180), np.nan)
    found = voices_of(labeler, sure, ["a", "b", "c"])
    assert found is not None
    table = LabelTable.from_codes(
        item, found.voice, said.ravel(), range(60), found.names, ["x", "y"]
    )
    belief = believe(table)
    merged = heard(belief, found)
    counts = np.bincount(found.voice)
    mean = (counts[0] * belief.evidence[0] + counts[3] * belief.evidence[3]) / 60
    assert np.allclose(merged.evidence[0], mean)
    assert np.allclose(merged.evidence[1:], belief.evidence[1:3])
    assert merged.known.tolist() == [60, 60, 60]
    assert merged.evidence.shape == (3, 2, 2)


def test_a_labeler_that_guesses_where_it_is_unsure_is_believed_where_it_is_sure() -> None:
    """Half of what three labelers say is a coin flip, and they say which half."""
    rng = np.random.default_rng(1)
    truth = {f"i{n}": int(rng.integers(2)) for n in range(400)}
    answers = {}
    for name in ("a", "b", "c"):
        for item, right in truth.items():
            sure = rng.random() < 0.5
            said = right if sure and rng.random() < 0.97 else int(rng.integers(2))
            answers[name, item] = Answer(said, confidence=0.8 if sure else 0.7)
    share: dict[bool, float] = {}
    for soft in (True, False):
        panel = {
            name: lambda item, name=name, soft=soft: (
                answers[name, item] if soft else answers[name, item].label
            )
            for name in ("a", "b", "c")
        }
        done = vn.label({i: i for i in truth}, panel, vn.Budget(labels=1200), truth=truth)
        share[soft] = done.accuracy or 0.0
    assert share[True] > share[False] + 0.03
