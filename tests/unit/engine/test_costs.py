"""Errors that do not cost the same: the verdict of least expected cost, and what it costs."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import Exit, Item, Label, Labeler, LearnWhileServing, Realised, Scheduler
from venire.costs import Costs
from venire.scheduling.base import Belief
from venire.scheduling.estimates import Guess, distinct_classes
from venire.scheduling.kernel.verdicts import charged, decide_apart, leaning
from venire.tools.arrays import Floats

CLASSES = ("keep", "remove")
COSTS: Costs = {("remove", "keep"): 20.0, ("keep", "remove"): 1.0}

#: How often each of three models is right, by class.
MODELS = np.array([(0.96, 0.85), (0.94, 0.80), (0.92, 0.88)])


def least_cost(belief: Belief, costs: Floats, labels: list[tuple[int, int]]) -> tuple[int, float]:
    """The verdict of least expected cost, said plainly; then the more probable, the later one.

    And the probability of its class: the one by which costs are expected.

    The odds of a class are its share times what the labels say to the power of the certainty.
    """
    K = len(costs)
    lean, votes = leaning(belief, K), belief.votes(K)
    scores = lean.copy()
    for m, said in labels:
        scores = scores + votes[m, said]
    logs = [float(lean[j] + belief.certainty * (scores[j] - lean[j])) for j in range(K)]
    odds = [math.exp(x - max(logs)) for x in logs]
    expected = []
    for v in range(K):
        cost = 0.0
        for j in range(K):
            cost += odds[j] * costs[j, v]
        expected.append(cost)
    best = min(range(K), key=lambda v: (expected[v], -scores[v], -v))
    return best, odds[best] / sum(odds)


@given(
    st.integers(2, 4),
    st.integers(0, 2**32),
    st.sampled_from([0.25, 0.5, 1.0]),
    st.sampled_from([(1.0, 2.0), (1.0, 4.0, 20.0), (0.5, 1.0, 10.0)]),
    st.booleans(),
)
def test_the_fast_verdict_is_that_of_least_expected_cost(
    K: int, seed: int, certain: float, prices: tuple[float, ...], even: bool
) -> None:
    """Tie for tie: with few prices and equal labelers many verdicts cost the same."""
    rng = np.random.default_rng(seed)
    costs = rng.choice(prices, (K, K)) * (1.0 - np.eye(K))
    p = np.full(5, 0.8) if even else rng.uniform(0.4, 0.95, 5)
    prior = None if even else rng.dirichlet(np.full(K, 3.0))
    belief = Belief(p, None, prior, certainty=certain)
    sizes = rng.integers(1, 6, 20)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    who = np.concatenate([rng.permutation(5)[:n] for n in sizes]).astype(np.int64)
    said = rng.integers(K, size=len(who))
    found, sure = decide_apart(belief, K, start, who, said, costs)
    for i in range(20):
        labels = list(zip(who[start[i] : start[i + 1]], said[start[i] : start[i + 1]], strict=True))
        best, probability = least_cost(belief, costs, labels)
        assert found[i] == best
        assert sure[i] == pytest.approx(probability)


def test_dependence_makes_no_class_more_frequent() -> None:
    """With nothing said for it, a class is as probable as its share, however certain labels are."""
    start, who, said = np.array([0, 2]), np.array([0, 1]), np.array([0, 1])
    costs, p, shares = np.array([[0.0, 1.0], [20.0, 0.0]]), np.full(2, 0.9), np.array([0.97, 0.03])
    for certain in (1.0, 0.3, 0.05):
        belief = Belief(p, None, shares, certainty=certain)
        assert decide_apart(belief, 2, start, who, said, costs)[0].tolist() == [0]


def test_costs_count_between_classes_that_stand_out() -> None:
    costs = np.array([[0.0, 1.0, 5.0], [20.0, 0.0, 1.0], [7.0, 1.0, 0.0]])
    p = np.full(3, 0.9)
    assert charged(None, costs) is None
    assert charged(Belief(p), costs) is costs
    found = charged(Belief(p, distinct=np.array([True, True, False])), costs)
    assert found is not None
    assert found.tolist() == [[0, 1, 1], [20, 0, 1], [1, 1, 0]]
    assert charged(Belief(p, distinct=np.zeros(3, np.bool_)), costs) is None


def test_a_class_of_doubtful_items_does_not_stand_out() -> None:
    """Nobody has seen an item of the class: it is made of items with one wrong label."""
    rng = np.random.default_rng(0)
    said = (rng.random((60, 3)) < 0.06).astype(int)
    labels = np.array([(s, m, said[s, m], 0) for s in range(60) for m in range(3)])
    rows = np.array([[[0.96, 0.04], [0.66, 0.34]]] * 3)
    guess = Guess(np.full(3, 0.8), rows, np.array([0.8, 0.2]))
    assert distinct_classes(labels, guess, 2).tolist() == [True, False]
    assert distinct_classes(labels, None, 2).tolist() == [False, False]


def moderate(seed: int, posts: int, costs: Costs | None) -> Counter[str]:
    """A stream of posts of which 3 % are to be removed: what errors cost, and by majority."""
    truth = (np.random.default_rng(seed).random(posts) < 0.03).astype(int)
    panel = [Labeler(str(m), capacity=50) for m in range(len(MODELS))]
    s = Scheduler(panel, CLASSES, Realised(), LearnWhileServing(), costs=costs)
    votes, total = np.zeros(posts, int), Counter[str]()
    exits: list[Exit] = []
    first = 0
    while len(exits) < posts:
        assert s.slot < posts
        s.arrive([Item(str(i), 20.0) for i in range(first, min(first + 5, posts))])
        first = min(first + 5, posts)
        for a in s.assign():
            i, m = int(a.item), int(a.labeler)
            wrong = np.random.default_rng([seed, i, m]).random() >= MODELS[m, truth[i]]
            votes[i] += 2 * (truth[i] ^ wrong) - 1
            s.observe(Label(a.item, a.labeler, CLASSES[truth[i] ^ wrong]))
        exits += s.close()
    for e in exits:
        i = int(e.item)
        for how, said in (
            ("verdicts", e.verdict.label == "remove"),
            ("majority", votes[i] > 0),
        ):
            total[how] += 0 if said == truth[i] else 20 if truth[i] else 1
    return total


@pytest.fixture(scope="module")
def moderated() -> dict[str, Counter[str]]:
    """Total cost over three seeds, with and without costs."""
    found = {}
    for name, costs in (("with", COSTS), ("without", None)):
        runs = [moderate(seed, 1300, costs) for seed in range(3)]
        found[name] = sum(runs, Counter[str]())
    return found


@pytest.mark.slow
def test_costs_do_not_raise_the_total_cost(moderated: dict[str, Counter[str]]) -> None:
    """The first world of docs/costs.md: a class is not taken at its word before it stands out."""
    assert moderated["with"]["verdicts"] <= 1.02 * moderated["without"]["verdicts"]  # 271, 270
