"""The guarantee: the fallback procedure beside a closed test, and how often it is ever broken."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.audits.guarantees import POWER, allowed, cuts_of, guarantee, log_evidence, passed
from venire.audits.intervals import log_capitals
from venire.errors import InputError


@given(st.integers(2, 60), st.data())
@settings(deadline=None)
def test_the_evidence_is_the_capital_of_audits(size: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(0, size))
    S = data.draw(st.integers(0, n))
    most = data.draw(st.integers(0, size - 1))
    got = float(log_evidence(S, n, size, most))
    if most + 1 < S:
        assert got == -np.inf
    elif most + 1 > size - (n - S):
        assert got == np.inf
    else:
        assert got == pytest.approx(log_capitals(S, n, size, POWER)[most + 1 - S], abs=1e-9)


def plain_closed(p: list[float], part: list[float], alpha: float) -> list[bool]:
    """A threshold is passed if every set of thresholds with it is, by weighted Bonferroni tests.

    In a set, a threshold has its own part and those of the thresholds just before it that are not
    in the set: what they would have handed on.
    """
    every = range(len(p))
    rejected = {}
    for size in range(1, len(p) + 1):
        for some in combinations(every, size):
            parts = {}
            for k in some:
                earlier = max((j for j in some if j < k), default=-1)
                parts[k] = sum(part[earlier + 1 : k + 1])
            rejected[some] = any(p[k] <= parts[k] * alpha for k in some)
    return [all(rejected[some] for some in rejected if k in some) for k in every]


@given(
    st.lists(st.floats(0.001, 0.2), min_size=1, max_size=6),
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
)
@settings(deadline=None)
def test_passing_on_is_a_closed_test(p: list[float], shares: list[int]) -> None:
    part = [share / max(1, sum(shares[: len(p)])) for share in shares[: len(p)]]
    got = passed(-np.log(np.array(p)) + 1e-6, np.array(part), 0.9).tolist()
    wanted = plain_closed(p, part, 0.1)
    assert all(b for a, b in zip(got, wanted, strict=True) if a)  # never more than the closed test


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_thresholds_go_from_the_surest_to_all(confidence: list[float]) -> None:
    cuts = cuts_of(np.array(confidence))
    assert cuts.size[-1] == len(confidence)
    assert (np.diff(cuts.confidence) < 0).all()
    assert (np.diff(cuts.size) > 0).all()
    assert cuts.part.sum() == pytest.approx(1)
    for least, size in zip(cuts.confidence, cuts.size, strict=True):
        assert (np.array(confidence) >= least).sum() == size


@pytest.mark.parametrize("told", ["honest", "nothing", "liars"])
def test_it_is_seldom_broken_at_any_look(told: str) -> None:
    """Verdicts just bad enough, a level of 80 %, looked at after every fourth label."""
    rng = np.random.default_rng(4)
    size, right, level = 300, 0.85, 0.8
    sure = rng.random(size)
    chance = {"honest": 0.36 * (1 - sure), "nothing": np.full(size, 0.155), "liars": 0.3 * sure}
    wrong = rng.random(size) < chance[told]
    cuts = cuts_of(sure)
    most = allowed(cuts.size, right)
    bad = np.array([wrong[sure >= c].sum() for c in cuts.confidence]) > np.array(most)
    assert bad.any()
    broken, draws = 0, 150
    for _ in range(draws):
        place = rng.permutation(size)[:160]
        above = sure[place][:, None] >= cuts.confidence[None, :]
        n, S = (x.cumsum(axis=0)[3::4] for x in (above, above & wrong[place][:, None]))
        evidence = np.stack(
            [log_evidence(S[:, k], n[:, k], int(cuts.size[k]), most[k]) for k in range(len(most))],
            1,
        )
        broken += bool((passed(evidence, cuts.part, level) & bad).any())
    assert broken / draws <= 0.2 + 3 * (0.16 / draws) ** 0.5


def test_good_verdicts_are_guaranteed_and_bad_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    sure = dict(enumerate(rng.random(1000).tolist()))
    verdicts = {i: "right" if x > 0.5 or rng.random() < 0.6 else "wrong" for i, x in sure.items()}
    gold = dict.fromkeys(rng.permutation(1000)[:300].tolist(), "right")
    found = guarantee(verdicts, sure, gold, 0.95)
    assert 0.4 <= found.coverage <= 0.6
    assert found.tasks == {i for i, x in sure.items() if x >= (found.confidence or 2)}
    assert found.record()["guaranteed"] == len(found.tasks)
    assert list(found.more) == [50, 100, 200, 400]
    assert guarantee(verdicts, sure, {}, 0.95).tasks == frozenset()
    assert guarantee(verdicts, sure, dict.fromkeys(verdicts, "right"), 0.5).coverage == 1


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (({}, {}, {}), "no verdicts"),
        (({1: "x"}, {}, {}), "no confidence for 1"),
        (({1: "x"}, {1: 0.5}, {2: "x"}), "no verdict on 2"),
        (({1: "x"}, {1: float("nan")}, {}), "not numbers"),
        (({1: "x"}, {1: 0.5}, {}, 95), "share 95"),
        (({1: "x"}, {1: 0.5}, {}, 0.9, 2), "level 2"),
    ],
)
def test_what_is_wrong_is_said(given_: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        guarantee(*given_)
