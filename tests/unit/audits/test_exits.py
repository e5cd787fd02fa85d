"""The guarantee of verdicts that leave one by one: against a plain loop, and how often it holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import beta

from venire.audits.guarantees import MULTIPLES, exit_guarantee, most_wrong, thresholds
from venire.errors import InputError

Array = NDArray[Any]


def plain_capital(p: float, drawn: int, errors: int) -> float:
    """What the bettor has, by its integral."""
    bet = lambda q: (q / p) ** drawn * ((1 - q) / (1 - p)) ** (errors - drawn)  # noqa: E731
    return float(quad(bet, 0, p)[0] / p)


def plain_marks(sure: list[float], audits: dict[int, bool | None], p: float, right: float) -> Any:
    """The threshold in force and up to where, threshold by threshold and exit by exit."""
    best: tuple[int, float | None, int] = (0, None, 0)
    for cut in (max(0.0, 1 - m * (1 - right)) for m in MULTIPLES):
        size = caught = through = marked = 0
        for k, x in enumerate(sure):
            if x < cut - 1e-12:
                continue
            size += 1
            if k in audits:
                caught += audits[k] is not False
            most = math.floor((1 - right) * size + 1e-9)
            enough = plain_capital(p, caught, most + 1) if caught <= most else 0.0
            if enough >= 1.000001 * len(MULTIPLES) / 0.05:
                through, marked = k + 1, size
        # between two exits above the threshold nothing changes
        if marked > best[0]:
            best = (marked, cut, through)
    return best


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.2, 0.5]), st.sampled_from([0.6, 0.8]))
def test_the_marks_are_those_of_a_plain_loop(seed: int, p: float, right: float) -> None:
    rng = np.random.default_rng(seed)
    n = 120
    sure = rng.choice([0.3, 0.62, 0.81, 0.9, 0.97], n).tolist()
    wrong = rng.random(n) < rng.choice([0.0, 0.05, 0.5])
    audits: dict[int, bool | None] = {
        k: None if rng.random() < 0.03 else bool(wrong[k]) for k in range(n) if rng.random() < p
    }
    found = exit_guarantee(
        range(1, n + 1), sure, list(audits), list(audits.values()), p, right=right
    )
    marked, cut, through = plain_marks(sure, audits, p, right)
    assert found.marked == marked
    if marked:
        assert found.confidence == pytest.approx(cut)
        last = max(k for k in range(found.through) if sure[k] >= (cut or 0.0) - 1e-12) + 1
        assert last == through
        marks = [found.marks(k + 1, x) for k, x in enumerate(sure)]
        assert sum(marks) == marked


@pytest.mark.parametrize(("drawn", "p"), [(0, 0.05), (3, 0.1), (7, 0.5)])
def test_the_most_that_can_be_wrong_is_where_the_capital_is_reached(drawn: int, p: float) -> None:
    most = most_wrong(drawn, p, 0.95)
    assert plain_capital(p, drawn, most) < 20.0001
    assert plain_capital(p, drawn, most + 1) >= 19.9999


def test_what_is_audited_wholly_is_known() -> None:
    found = exit_guarantee(range(1, 101), [0.99] * 100, range(100), [False] * 97 + [True] * 3, 1.0)
    assert (found.marked, found.curve[0].bound) == (100, 0.03)


def test_audits_that_are_due_count_as_wrong_until_they_are_answered() -> None:
    rng = np.random.default_rng(0)
    drawn = np.flatnonzero(rng.random(3000) < 0.1)
    answers: list[bool | None] = [False] * len(drawn)
    given = range(1, 3001), np.full(3000, 0.99), drawn
    whole = exit_guarantee(*given, answers, 0.1)
    assert (whole.through, whole.marked) == (3000, 3000)
    half = len(drawn) // 2
    waits = exit_guarantee(*given, answers[:half] + [None] * (len(drawn) - half), 0.1)
    assert 0 < waits.through < drawn[-1] + 1
    assert waits.curve[0].due == len(drawn) - half
    # what was proven before stays, however bad it becomes
    later = exit_guarantee(*given, answers[:half] + [True] * (len(drawn) - half), 0.1)
    assert later.through == waits.through


def test_nonsense_is_refused() -> None:
    for share, right, level in ((0.0, 0.95, 0.95), (0.1, 1.0, 0.95), (0.1, 0.95, 1.0)):
        with pytest.raises(InputError, match="expected"):
            exit_guarantee([1], [0.5], [], [], share, right, level)
    assert exit_guarantee([], [], [], [], 0.1).marked == 0


def clopper_pearson(audited: Array, failed: Array) -> Array:
    """The upper bound of one look, at each exit."""
    return np.where(
        audited > failed, beta.ppf(0.95, failed + 1, np.maximum(audited - failed, 1)), 1
    )


def broken(sure: Array, wrong: Array, drawn: Array, right: float, p: float) -> tuple[Array, Array]:
    """Whether ours, Clopper-Pearson and no guarantee are ever broken, looking after each exit.

    And how much each marks at the end. A rival marks what is above the lowest threshold that it
    believes; without a guarantee whatever is as sure as it should be.
    """
    n, e = len(sure), 1 - right
    best = {name: np.zeros((2, n)) for name in ("ours", "one look")}  # marked, wrong among them
    own = 1 - 0.05 / len(MULTIPLES)
    sizes = {name: np.zeros(n) for name in best}
    for cut in thresholds(right):
        above = sure >= cut
        size, bad = above.cumsum(), (above & wrong).cumsum()
        audited, failed = (above & drawn).cumsum(), (above & drawn & wrong).cumsum()
        steps = exit_guarantee_steps(size, failed, p, right, own)
        last = np.maximum.accumulate(np.where(steps, np.arange(n), -1))
        held = np.where(last >= 0, size[last], 0), np.where(last >= 0, bad[last], 0)
        good = clopper_pearson(audited, failed) <= e
        for name, (marked, errors) in (
            ("ours", held), ("one look", (np.where(good, size, 0), np.where(good, bad, 0)))
        ):  # fmt: skip
            more = marked > sizes[name]
            sizes[name] = np.where(more, marked, sizes[name])
            best[name] = np.where(more, (marked, errors), best[name])
    plain = sure >= right
    best["none"] = np.array([plain.cumsum(), (plain & wrong).cumsum()])
    tables = best["ours"], best["one look"], best["none"]
    ever = np.array([bool((bad > e * marked + 1e-9).any()) for marked, bad in tables])
    return ever, np.array([marked[-1] / n for marked, _ in tables])


def exit_guarantee_steps(size: Array, failed: Array, p: float, right: float, own: float) -> Array:
    """At which exits a threshold passes, by counts alone."""
    limits = np.array([most_wrong(k, p, own) for k in range(int(failed[-1]) + 1)])
    return np.asarray(limits[failed] <= np.floor((1 - right) * size + 1e-9))


WORLDS = ("at the edge", "worse than they say", "good, then bad", "bad while it is marked")


def world(kind: str, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """How sure verdicts are, and which are wrong, where at most 10 % may be."""
    sure = rng.choice([0.5, 0.7, 0.85, 0.92, 0.97], n)
    rate = {
        "at the edge": np.full(n, 0.1005),
        "worse than they say": np.where(sure > 0.9, 0.12, 0.3),
        "good, then bad": np.where(np.arange(n) < 0.3 * n, 0.06, 0.13),
        "bad while it is marked": np.where(np.arange(n) % 1500 < 700, 0.03, 0.17),
    }[kind]
    return sure, rng.random(n) < rate


@pytest.mark.parametrize("kind", WORLDS)
def test_it_is_rarely_broken_however_often_one_looks(kind: str) -> None:
    """At most 5 % of runs, within chance; the simple rivals are broken far more often."""
    rng = np.random.default_rng([27, WORLDS.index(kind)])
    runs, n, p = 200, 4000, 0.1
    ever = np.zeros((runs, 3))
    for k in range(runs):
        sure, wrong = world(kind, n, rng)
        ever[k] = broken(sure, wrong, rng.random(n) < p, 0.9, p)[0]
    ours, one_look, none = ever.mean(axis=0)
    assert ours <= 0.05
    assert none > 0.5
    assert one_look > ours


def test_good_verdicts_are_marked() -> None:
    rng = np.random.default_rng(5)
    marked = []
    for _ in range(20):
        sure = rng.choice([0.5, 0.7, 0.85, 0.92, 0.97], 8000)
        wrong = rng.random(8000) < np.where(sure > 0.8, 0.04, 0.3)
        found = broken(sure, wrong, rng.random(8000) < 0.1, 0.9, 0.1)
        assert not found[0][0]
        marked.append(found[1][0])
    assert np.mean(marked) > 0.55  # of the 0.6 that are good enough
