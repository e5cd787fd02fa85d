"""Do labelers err independently? The fast scores against plain loops, and who was asked why."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire import LabelTable
from venire.estimators.anchor import agreements, capped, prior_votes
from venire.estimators.auto import Auto, Basis
from venire.estimators.dependence import weighted_posteriors, weighted_shares
from venire.estimators.screening import (
    FAINT_MEAN_ITEMS,
    MEAN_ITEMS,
    PAIR_ITEMS,
    Pairs,
    beyond_noise,
    independence,
)
from venire.estimators.streaming.state import (
    FEWEST_ITEMS,
    PARTS,
    SHARE_ERRORS,
    changed_since,
    latest_shares,
)

Floats = NDArray[np.float64]


def plain_misfit(said: NDArray[np.int64], posteriors: Floats, confusions: Floats) -> float:
    """The mean over pairs of labelers of (sum of scores)^2 / sum of squared scores."""
    K, found = posteriors.shape[1], []
    for a, b in combinations(range(said.shape[1]), 2):
        scores = []
        for i in range(len(said)):
            if said[i, a] >= 0 and said[i, b] >= 0:
                scores.append(
                    sum(
                        posteriors[i, k]
                        * sum(
                            ((said[i, a] == l) - confusions[a, k, l])
                            * ((said[i, b] == l) - confusions[b, k, l])
                            for l in range(K)
                        )
                        for k in range(K)
                    )
                )
        if len(scores) >= PAIR_ITEMS:
            found.append(sum(scores) ** 2 / (sum(s**2 for s in scores) + 1e-9))
    return float(np.mean(found))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 5))
def test_the_misfit_is_that_of_plain_loops(seed: int, K: int, M: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, K, (30, M))
    said[:4] = rng.integers(K, size=(4, M))  # enough in common
    confusions = rng.dirichlet(np.ones(K), (M, K))
    posteriors = rng.dirichlet(np.ones(K), 30)
    table = LabelTable.from_matrix(said, K)
    found = Pairs.of(table).misfit(table.said, posteriors, confusions)
    assert found == pytest.approx(plain_misfit(said, posteriors, confusions))


def asked_until_two_agree(seed: int, items: int, skills: list[float]) -> NDArray[np.int64]:
    """Two labelers of an item at random, and all others if these differ."""
    rng, M = np.random.default_rng(seed), len(skills)
    truth = rng.integers(2, size=(items, 1))
    said = np.where(rng.random((items, M)) < skills, truth, 1 - truth)
    order = rng.random((items, M)).argsort(axis=1)
    first = np.take_along_axis(said, order[:, :2], axis=1)
    late = order.argsort(axis=1) >= 2
    return np.where(late & (first[:, :1] == first[:, 1:]), -1, said)


SKILLS = [0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.8, 0.8, 0.7, 0.9]


def test_it_does_not_matter_why_a_label_was_asked_for() -> None:
    """By the agreement of pairs these would look dependent: items with many labels are disputed."""
    found = [independence(LabelTable.from_matrix(asked_until_two_agree(s, 800, SKILLS)))
             for s in range(6)]  # fmt: skip
    assert abs(np.mean([one.excess for one in found])) < 0.3
    assert all(one.shown for one in found)


def test_shared_errors_are_seen_there_too() -> None:
    for seed in range(3):
        said = asked_until_two_agree(seed, 800, SKILLS)
        rng = np.random.default_rng(seed)
        for m in (1, 2, 3):
            copies = (rng.random(800) < 0.8) & (said[:, m] >= 0) & (said[:, 0] >= 0)
            said[copies, m] = said[copies, 0]
        assert not independence(LabelTable.from_matrix(said)).shown


def test_a_panel_that_does_not_change_is_not_found_to_have_changed() -> None:
    rows = np.array([[[p, 1 - p], [1 - p, p]] for p in SKILLS])
    for seed in range(10):
        table = LabelTable.from_matrix(asked_until_two_agree(seed, 600, SKILLS))
        assert changed_since(table, rows, np.array([0.5, 0.5])) is None


def stream(seed: int, shares: Floats, items: int, K: int) -> NDArray[np.int64]:
    """Labels of items whose class shares are those of their row: one to three labels each."""
    rng = np.random.default_rng(seed)
    truth = [int(rng.choice(K, p=shares[i])) for i in range(items)]
    rows = []
    for i, k in enumerate(truth):
        for m in rng.permutation(6)[: rng.integers(1, 4)]:
            said = k if rng.random() < 0.8 else int(rng.integers(K))
            rows.append((i, m, said, 0))
    return np.array(rows)


def panel(K: int, right: float = 0.8) -> Floats:
    return np.array([right * np.eye(K) + (1 - right) / K] * 6)


def plain_shares(items: list[list[float]]) -> tuple[list[float], float]:
    """Ten steps of EM for class shares with a pseudo-item of each class; the log-likelihood."""
    K = len(items[0])
    shares = [1 / K] * K
    for _ in range(10):
        mass = [1.0] * K
        for item in items:
            total = sum(s * x for s, x in zip(shares, item, strict=True))
            for k in range(K):
                mass[k] += shares[k] * item[k] / total
        shares = [m / sum(mass) for m in mass]
    height = sum(math.log(sum(s * x for s, x in zip(shares, i, strict=True))) for i in items)
    return shares, height


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([40, 130, 260]), st.booleans())
def test_the_latest_shares_are_those_of_plain_loops(
    seed: int, K: int, items: int, changes: bool
) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K))
    turn = items * 2 // 3 if changes else items
    shares = np.where(np.arange(items)[:, None] < turn, before, after)
    labels, rows = stream(seed, shares, items, K), panel(K)
    likely = []
    for i in range(items):
        own = labels[labels[:, 0] == i]
        likely.append([math.prod(rows[m, k, said] for _, m, said, _ in own) for k in range(K)])
    begin, expected = 0, [1 / K] * K
    for part in PARTS:
        first = items - items // part
        if items - first < FEWEST_ITEMS:
            break
        latest, apart = plain_shares(likely[first:])
        gain = apart + plain_shares(likely[begin:first])[1] - plain_shares(likely[begin:])[1]
        if 2 * math.sqrt(max(gain, 0.0)) > math.sqrt(2 * K - 3) + SHARE_ERRORS:
            begin, expected = first, latest
    found = latest_shares(labels, rows, np.full(K, 1 / K))
    assert found == pytest.approx(expected)


def test_class_shares_that_an_estimator_has_wrong_have_not_changed() -> None:
    """Nothing changes, but shares and matrices are some way off, as they are near the vote."""
    wrong = np.array([0.35, 0.65])
    alarms = 0
    for seed in range(20):
        labels = stream(seed, np.tile([0.6, 0.4], (400, 1)), 400, 2)
        alarms += latest_shares(labels, panel(2, 0.5), wrong).tolist() != wrong.tolist()
    assert alarms <= 1


def test_class_shares_that_change_are_followed() -> None:
    turned = np.where(np.arange(500)[:, None] < 350, [0.9, 0.1], [0.1, 0.9])
    for seed in range(5):
        found = latest_shares(stream(seed, turned, 500, 2), panel(2), np.array([0.65, 0.35]))
        assert found[1] > 0.75


def noise_and_camps(seed: int) -> list[NDArray[np.int64]]:
    """Labels of 12 who guess, and of seven who know and five who say the opposite."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(150, 1))
    skills = [0.85] * 7 + [0.15] * 5
    camps = np.where(rng.random((150, 12)) < skills, truth, 1 - truth)
    asked = rng.random((150, 12)) < 0.5
    return [np.where(asked, x, -1) for x in (rng.integers(2, size=(150, 12)), camps)]


def test_em_is_not_believed_in_noise_and_is_where_camps_contradict_each_other() -> None:
    for seed in range(5):
        noise, camps = (LabelTable.from_matrix(said, 2) for said in noise_and_camps(seed))
        assert independence(noise).shown  # and yet
        assert not beyond_noise(noise)
        assert beyond_noise(camps)
        assert Auto().fit(noise).basis_ is Basis.VOTE
        assert Auto().fit(camps).basis_ is Basis.EM


def test_contrary_camps_are_told_apart_with_few_items_in_common() -> None:
    """The vote knows nothing there; where labels agree as usual more is asked for."""
    for seed in (1, 2, 3):
        said = noise_and_camps(seed)[1][:40]
        camps = Auto().fit(LabelTable.from_matrix(said, 2))
        assert FAINT_MEAN_ITEMS <= camps.independence_.shared < MEAN_ITEMS
        assert camps.basis_ is Basis.EM
        said[:, 7:] = np.where(said[:, 7:] >= 0, 1 - said[:, 7:], -1)
        assert Auto().fit(LabelTable.from_matrix(said, 2)).basis_ is Basis.NEAR


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_what_is_beyond_noise_does_not_depend_on_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, 2, (40, 5))
    rows = [(f"i{i}", f"m{m}", int(said[i, m])) for i, m in np.argwhere(said >= 0)]
    mixed = [rows[k] for k in rng.permutation(len(rows))]
    one, other = (beyond_noise(LabelTable.from_rows(x)) for x in (rows, mixed))
    assert one == other


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_the_cap_of_lone_labels_changes_no_verdict(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, K, (25, 3))
    said[0] = 0
    table = LabelTable.from_matrix(said, K)
    posteriors = rng.dirichlet(np.full(K, 0.3), 25)
    limits = agreements(table)
    found = capped(table, posteriors, limits)
    assert (found.argmax(axis=1) == posteriors.argmax(axis=1)).all()
    assert np.allclose(found.sum(axis=1), 1)
    assert (found.max(axis=1) <= posteriors.max(axis=1) + 1e-12).all()
    several = np.diff(table.start) != 1
    assert (found[several] == posteriors[several]).all()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_prior_votes_keep_the_order_and_the_ties_of_the_vote(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, K, (20, 5))
    said[0] = 0
    table = LabelTable.from_matrix(said, K)
    smooth = weighted_shares(table, [], prior_votes(table))
    for i in range(20):
        votes = np.bincount(said[i][said[i] >= 0], minlength=K)
        for k in range(K):
            for l in range(K):
                assert (smooth[i, k] > smooth[i, l]) == (votes[k] > votes[l])


def test_two_labels_that_agree_are_less_sure_than_ten() -> None:
    said = np.full((100, 10), -1)
    said[:50], said[50:, :2] = 0, 1
    said[::7, 0] = 1 - said[::7, 0]
    table = LabelTable.from_matrix(said)
    smooth = weighted_shares(table, [], prior_votes(table))
    assert 0.5 < smooth[51].max() < smooth[1].max() < 1


def test_posteriors_without_families_are_bayes_rule() -> None:
    rng = np.random.default_rng(0)
    said = rng.integers(-1, 3, (20, 4))
    confusions, priors = rng.dirichlet(np.ones(3), (4, 3)), rng.dirichlet(np.ones(3))
    found = weighted_posteriors(LabelTable.from_matrix(said, 3), confusions, priors, [])
    for i in range(20):
        plain = priors.copy()
        for m in range(4):
            if said[i, m] >= 0:
                plain = plain * confusions[m][:, said[i, m]]
        assert found[i] == pytest.approx(plain / plain.sum())
