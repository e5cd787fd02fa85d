import math
from collections.abc import Callable
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.errors import InputError
from venire.paper import lemmas
from venire.paper.accuracy import evidence
from venire.paper.lemmas import plan
from venire.tools.arrays import Floats

PANEL = [0.9, 0.6, 0.8, 0.3]


def test_kappa_by_hand() -> None:
    assert lemmas.kappa(PANEL) == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert lemmas.kappa_bar(PANEL) == pytest.approx(0.15)
    assert lemmas.kappa([0.25, 0.5], classes=4) == pytest.approx([0.25, 0.0])


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6), st.integers(2, 5))
def test_d_bar_from_the_confusion_matrices(p: list[float], K: int) -> None:
    """The definition: the least mean KL divergence over pairs of columns."""
    matrices = [np.where(np.eye(K, dtype=bool), x, (1 - x) / (K - 1)) for x in p]

    def kl(a: Floats, b: Floats) -> float:
        return sum(float(x) * math.log(x / y) for x, y in zip(a, b, strict=True))

    expected = min(
        np.mean([kl(P[:, a], P[:, b]) for P in matrices])
        for a in range(K)
        for b in range(K)
        if a != b
    )
    assert lemmas.d_bar(p, K) == pytest.approx(expected, abs=1e-12)


def test_d_bar_is_twice_the_mean_evidence() -> None:
    assert lemmas.d_bar([0.9, 0.7], 3) == pytest.approx(2 * evidence([0.9, 0.7], 3).mean())


@given(st.floats(0.001, 0.45), st.integers(2, 5))
def test_lipschitz_is_the_slope_of_the_evidence_at_the_end(rho: float, K: int) -> None:
    h = rho * 1e-4
    low, high = evidence([1 - rho - h, 1 - rho + h], K)
    assert lemmas.lipschitz(rho, K) == pytest.approx((high - low) / (2 * h), rel=1e-4)


def test_lipschitz_as_printed() -> None:
    rho = 0.07
    printed = math.log((1 - rho) / rho) + 0.5 * (1 / rho - 1 / (1 - rho))
    assert lemmas.lipschitz(rho) == pytest.approx(printed)


@given(st.floats(0.02, 0.3), st.integers(2, 4), st.data())
def test_lipschitz_bounds_the_error_in_evidence(rho: float, K: int, data: st.DataObject) -> None:
    p, q = (data.draw(st.floats(1 / K, 1 - rho)) for _ in range(2))
    gap = abs(float(np.subtract(*evidence([p, q], K))))
    assert gap <= lemmas.lipschitz(rho, K) * abs(p - q) + 1e-12


def test_error_bound_and_its_inverse() -> None:
    assert lemmas.error_bound(100, 30, 2, 0.06) == pytest.approx(
        2 * math.sqrt(math.log(1000) / 100)
    )
    slots = lemmas.slots_for_bound(30, 0.05, 0.01)
    assert lemmas.error_bound(slots, 30, 2, 0.01) <= 0.05
    assert lemmas.error_bound(slots - 1, 30, 2, 0.01) > 0.05


def test_learning_slots_by_hand() -> None:
    p = [0.9, 0.9, 0.9]
    lemma = math.log(6 / 0.1) / (0.4**6 * (0.9 * 0.4) ** 2)
    assert lemmas.slots_for_lemma(p, 0.1) == math.ceil(lemma)
    assert lemmas.slots_for_lemma(p, 0.1, alpha=0.1, constant=2) == math.ceil(2 * 81 * lemma)
    assert lemmas.learning_slots(p, 0.5, 0.1) == math.ceil(lemma)
    assert lemmas.learning_slots(p, 0.001, 0.1) == math.ceil(4e6 * math.log(60))
    factor = lemmas.lipschitz(0.1)
    assert lemmas.learning_slots_for_evidence(p, 0.001, 0.1) == lemmas.learning_slots(
        p, 0.001 / factor, 0.1
    )


def test_labelers_needed_by_hand() -> None:
    p = [0.7, 0.7, 0.7]
    inner = 50 * 2 / 0.1 + math.log(50 * 2)
    expected = math.log(1 / 0.7) * math.log(inner) / (0.4 * math.log(7 / 3))
    assert lemmas.labelers_needed(50, p, 0.1) == math.ceil(expected)


def brute_force_gap(weights: list[int], p: list[float], max_delay: int) -> float:
    e = evidence(p)
    best = math.inf
    for m in range(len(p)):
        others = [i for i in range(len(p)) if i != m]
        sets = chain.from_iterable(combinations(others, r) for r in range(len(p)))
        totals = [sum(e[i] for i in V) for V in sets]
        values = [
            w * math.exp(-E) * (1 - math.exp(-e[m])) - d
            for w in weights
            for E in totals
            for d in range(max_delay + 1)
        ]
        gaps = (abs(x - y) for x, y in combinations(values, 2))
        best = min(best, *(g for g in gaps if g > 1e-12))
    return best


@pytest.mark.parametrize(
    ("weights", "p", "max_delay"),
    [
        ([3, 4], [0.8, 0.7], 2),
        ([3, 3, 5], [0.8, 0.7, 0.7], 3),
        ([1, 2, 10], [0.9, 0.85, 0.6, 0.55], 1),
    ],
)
def test_delta_gap_against_all_pairs(weights: list[int], p: list[float], max_delay: int) -> None:
    assert lemmas.delta_gap(weights, p, max_delay) == pytest.approx(
        brute_force_gap(weights, p, max_delay), rel=1e-6
    )


def test_delta_gap_of_items_that_cannot_differ() -> None:
    assert lemmas.delta_gap([5], [0.8], 0) == math.inf
    assert lemmas.delta_gap([5, 5], [0.8], 1) == pytest.approx(1.0)


def test_delta_gap_of_the_largest_panel() -> None:
    gap = lemmas.delta_gap(range(3, 11), np.linspace(0.55, 0.9, lemmas.MAX_LABELERS), 8)
    assert 0 < gap < 1e-6


def brute_force_decisions(weights: list[int], p: list[float]) -> float:
    """Besides `brute_force_gap`: gains after a delay, from zero, and labelers from each other."""
    e = [float(x) for x in evidence(p)]
    best = max(weights) * min(abs(x - y) for x, y in combinations([0.0, *e], 2))
    for m in range(len(p)):
        others = [x for i, x in enumerate(e) if i != m]
        for V in chain.from_iterable(combinations(others, r) for r in range(len(p))):
            for w in weights:
                worth = w * math.exp(-sum(V)) * (1 - math.exp(-e[m]))
                best = min(best, *(abs(worth - d) for d in range(1, math.ceil(w) + 1)))
    return best


@pytest.mark.parametrize(
    ("weights", "p", "max_delay"),
    [
        ([3, 4], [0.8, 0.7], 2),
        ([3, 3, 5], [0.8, 0.7, 0.69999], 3),
        ([1, 2, 10], [0.9, 0.85, 0.6, 0.55], 1),
        ([7], [0.9, 0.50001], 1),
    ],
)
def test_decision_gap_against_all_decisions(
    weights: list[int], p: list[float], max_delay: int
) -> None:
    whole = min(brute_force_gap(weights, p, max_delay), brute_force_decisions(weights, p))
    assert lemmas.decision_gap(weights, p, max_delay) == pytest.approx(whole, rel=1e-6)


def test_a_gain_of_zero_leaves_no_room_for_error() -> None:
    w = 1 / -math.expm1(-float(evidence(0.9)))
    assert lemmas.decision_gap([w], [0.9, 0.8, 0.7], 3) < 1e-12
    assert lemmas.delta_gap([w], [0.9, 0.8, 0.7], 3) > 1e-3


def test_required_evidence_error() -> None:
    assert lemmas.required_evidence_error(0.3, 5.0, 3) == pytest.approx(0.3 / (6 * 5 * 8))


@pytest.mark.parametrize(
    "call",
    [
        lambda: lemmas.delta_gap([1], [0.7] * 15, 1),
        lambda: lemmas.delta_gap([0], [0.7], 1),
        lambda: lemmas.delta_gap([1], [0.7], -1),
        lambda: lemmas.kappa([0.5, 1.0]),
        lambda: lemmas.kappa([]),
        lambda: lemmas.kappa([0.5], classes=1),
        lambda: lemmas.learning_slots([0.7, 0.8], 0.1),
        lambda: lemmas.learning_slots([0.4, 0.4, 0.4], 0.1),
        lambda: lemmas.learning_slots([0.9, 0.9, 0.5], 0.1),
        lambda: lemmas.learning_slots([0.9, 0.9, 0.7], 0.0),
        lambda: lemmas.learning_slots([0.9, 0.9, 0.7], 0.1, delta=1.0),
        lambda: lemmas.learning_slots([0.9, 0.9, 0.7], 0.1, alpha=0.8),
        lambda: lemmas.labelers_needed(0, [0.9, 0.9, 0.7]),
        lambda: lemmas.error_bound(0, 3),
        lambda: lemmas.lipschitz(0.0),
    ],
)
def test_refuses(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"expected|not all"):
        call()


def test_plan_collects_and_says_it_in_words() -> None:
    p = 0.9 - 0.005 * np.arange(1, 31)
    made = plan(p, 0.1, 0.05)
    assert made.kappa_3 == pytest.approx(0.385)
    assert made.learning_slots == lemmas.learning_slots(p, 0.1, 0.05)
    assert made.error_bound == pytest.approx(lemmas.error_bound(made.learning_slots, 30, 2, 0.05))
    assert made.evidence_slots == lemmas.learning_slots_for_evidence(p, 0.1, 0.05)
    assert made.large_enough
    assert made.delta_gap is None
    text = "\n".join(made.describe())
    for said in ("kappa_3 = 0.385", f"{made.learning_slots:,} slots", "is large enough"):
        assert said in text


def test_plan_of_a_small_instance_knows_delta() -> None:
    made = plan([0.9, 0.8, 0.7], 0.1, 0.05, weights=[3, 4], max_delay=2)
    assert made.delta_gap == lemmas.delta_gap([3, 4], [0.9, 0.8, 0.7], 2)
    assert made.decision_gap == lemmas.decision_gap([3, 4], [0.9, 0.8, 0.7], 2)
    assert made.evidence_error == pytest.approx(made.decision_gap / (6 * 4 * 8))
    assert made.same_decisions_slots is not None
    assert made.same_decisions_slots > made.evidence_slots
    assert "Delta = " in "\n".join(made.describe())
