"""Rates with judges' help: equal to PPI++ in plain words, valid, and no worse than gold alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.audits.audit import cells_of, draw_for_rate, merged
from venire.audits.rates import (
    Rate,
    Sample,
    precision_of,
    rate_difference,
    recall_of,
    share_of,
    win_rate,
)
from venire.errors import InputError

Floats = NDArray[np.float64]


def plain_ppi(y: list[float], f: list[float], others: list[float]) -> float:
    """PPI++ as printed: gold on n, the judges on N other items, lambda = Cov / ((1 + n/N) Var)."""
    n, N = len(y), len(others)
    mean_y, mean_f = sum(y) / n, sum(f) / n
    cov = sum((a - mean_y) * (b - mean_f) for a, b in zip(y, f, strict=True))
    var = sum((b - mean_f) ** 2 for b in f)
    slope = cov / var / (1 + n / N)
    return slope * sum(others) / N + sum(a - slope * b for a, b in zip(y, f, strict=True)) / n


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_with_yes_and_no_it_is_ppi(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = (rng.random(200) < 0.4).astype(np.float64)
    truth = np.where(rng.random(200) < 0.8, said, 1 - said)
    place = rng.permutation(200)[:60]
    sample = Sample(said, said, place, truth[place])
    cells = merged(cells_of(said, said, 0), place)
    best, alone = sample.intervals(0.95)
    wanted = plain_ppi(truth[place].tolist(), said[place].tolist(), np.delete(said, place).tolist())
    assert cells.max() == 1
    assert best.estimate == pytest.approx(wanted) or best == alone


def covered(
    truth: Floats, said: Floats, score: Floats, n: int, draws: int, level: float = 0.9
) -> tuple[float, float]:
    """How often the interval holds, and its width as a share of that by gold alone."""
    rng, held, ratio = np.random.default_rng(3), 0, []
    cells = cells_of(said, score, 0)
    for _ in range(draws):
        place = rng.permutation(len(truth))[:n]
        rate = Sample(said, score, place, truth[place], None, cells).rate(level)
        held += rate.low - 1e-9 <= truth.mean() <= rate.high + 1e-9
        ratio.append((rate.high - rate.low) / max(rate.gold_only.width, 1e-9))
    return held / draws, float(np.mean(ratio))


@pytest.mark.parametrize("share", [0.03, 0.4])
@pytest.mark.parametrize(
    ("found", "alarms"), [(0.3, 0.3), (0.1, 0.9), (0.97, 0.02)], ids=["useless", "inverted", "good"]
)
def test_it_holds_whatever_the_judges_do(share: float, found: float, alarms: float) -> None:
    rng = np.random.default_rng(7)
    truth = (rng.random(500) < share).astype(np.float64)
    said = (rng.random(500) < np.where(truth == 1, found, alarms)).astype(np.float64)
    held, ratio = covered(truth, said, said, 40, 300)
    assert held >= 0.9 - 3 * math.sqrt(0.09 / 300)
    assert ratio <= 1.03
    if share == 0.4 and found != alarms:
        assert ratio < 0.85


def test_without_judges_it_is_gold_alone() -> None:
    rng = np.random.default_rng(2)
    truth = (rng.random(400) < 0.3).astype(np.float64)
    place = rng.permutation(400)[:50]
    rate = Sample(np.zeros(400), np.zeros(400), place, truth[place]).rate()
    assert rate.interval == rate.gold_only
    assert rate.worth == 50


def test_all_gold_leaves_nothing_to_doubt() -> None:
    truth = {i: "x" if i % 3 else "y" for i in range(60)}
    verdicts = dict.fromkeys(truth, "x")
    rate = share_of(verdicts, truth, "y")
    assert (rate.estimate, rate.low, rate.high) == pytest.approx((1 / 3, 1 / 3, 1 / 3))


@given(st.integers(0, 10_000), st.integers(5, 80))
@settings(deadline=None, max_examples=30)
def test_intervals_are_in_order(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.array(["a", "b", "c"])
    truth = dict(enumerate(labels[rng.integers(0, 3, 100)].tolist()))
    verdicts = {
        i: x if rng.random() < 0.7 else str(labels[rng.integers(3)]) for i, x in truth.items()
    }
    score = {i: float(rng.random()) for i in truth}
    gold = {i: truth[i] for i in rng.permutation(100)[:n].tolist()}
    for make in (share_of, precision_of, recall_of):
        for how in ((False, False), (True, False), (False, True)):
            rate = make(verdicts, gold, "a", score, None, 0.95, *how)
            assert 0 <= rate.low <= rate.high <= 1
            assert math.isnan(rate.estimate) or rate.low - 1e-9 <= rate.estimate <= rate.high + 1e-9
            assert rate.worth >= rate.gold - 1e-6
    if n >= 60:  # no cells are joined
        one = win_rate(verdicts, gold, ("a", "b", "c"))
        other = win_rate(verdicts, gold, ("b", "a", "c"))
        assert one.estimate == pytest.approx(1 - other.estimate)
        assert one.low == pytest.approx(1 - other.high)


def test_the_process_is_less_certain_than_these_items() -> None:
    truth = {i: "x" if i % 4 == 0 else "y" for i in range(300)}
    gold = {i: truth[i] for i in range(100)}
    these, process = (share_of(truth, gold, "x", ongoing=on) for on in (False, True))
    assert process.low < these.low < these.high < process.high


@pytest.mark.parametrize("make", [precision_of, recall_of])
def test_precision_and_recall_hold(make: type) -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(400) < 0.25
    said = rng.random(400) < np.where(truth, 0.8, 0.1)
    names = np.array(["no", "yes"])
    verdicts, known = (dict(enumerate(names[x.astype(int)].tolist())) for x in (said, truth))
    both = float((truth & said).sum())
    target = both / (said.sum() if make is precision_of else truth.sum())
    held = 0
    for _ in range(200):
        gold = {i: known[i] for i in rng.permutation(400)[:60].tolist()}
        rate: Rate = make(verdicts, gold, "yes", level=0.9)
        held += rate.low <= target <= rate.high
    assert held / 200 >= 0.9 - 3 * math.sqrt(0.09 / 200)


def test_sides_of_pairs_are_turned() -> None:
    verdicts = {1: "l", 2: "r", 3: "t"}
    sides = {1: ("a", "b"), 2: ("b", "a"), 3: ("b", "c")}
    assert win_rate(verdicts, verdicts, "lrt", sides, of="a").estimate == 1
    assert win_rate(verdicts, verdicts, "lrt", sides, of="b").estimate == pytest.approx(1 / 6)


def test_a_difference_holds_more_than_each() -> None:
    truth = {i: "x" if i % 4 == 0 else "y" for i in range(200)}
    gold = {i: truth[i] for i in range(80)}
    rate = share_of(truth, gold, "x")
    none = rate_difference(rate, rate)
    assert none.low < 0 < none.high
    assert none.high - none.low > rate.high - rate.low


def test_what_was_drawn_more_often_counts_less() -> None:
    """Many draws by cells: right on average, and held."""
    rng = np.random.default_rng(0)
    score = rng.beta(0.4, 0.8, 600)
    truth = dict(enumerate(np.where(rng.random(600) < score, "x", "y").tolist()))
    verdicts = dict(enumerate(np.where(score > 0.5, "x", "y").tolist()))
    told = dict(enumerate(score.tolist()))
    target = sum(x == "x" for x in truth.values()) / 600
    held, middle = 0, []
    for seed in range(150):
        asked = draw_for_rate(verdicts, "x", 60, seed, told)
        gold = {one.task: truth[one.task] for one in asked}
        rate = share_of(verdicts, gold, "x", told, dict(asked), level=0.9)
        held += rate.low <= target <= rate.high
        middle.append(rate.estimate)
    assert held / 150 >= 0.9 - 3 * math.sqrt(0.09 / 150)
    assert np.mean(middle) == pytest.approx(target, abs=0.015)


@given(st.integers(0, 1000), st.integers(1, 90))
@settings(deadline=None, max_examples=30)
def test_a_draw_has_the_probabilities_it_says(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    score = dict(enumerate(rng.random(90).round(1).tolist()))
    verdicts = {i: "x" if x > 0.5 else "y" for i, x in score.items()}
    asked = draw_for_rate(verdicts, "x", n, seed, score)
    assert len({one.task for one in asked}) == len(asked) == n
    assert asked == draw_for_rate(dict(reversed(verdicts.items())), "x", n, seed, score)
    cells = cells_of(
        np.array([verdicts[i] == "x" for i in range(90)], float), np.array(list(score.values())), 1
    )
    if n >= 80:
        sizes = np.bincount(cells)
        drawn = np.bincount(cells[[one.task for one in asked]], minlength=len(sizes))
        for one in asked:
            cell = cells[one.task]
            assert one.probability == pytest.approx(drawn[cell] / sizes[cell])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: share_of({}, {}, "x"), "no verdicts"),
        (lambda: share_of({1: "x"}, {2: "x"}, "x"), "no verdict on 2"),
        (lambda: share_of({1: "x"}, {1: "x"}, "x", level=95), "got the level 95"),
        (lambda: share_of({1: "x"}, {1: "x"}, "x", {1: 2.0}), "outside 0 to 1"),
        (lambda: share_of({1: "x"}, {1: "x"}, "x", None, {1: 0.0}), "outside 0 to 1"),
        (lambda: share_of({1: "x"}, {1: "x"}, "x", ongoing=True, anytime=True), "exclude"),
        (
            lambda: share_of({1: "x"}, {1: "x"}, "x", None, {1: 0.5}, anytime=True),
            "drawn at random",
        ),
        (lambda: win_rate({1: "x"}, {1: "x"}, ("x",)), "expected two or three"),
        (lambda: win_rate({1: "z"}, {1: "x"}, ("x", "y")), "expected one of"),
        (lambda: draw_for_rate({1: "x"}, "x", 2, 0), "expected from 1 to the 1"),
        (lambda: draw_for_rate({1: "x"}, "x", 1, -1), "seed -1"),
    ],
)
def test_what_is_wrong_is_said(call: type, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
