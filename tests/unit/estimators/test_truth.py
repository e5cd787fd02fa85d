"""What gold teaches: the regression, the candidates and the mixture against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from venire.errors import InputError
from venire.estimators import Auto
from venire.estimators import gold as calibration
from venire.estimators import mixture as module
from venire.estimators.mixture import fit_logit, mixture_by_gold
from venire.labels import LabelTable
from venire.tools.arrays import softmax


def plain_height(w: Any, x: Any, truth: Any, mean: Any, spread: Any) -> float:
    """The log-posterior of the weights, densities with their constants."""
    found = 0.0
    for i in range(len(truth)):
        scores = [float(x[i, k] @ w) for k in range(x.shape[1])]
        found += scores[truth[i]] - math.log(sum(math.exp(z) for z in scores))
    for value, m, s in zip(w, mean, spread, strict=True):
        found -= ((value - m) / s) ** 2 / 2 + math.log(s * math.sqrt(2 * math.pi))
    return found


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 4))
def test_the_regression_is_the_most_probable_one(seed: int, classes: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    x, truth = rng.normal(size=(12, classes, features)), rng.integers(classes, size=12)
    mean, spread = rng.normal(size=features), rng.uniform(0.3, 2.0, size=features)
    found = fit_logit(x, np.zeros((12, classes)), truth, mean, spread)
    plain = minimize(lambda w: -plain_height(w, x, truth, mean, spread), mean, tol=1e-10)
    assert np.allclose(found.weights, plain.x, atol=1e-3)
    assert np.allclose(found.left_out.sum(axis=1), 1.0)


def test_the_evidence_is_the_integral() -> None:
    rng = np.random.default_rng(0)
    x, truth = rng.normal(size=(15, 3, 1)), rng.integers(3, size=15)
    mean, spread = np.array([0.4]), np.array([0.8])
    found = fit_logit(x, np.zeros((15, 3)), truth, mean, spread)
    grid = np.linspace(-5, 6, 4001)
    heights = [plain_height(np.array([w]), x, truth, mean, spread) for w in grid]
    assert found.evidence == pytest.approx(math.log(np.trapezoid(np.exp(heights), grid)), abs=0.03)


def test_left_out_is_close_to_a_fit_without_the_item() -> None:
    rng = np.random.default_rng(1)
    x, truth = rng.normal(size=(25, 2, 3)), rng.integers(2, size=25)
    mean, spread, none = np.zeros(3), np.ones(3), np.zeros((25, 2))
    found = fit_logit(x, none, truth, mean, spread)
    for i in range(0, 25, 6):
        rest = np.arange(25) != i
        without = fit_logit(x[rest], none[rest], truth[rest], mean, spread)
        assert np.allclose(found.left_out[i], softmax(x[i] @ without.weights), atol=0.02)


def world(seed: int, items: int = 40, labelers: int = 4, classes: int = 2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=items)
    right = rng.random((items, labelers)) < rng.uniform(0.4, 0.95, size=labelers)
    said = np.where(right, truth[:, None], rng.integers(classes, size=(items, labelers)))
    said[rng.random(said.shape) < 0.3] = -1
    said[:2, 0] = 0, 1
    return said, truth, rng.dirichlet(np.ones(classes) * 0.7, size=(2, items))


def plain_evidence(said: Any, known: Any, aggregates: Any) -> list[float]:
    """The prior mass of each aggregate, times the probability that it gives to gold."""
    items, K = len(said), aggregates.shape[2]
    gold = [i for i in range(items) if known[i] >= 0 and (said[i] >= 0).any()]
    evidence = []
    for a, q in enumerate(aggregates):
        logs = np.log(np.maximum(q, 1e-4))
        x = logs - logs.mean(axis=1, keepdims=True)
        there = (said >= 0).any(axis=1)
        x = x / math.sqrt((x[there] ** 2).sum() / there.sum() / (K - 1))
        prior = [
            math.exp(-((math.log(u / module.SLOPE_PRIOR[0]) / module.SLOPE_PRIOR[1]) ** 2) / 2)
            for u in module.SLOPES
        ]
        fits = []
        for u, p in zip(module.SLOPES, prior, strict=True):
            made = (1 - module.DOUBT) * softmax(u * x) + module.DOUBT / K
            fits.append(p / sum(prior) * math.prod(made[i, known[i]] for i in gold))
        mass = (
            module.AGGREGATE_MASS
            * (module.DEFAULT_FACTOR if a == 0 else 1)
            / (module.DEFAULT_FACTOR + 1)
        )
        if a == 0:  # a part of the mass of taught votes, which need more items
            mass += module.TAUGHT_MASS * (1 - len(gold) / module.ENOUGH_GOLD)
        evidence.append(mass * sum(fits))
    return evidence


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_aggregates_are_weighed_as_in_a_plain_loop(seed: int, classes: int) -> None:
    said, truth, aggregates = world(seed, classes=classes)
    table = LabelTable.from_matrix(said, classes=classes)
    known = np.where(np.arange(len(truth)) < 9, truth, -1)
    found = mixture_by_gold(table, known, ("first", "second"), list(aggregates))
    assert found is not None
    evidence = plain_evidence(said, known, aggregates)
    assert found.weights[0] / found.weights[1] == pytest.approx(evidence[0] / evidence[1])
    assert found.weights.sum() + found.single.sum() == pytest.approx(1.0)
    q = found.posteriors(table, list(aggregates))
    assert np.allclose(q.sum(axis=1), 1.0)
    assert (q > 0).all()


def test_a_labeler_is_weighed_as_an_urn() -> None:
    """Two labelers, the same but for one label: their weights differ as their predictions do."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=60)
    said = np.column_stack([truth, truth, rng.integers(2, size=(60, 2))])
    said[4, 1] = 1 - truth[4]
    table, flat = LabelTable.from_matrix(said), np.full((60, 2), 0.5)
    known = np.where(np.arange(60) < 12, truth, -1)
    found = mixture_by_gold(table, known, ("flat",), [flat])
    assert found is not None
    weights = []
    for m in (0, 1):
        prior = {}
        for label in (0, 1):
            alone = np.full(2, (said[:, m] == label).sum() / 2)
            panel = np.array([(said == label).sum() / 2] * 2) + 0.1 + 0.5 * np.eye(2)[label]
            alone = alone + 2 * panel / panel.sum()
            good = np.where(np.arange(2) == label, 0.85, 0.15)
            prior[label] = module.TABLE_LABELS * (0.5 * alone / alone.sum() + 0.5 * good)
        chance = 1.0
        for i in range(12):
            urn = prior[said[i, m]]
            chance *= urn[truth[i]] / urn.sum()
            urn[truth[i]] += 1
        weights.append(chance)
    assert found.single[0] / found.single[1] == pytest.approx(weights[0] / weights[1])


def test_the_order_of_labels_and_labelers_is_irrelevant() -> None:
    said, truth, _ = world(5, items=60, labelers=5)
    rows = [(i, f"w{m}", int(said[i, m])) for i in range(60) for m in range(5) if said[i, m] >= 0]
    gold = {i: int(truth[i]) for i in range(15)}
    one = Auto().fit(rows, gold=gold).probas_
    other = Auto().fit(rows[::-1], gold=gold).probas_
    for i in (20, 40, 59):
        assert one[i][0] == pytest.approx(other[i][0], abs=1e-6)


def test_a_judge_who_knows_better_than_all_is_found() -> None:
    rng = np.random.default_rng(7)
    truth = rng.integers(2, size=400)
    herd = np.where(rng.random(400) < 0.6, truth, 1 - truth)
    follow = [np.where(rng.random(400) < 0.9, herd, 1 - herd) for _ in range(6)]
    expert = np.where(rng.random(400) < 0.92, truth, 1 - truth)
    table = LabelTable.from_matrix(np.column_stack([*follow, expert]))
    told = Auto().fit(table, gold={i: int(truth[i]) for i in range(20)})
    right = np.mean([told.labels_[i] == truth[i] for i in range(20, 400)])
    untold = Auto().fit(table)
    alone = np.mean([untold.labels_[i] == truth[i] for i in range(20, 400)])
    assert right > 0.85 > 0.7 > alone
    assert told.checked_ is not None
    assert told.rests_on_ == "checked on 20 gold labels"
    assert next(iter(told.checked_.explanations)) in ("6 alone", "taught by gold")
    assert untold.rests_on_ == "by labels alone"


def test_gold_of_items_without_labels_is_known_and_teaches_nothing() -> None:
    table = LabelTable.from_matrix([[0, 1, 0], [1, 1, 1], [-1, -1, -1]])
    told = Auto().fit(table, gold={2: 1})
    assert told.checked_ is None
    assert told.posteriors_[2].tolist() == [0.0, 1.0]


def test_items_that_were_asked_weigh_less() -> None:
    """The odds of two aggregates, less those of their masses, are to the power of ASKED."""
    said, truth, aggregates = world(11)
    table = LabelTable.from_matrix(said)
    known = np.where(np.arange(len(truth)) < 9, truth, -1)
    drawn, asked = (
        mixture_by_gold(table, known, ("first", "second"), list(aggregates), which)
        for which in ((), range(9))
    )
    assert drawn is not None
    assert asked is not None
    mass = (
        module.AGGREGATE_MASS / (module.DEFAULT_FACTOR + 1) * np.array([module.DEFAULT_FACTOR, 1.0])
    )
    mass[0] += module.TAUGHT_MASS * (1 - drawn.gold / module.ENOUGH_GOLD)
    odds = [np.log(one.weights[:2] / mass) for one in (drawn, asked)]
    assert odds[1][0] - odds[1][1] == pytest.approx(module.ASKED_POWER * (odds[0][0] - odds[0][1]))


def test_taught_votes_need_gold_labels_of_each_labeler() -> None:
    """Sixty labelers with one gold label each teach no weights: the default has that mass."""
    rng = np.random.default_rng(2)
    rows = [(i, f"w{3 * i + m}", int(rng.integers(2))) for i in range(20) for m in range(3)]
    table = LabelTable.from_rows(rows)
    flat = np.full((20, 2), 0.5)
    found = mixture_by_gold(table, np.array([i % 2 for i in range(20)]), ("flat",), [flat])
    assert found is not None
    assert found.weights[1:].sum() < module.TAUGHT_MASS / 2


def plain_ceiling(sure: Any, wrong: Any, of: float) -> float:
    """The highest bound among all sets of gold items that are at least as sure as some limit."""
    every, of_wrong = calibration.PRIOR_VERDICTS
    limits = [x for x in sure if x <= of] or [min(sure)]
    found = []
    for limit in limits:
        there = [w for x, w in zip(sure, wrong, strict=True) if x >= limit]
        found.append(1 - (sum(there) + of_wrong) / (len(there) + every))
    return float(max(*found, 0.5))


def plain_mean(q: Any, gold: Any, truth: Any) -> Any:
    """The mean of (1 - h) q^t + h / K over the grid, by the probability of gold."""
    K, found, whole = q.shape[1], np.zeros(q.shape), 0.0
    steps = np.gradient(calibration.HAZARDS)
    for heat in np.exp(calibration.LOG_TEMPERATURES):
        for hazard, step in zip(calibration.HAZARDS, steps, strict=True):

            def made(p: Any, heat: float = heat, hazard: float = hazard) -> Any:
                powers = p**heat
                return (1 - hazard) * powers / powers.sum(axis=1, keepdims=True) + hazard / K

            chance = math.exp(-((math.log(heat) / calibration.TEMPERATURE_SPREAD) ** 2) / 2)
            chance *= step * math.exp(-hazard / calibration.MEAN_HAZARD)
            chance *= math.prod(made(gold)[i, k] for i, k in enumerate(truth))
            found, whole = found + chance * made(q), whole + chance
    return found / whole


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 40))
def test_confidence_is_calibrated_as_in_plain_loops(seed: int, classes: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    gold, q = (rng.dirichlet(np.full(classes, 0.3), size=n) + 1e-3 for n in (size, 50))
    gold, q = (p / p.sum(axis=1, keepdims=True) for p in (gold, q))
    truth = np.where(rng.random(size) < 0.8, gold.argmax(axis=1), rng.integers(classes, size=size))
    found = calibration.fitted_calibration(gold, truth).applied(q)
    plain = plain_mean(q, gold, truth)
    assert np.allclose(found.sum(axis=1), 1.0)
    if size < calibration.CEILING_GOLD:
        assert np.allclose(found, plain, atol=0.01)  # temperatures of no weight are left out
        return
    heard = plain_mean(gold, gold, truth)
    sure, wrong = heard.max(axis=1), heard.argmax(axis=1) != truth
    for p, got in zip(plain, found, strict=True):
        at = p.max()
        if np.abs(sure - at).min() > 0.01:  # not at a step of the ceiling
            assert got.max() == pytest.approx(min(at, plain_ceiling(sure, wrong, at)), abs=0.01)
    assert found.max() <= calibration.most_shown(size) + 1e-5
    order = np.argsort(plain.max(axis=1))
    assert (np.diff(found.max(axis=1)[order]) > -1e-9).all()
    assert (found.argmax(axis=1) == plain.argmax(axis=1)).all()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(0, 25))
def test_votes_taught_by_asked_items_abstain_where_nothing_is_contested(
    seed: int, classes: int, drawn: int
) -> None:
    rng = np.random.default_rng(seed)
    table = LabelTable.from_matrix(rng.integers(classes, size=(60, 4)), classes=classes)
    aggregates = [rng.dirichlet(np.full(classes, 0.3), size=60) for _ in range(2)]
    known = np.where(np.arange(60) < 10 + drawn, rng.integers(classes, size=60), -1)
    found = mixture_by_gold(table, known, ["a", "b"], aggregates, set(range(10)))
    assert found is not None
    rows = module.candidate_rows(table, found, *aggregates)
    free = module.candidate_rows(table, replace(found, contested=None), *aggregates)
    if drawn >= module.ENOUGH_GOLD:
        assert found.contested is None
        return
    floored = np.maximum(aggregates[0], 1e-4)
    sure = [max(q) / sum(q) for q in floored.tolist()]
    limit = np.quantile(sure[:10], module.CONTESTED_SHARE)
    assert found.contested == pytest.approx(limit)
    for i in range(60):
        agree = aggregates[0][i].argmax() == aggregates[1][i].argmax()
        silent = agree and sure[i] > limit + 1e-9
        for vote in (2, 3):
            expected = rows[0, i] if silent else free[vote, i]
            if abs(sure[i] - limit) > 1e-9:
                assert np.allclose(rows[vote, i], expected)


def plain_factor(logs: Any, truth: Any, before: float) -> float:
    """The factor by sums over a grid, without arrays."""
    grid = [float(x) for x in calibration.LOG_FACTORS]
    middle = min(max(math.log(before), grid[0]), grid[-1])
    sure, heights = [], []
    for x in grid:
        height, most = -((x - middle) ** 2) / 2, 0.0
        for row, k in zip(logs, truth, strict=True):
            odds = [math.exp(math.exp(x) * (v - max(row))) for v in row]
            height += math.log(max(odds[k] / sum(odds), 1e-300))
            most += max(odds) / sum(odds) / len(truth)
        heights.append(height)
        sure.append(most)
    weights = [math.exp(h - max(heights)) for h in heights]
    wanted = sum(w * s for w, s in zip(weights, sure, strict=True)) / sum(weights)
    return math.exp(float(np.interp(wanted, sure, grid)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.floats(0.03, 2.0))
def test_the_certainty_of_a_stream_is_that_of_a_plain_sum(
    seed: int, classes: int, before: float
) -> None:
    rng = np.random.default_rng(seed)
    logs, truth = rng.normal(0, 2, size=(15, classes)), rng.integers(classes, size=15)
    found = calibration.certainty_by_gold(logs, truth, before)
    assert found == pytest.approx(plain_factor(logs.tolist(), truth.tolist(), before), rel=1e-6)


def test_more_errors_make_less_certain() -> None:
    logs = np.log(np.tile([0.9, 0.1], (60, 1)))
    wrong = [np.arange(60) < number for number in (0, 3, 6, 12, 24)]
    found = [calibration.certainty_by_gold(logs, x.astype(int), 0.5) for x in wrong]
    assert found == sorted(found, reverse=True)
    assert found[2] == pytest.approx(1.0, abs=0.1)  # a tenth is wrong, as they say


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_gold_item_is_never_surer_without_its_own_gold(seed: int) -> None:
    """The row of its true class loses the label itself, counted out one by one."""
    rng = np.random.default_rng(seed)
    items, labelers = np.repeat(np.arange(12), 3), rng.integers(4, size=36)
    said, truth = rng.integers(2, size=36), rng.integers(2, size=5)
    matrices = np.stack([[[p, 1 - p], [1 - p, p]] for p in rng.uniform(0.55, 0.95, 4)])
    logs = np.zeros((12, 2))
    for i, m, k in zip(items, labelers, said, strict=True):
        logs[i] += np.log(matrices[m, :, k])
    rows = [0, 3, 4, 7, 9]
    found = calibration.without_own_gold(items, labelers, said, logs, matrices, rows, truth)
    q = softmax(logs)
    for n, row in enumerate(rows):
        q[row] = np.eye(2)[truth[n]]
    for n, row in enumerate(rows):
        k, plain = truth[n], logs[row].copy()
        for i, m, a in zip(items, labelers, said, strict=True):
            if i == row:
                w = 2 + sum(q[j, k] for j, who in zip(items, labelers, strict=True) if who == m)
                p = matrices[m, k, a]
                plain[k] += math.log(max(0.01, (p * w - 1) / (w - 1))) - math.log(p)
        assert found[n] == pytest.approx(plain)
        assert found[n, k] <= logs[row, k]


def test_gold_that_is_no_mapping_is_refused_with_the_way_to_make_one() -> None:
    pd = pytest.importorskip("pandas")
    gold = pd.DataFrame({"task": ["a"], "label": ["x"]})
    with pytest.raises(InputError, match=r"got gold as DataFrame.*dict\(zip\(gold.task"):
        Auto().fit([("a", "ann", "x"), ("b", "ann", "y")], gold=gold)
