"""Bradley-Terry with labeler quality: published model, plain reference, invariants, rivals."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.comparisons import KINDS, measure, world
from tests.marks import nightly
from venire import BradleyTerry, InputError
from venire.labels.sources import as_comparisons

Row = tuple[str, str, str, str]


@st.composite
def comparisons(draw: st.DrawFn) -> list[Row]:
    thing, who = st.sampled_from("abcd"), st.sampled_from("xyz")
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        left, right = draw(st.lists(thing, min_size=2, max_size=2, unique=True))
        rows.append((left, right, draw(who), draw(st.sampled_from([left, right, "tie"]))))
    return rows


def fitted(rows: Any, **how: Any) -> BradleyTerry:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of them fall into groups
        return BradleyTerry(**how).fit(rows)


def height(
    rows: list[Row], score: dict[Any, float], eta: dict[Any, float], spread: float = 2.0
) -> float:
    """What is climbed, in plain Python."""
    total = -sum(t * t for t in score.values()) / (2 * spread**2)
    total += sum(4 * math.log(e) + math.log(1 - e) for e in eta.values())
    for left, right, who, winner in rows:
        p = 1 / (1 + math.exp(score[right] - score[left]))
        says = eta[who] * p + (1 - eta[who]) * (1 - p)
        won = {left: 1.0, right: 0.0}.get(winner, 0.5)
        total += won * math.log(says) + (1 - won) * math.log(1 - says)
    return total


@settings(max_examples=15)
@given(comparisons())
def test_it_ends_on_top_of_the_plain_height(rows: list[Row]) -> None:
    found = fitted(rows, spread=2.0, tol=1e-7, max_iter=2000)
    heights = [step.log_likelihood for step in found.history_]
    assert (np.diff(heights) > -1e-9).all()
    score, eta = found.scores_, found.reliabilities_
    top = height(rows, score, eta)
    assert top == pytest.approx(heights[-1], abs=1e-5)
    for near in (-1e-2, 1e-2):
        for name in score:
            assert height(rows, score | {name: score[name] + near}, eta) <= top + 1e-6
        for name in eta:
            assert height(rows, score, eta | {name: eta[name] + near}) <= top + 1e-6


@settings(max_examples=15)
@given(comparisons())
def test_sides_and_order_are_irrelevant(rows: list[Row]) -> None:
    turned = [(right, left, who, winner) for left, right, who, winner in reversed(rows)]
    one, two = (fitted(r, tol=1e-7, max_iter=2000) for r in (rows, turned))
    for name, score in one.scores_.items():
        assert two.scores_[name] == pytest.approx(score, abs=1e-4)
        assert two.standard_errors_[name] == pytest.approx(one.standard_errors_[name], abs=1e-3)


@settings(max_examples=30)
@given(comparisons())
def test_scores_have_mean_0_and_errors_are_positive(rows: list[Row]) -> None:
    found = fitted(rows)
    assert sum(found.scores_.values()) == pytest.approx(0, abs=1e-9)
    assert all(0 < e <= found.spread_ for e in found.standard_errors_.values())
    assert list(found.ranking_) == sorted(found.scores_, key=lambda t: -found.scores_[t])


def test_plain_scores_of_two_things_are_the_odds() -> None:
    rows = [("a", "b", str(i), "a" if i < 30 else "b") for i in range(40)]
    found = BradleyTerry(prior=None, spread=1e3).fit(rows)
    assert found.scores_["a"] - found.scores_["b"] == pytest.approx(math.log(3), abs=1e-3)
    error = math.sqrt(1 / 30 + 1 / 10)  # of the log odds; half of it on either side
    assert found.standard_errors_["a"] == pytest.approx(error / 2, abs=1e-3)


#: A second of computing each; of the others the night tells.
DAILY = {"5 spammers, 2 contrary", "8 of 20 spammers", "5 spammers, a fifth ties"}


@pytest.mark.parametrize(
    "kind", [k if k in DAILY else nightly(k) for k in KINDS if k != "all honest"]
)
def test_it_beats_the_share_of_wins_and_the_plain_model(kind: str) -> None:
    rngs = map(np.random.default_rng, range(200, 204))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [measure(*world(rng, **KINDS[kind])) for rng in rngs]
    wins, plain, ours, held = np.mean(rows, axis=0)
    assert ours > wins
    assert ours > plain - 0.01
    assert held > 0.65  # of 90 % intervals; ties draw scores together, which is not modelled


def test_spammers_and_the_contrary_are_found() -> None:
    rng = np.random.default_rng(1)
    data, _ = world(rng, each=80)
    labeler, won = data.labeler, data.won_left
    won[labeler == 0] = rng.integers(2, size=80)
    won[labeler == 1] = 1 - won[labeler == 1]
    eta = BradleyTerry().fit(data).reliabilities_
    assert 0.3 < eta[0] < 0.7
    assert eta[1] < 0.2
    assert np.mean([eta[m] for m in range(2, 20)]) > 0.85


def test_one_that_always_wins_has_a_finite_score() -> None:
    found = BradleyTerry().fit([("a", "b", "x", "a")] * 5 + [("b", "c", "x", "b")] * 5)
    assert found.ranking_ == ("a", "b", "c")
    assert abs(found.scores_["a"]) < 6


def test_groups_that_never_meet_are_told() -> None:
    rows = [("a", "b", "x", "a"), ("c", "d", "x", "c")]
    with pytest.warns(UserWarning, match="fall into 2 groups"):
        found = BradleyTerry().fit(rows)
    assert found.groups_ == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert found.standard_errors_["a"] > 0.5 * found.spread_


def test_frames() -> None:
    rows = [("a", "b", "x", "a"), ("b", "a", "y", "tie"), ("a", "b", "y", "a")]
    found = BradleyTerry().fit(rows)
    assert found.score_columns() == found.value_columns()  # the name that it had at first
    frame = found.to_frame("pandas")
    assert frame["thing"].tolist() == ["a", "b"]
    assert frame["wins"].tolist() == [2.5, 0.5]
    assert frame["comparisons"].tolist() == [3, 3]
    assert found.skills_frame("pandas")["comparisons"].tolist() == [1, 2]


def test_numbers_as_names_beside_a_tie() -> None:
    found = as_comparisons([(7, 8, "x", "7"), (8, 9, "x", "tie")])
    assert found.things == (7, 8, 9)
    assert found.won_left.tolist() == [1.0, 0.5]
    assert as_comparisons(found) is found


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("a", "b", "x", "c")], r"row 0 .* winner is 'c', expected 'a', 'b' or 'tie'"),
        ([("a", "b", "x", "a"), ("c", "d", "x", "a")], "row 1 .* winner is 'a', expected 'c'"),
        ([("a", "a", "x", "a")], "'a' is compared with itself"),
        ([("a", "b", "x")], r"expected \(left, right, worker, winner\)"),
        ([("a", "b", "x", None)], "winner is missing"),
    ],
)
def test_bad_comparisons(rows: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        BradleyTerry().fit(rows)


@pytest.mark.parametrize("how", [{"spread": 0.0}, {"prior": (0.0, 1.0)}, {"prior": (1.0,)}])
def test_bad_parameters(how: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        BradleyTerry(**how).fit([("a", "b", "x", "a")])


def test_tables_of_an_arena_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [("x", "y", "model_a"), ("y", "x", "model_b"), ("x", "y", "tie (bothbad)")]
    file = tmp_path / "battles.csv"
    lines = [f"{n},{a},{b},gpt,{won}" for n, (a, b, won) in enumerate(rows)]
    file.write_text("\n".join(["question_id,model_a,model_b,judge,winner", *lines]))
    found = as_comparisons(file)
    assert found.things == ("x", "y")
    assert found.labelers == ("gpt",)
    assert found.won_left.tolist() == [1.0, 0.0, 0.5]
    named = as_comparisons({"model_a": ["b"], "model_b": ["a"], "judge": ["g"], "winner": ["a"]})
    assert named.won_left.tolist() == [0.0]  # the thing of that name, not the side
    with pytest.raises(
        InputError, match="no column 'left', or with another usual name; write --columns"
    ):
        as_comparisons({"one": ["x"], "two": ["y"], "judge": ["g"], "winner": ["x"]})
    with pytest.raises(InputError, match="winner is 'c', expected 'x', 'y' or 'tie'"):
        as_comparisons({"model_a": ["x"], "model_b": ["y"], "judge": ["g"], "winner": ["c"]})
