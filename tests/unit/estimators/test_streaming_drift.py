"""The drift flag and forgetting: false alarms, delays, and how soon a change is followed."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import nightly
from venire.errors import InputError
from venire.estimators.streaming.drift import PER, SIZES, DriftMonitor
from venire.estimators.streaming.estimator import Streaming
from venire.estimators.streaming.state import watch
from venire.paper.accuracy import one_coin
from venire.tools.arrays import Floats


def soft(rng: np.random.Generator, truth: Any, panel: float = 0.75, labels: int = 4) -> Floats:
    """The posteriors of two classes that four others of that skill give."""
    right = rng.random((labels, *truth.shape)) < panel
    votes = np.where(right, 1, -1).sum(axis=0) * np.where(truth == 1, 1, -1)
    second = 1 / (1 + np.exp(-votes * math.log(panel / (1 - panel))))
    return np.stack([1 - second, second], axis=-1)


def plain(said: list[int], others: list[list[float]], alpha: float, burn_in: int) -> list[int]:
    """The labels at which an alarm is raised: the docstring, line by line."""
    p, N, n, alarms = 0.7, 2.0, 0, []
    R = [0.0] * 6
    for t, (x, row) in enumerate(zip(said, others, strict=True), start=1):
        K, n = len(row), n + 1

        def likely(k: int, row: list[float] = row, K: int = K, p: float = p) -> float:
            return row[k] * p + (1 - row[k]) * (1 - p) / (K - 1)

        if n > burn_in:
            worse = [(1 - e) + e / K / likely(x) for e in SIZES]
            better = [(1 - e) + e * row[x] / likely(x) for e in SIZES]
            R = [(1 + old) * ratio for old, ratio in zip(R, worse + better, strict=True)]
            if sum(R) / 6 >= PER / alpha:
                alarms.append(t)
                R, n, N = [0.0] * 6, 0, 2.0
        slopes = [row[k] - (1 - row[k]) / (K - 1) for k in range(K)]
        N += p * (1 - p) * sum(slopes[k] ** 2 / likely(k) for k in range(K))
        p += (row[x] * p / likely(x) - p) / N
        p = min(max(p, 1e-3), 1 - 1e-3)
    return alarms


@given(st.integers(2, 4), st.integers(0, 2**32), st.sampled_from([0.05, 0.5]))
def test_equals_the_plain_reference(K: int, seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=150)
    skill = np.where(np.arange(150) < 75, 0.95, 0.1)
    said = np.where(rng.random(150) < skill, truth, rng.integers(K, size=150))
    others = rng.dirichlet(np.ones(K), 150) * 0.3 + 0.7 * np.eye(K)[truth]
    monitor = DriftMonitor(K, alpha, burn_in=30)
    monitor.score(np.zeros(150, np.int64), said, others)
    alarms = plain(said.tolist(), others.tolist(), alpha, 30)
    assert monitor.alarms.tolist() == [len(alarms)]
    assert monitor.at.tolist() == [alarms[-1] if alarms else 0]


@pytest.mark.parametrize("skill", [0.55, 0.8, 0.95])
@pytest.mark.parametrize("panel", [0.65, 0.75, 0.9])
def test_false_alarms_with_soft_labels(skill: float, panel: float) -> None:
    """A thousand labelers, 1,000 labels each after the burn-in, no change."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(1100, 1000))
    said = np.where(rng.random(truth.shape) < skill, truth, 1 - truth)
    labeler = np.tile(np.arange(1000), 1100)
    monitor = DriftMonitor(classes=2)
    monitor.score(labeler, said.ravel(), soft(rng, truth, panel).reshape(-1, 2))
    assert (monitor.alarms > 0).mean() <= 0.05


def stream_panel(
    seed: int, change: tuple[float, float] | None = None, K: int = 2, read: bool = False, **how: Any
) -> tuple[Streaming, list[float], list[int], int]:
    """Ten labelers, five labels an item; number 0 changes after 1,200 items.

    Returns the stream, the estimates of number 0 by its labels, its alarms, and the number of
    labels at which it changes.
    """
    rng = np.random.default_rng(seed)
    items = 2400 if change else 2200
    truth, panel = rng.integers(K, size=items), rng.uniform(0.6, 0.92, 10)
    labeler = np.argsort(rng.random((items, 10)), axis=1)[:, :5]
    skill = panel[labeler]
    if change is not None:
        skill = np.where(labeler == 0, np.where(np.arange(items) < 1200, *change)[:, None], skill)
    wrong = (truth[:, None] + rng.integers(1, K, size=labeler.shape)) % K
    said = np.where(rng.random(labeler.shape) < skill, truth[:, None], wrong)
    stream = Streaming(range(K), range(10), **{"drift": 0.05, **how})
    estimates: list[float] = []
    for i in range(0, items, 6):
        index = np.repeat(np.arange(i, min(i + 6, items)), 5)
        stream.update(index, labeler[i : i + 6].ravel(), said[i : i + 6].ravel())
        if read:
            if i % 30 == 0:  # a read is a fit
                latest = stream.skill_of(0)
            estimates += [latest] * int((labeler[i : i + 6] == 0).sum())
    monitor = stream.state.monitor
    alarms = [] if monitor is None else monitor.alarms.tolist()
    return stream, estimates, alarms, int((labeler[:1200] == 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{}, {"model": "one-coin"}, {"K": 4}, {"half_life": 200.0}], ids=str
)
def test_false_alarms_in_a_stream(how: dict[str, Any]) -> None:
    """100 labelers, 1,000 labels each after the burn-in, posteriors learned from the stream."""
    found = [np.mean(np.array(stream_panel(seed, **how)[2]) > 0) for seed in range(10)]
    assert np.mean(found) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 100)


def delays(before: float, after: float, seeds: int, **how: Any) -> list[float]:
    """How many labels after the change the (latest) alarm is, infinite if there is none."""
    found = []
    for seed in range(seeds):
        stream, _, _, changed = stream_panel(seed, (before, after), **how)
        drift = stream.drift_[0]
        found.append(drift.at - changed if drift.at >= changed else math.inf)
    return found


@pytest.mark.parametrize(
    ("how", "seeds"), [({}, 3), nightly({}, 8), nightly({"model": "one-coin"}, 8)], ids=str
)
def test_a_large_drop_is_flagged_within_a_hundred_labels(how: dict[str, Any], seeds: int) -> None:
    found = delays(0.9, 0.6, seeds, **how)
    assert np.median(found) < 100
    assert sorted(found)[-2] < 200


@pytest.mark.parametrize(
    ("model", "half_life", "seeds"),
    [
        ("dawid-skene", 100.0, 1),
        nightly("one-coin", 50.0, 2),
        nightly("one-coin", 100.0, 2),
        nightly("dawid-skene", 50.0, 2),
        nightly("dawid-skene", 100.0, 2),
    ],
)
def test_a_drop_is_followed_within_four_half_lives(
    model: Any, half_life: float, seeds: int
) -> None:
    """From 0.9 to 0.6: the estimate falls by a tenth after at most four half-lives of labels."""
    for seed in range(seeds):
        how: dict[str, Any] = {"model": model, "half_life": half_life, "max_items": 500}
        _, estimates, _, changed = stream_panel(seed, (0.9, 0.6), read=True, drift=None, **how)
        before = np.mean(estimates[changed - 100 : changed])
        assert min(estimates[changed : changed + int(4 * half_life)]) < before - 0.1 < 0.8


@pytest.mark.slow
def test_without_forgetting_it_is_not_followed() -> None:
    _, slow, _, changed = stream_panel(0, (0.9, 0.6), read=True, drift=None)
    _, quick, _, _ = stream_panel(0, (0.9, 0.6), read=True)
    assert slow[changed + 300] > slow[changed] - 0.15
    assert quick[changed + 300] < slow[changed + 300] - 0.05


def test_an_improvement_is_flagged_too() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(900, 50))
    skill = np.where(np.arange(900) < 500, 0.6, 0.9)[:, None]
    said = np.where(rng.random(truth.shape) < skill, truth, 1 - truth)
    monitor = DriftMonitor(classes=2)
    monitor.score(np.tile(np.arange(50), 900), said.ravel(), soft(rng, truth).reshape(-1, 2))
    assert (monitor.alarms == 1).mean() > 0.9
    assert 500 < np.median(monitor.at) < 620


def test_a_label_of_which_the_others_say_nothing_says_nothing() -> None:
    monitor = DriftMonitor(classes=2)
    monitor.score(np.zeros(900, np.int64), np.zeros(900, np.int64), np.full((900, 2), 0.5))
    assert monitor.skill.tolist() == [0.7]
    assert monitor.drifts()[0].evidence == pytest.approx(800 * 0.05 / PER)


def test_refuses() -> None:
    with pytest.raises(InputError, match="false-alarm"):
        DriftMonitor(2, false_alarms=0.0)


def test_whom_one_labels_with_is_no_change() -> None:
    """A guesser that is taken for good makes everybody look bad who labels with it.

    Labeler 0 first labels with guessers, then with good ones; its own skill is 0.9 throughout.
    Without regard to the witness there is an alarm, with it there is none.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=1200)
    skill = [0.9, 0.5, 0.5, 0.9, 0.9]
    said = np.where(rng.random((1200, 5)) < skill, truth[:, None], 1 - truth[:, None])
    others = np.where((np.arange(1200) < 600)[:, None], [1, 2], [3, 4])
    believed = np.array([one_coin([p], 2)[0] for p in (0.85, 0.8, 0.8, 0.85, 0.85)])
    rows = [(i, m, said[i, m], 0) for i in range(1200) for m in (0, *others[i].tolist())]
    labels = np.array(rows)
    followed, plain = (DriftMonitor(2, 0.05) for _ in range(2))
    for monitor in (followed, plain):
        monitor.expand(5)
    for stop in range(300, 3601, 300):
        watch(followed, labels[:stop], believed, np.full(2, 0.5))
    each = np.arange(1200)[:, None]
    rest = believed[others, :, said[each, others]].prod(axis=1)
    plain.score(np.zeros(1200, np.int64), said[:, 0], rest / rest.sum(axis=1, keepdims=True))
    assert plain.alarms[0] > 0
    assert followed.alarms[0] == 0


def test_two_labels_do_not_say_who_has_changed() -> None:
    labels = np.array([(i, m, (i * m) % 2, 0) for i in range(500) for m in (0, 1)])
    monitor = DriftMonitor(2, 0.05)
    monitor.expand(2)
    assert not len(watch(monitor, labels, one_coin([0.9, 0.9], 2), np.full(2, 0.5)))
    assert monitor.seen.tolist() == [0, 0]


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(0, 2**32))
def test_following_without_pairs_is_scoring(K: int, seed: int) -> None:
    """With one witness for all, a pair is the labeler but for where it begins."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=300)
    said = np.where(rng.random(300) < 0.8, truth, rng.integers(K, size=300))
    others = rng.dirichlet(np.ones(K), 300) * 0.3 + 0.7 * np.eye(K)[truth]
    who, fresh = np.zeros(300, np.int64), np.arange(300) >= 200
    one, two = DriftMonitor(K), DriftMonitor(K)
    for monitor in (one, two):
        monitor.expand(1)
    one.follow(who, said, others, np.ones(300, np.int64), fresh)
    two.score(who[~fresh], said[~fresh], others[~fresh])
    assert one.skill == pytest.approx(two.skill)
    assert one.seen.tolist() == [100]
