"""A panel against the truth: correlation of errors and kappa, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire.labels import LabelTable
from venire.panels.yardstick import FEWEST_SHARED, against_truth


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_against_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, 3, size=40)
    said = rng.integers(-1, 3, size=(40, 4))
    said[0] = 0, 1, 2, 0
    found = against_truth(LabelTable.from_matrix(said, classes=3), truth)
    correlations, members = [], set()
    for m in range(4):
        for n in range(m + 1, 4):
            both = [i for i in range(40) if truth[i] >= 0 and min(said[i, m], said[i, n]) >= 0]
            one, other = ([float(said[i, k] != truth[i]) for i in both] for k in (m, n))
            if len(both) >= FEWEST_SHARED and np.std(one) > 0 and np.std(other) > 0:
                correlations.append(np.corrcoef(one, other)[0, 1])
                members |= {m, n}
    if not correlations:
        assert found.correlation is None
        return
    rho, k = np.mean(correlations), len(members)
    assert found.correlation == pytest.approx(rho)
    assert found.votes == pytest.approx(k / max(1 + (k - 1) * rho, 1e-9))
    mine = [i for i in range(40) if truth[i] >= 0 and said[i, 0] >= 0]
    agreed = np.mean([said[i, 0] == truth[i] for i in mine])
    chance = sum(
        np.mean([said[i, 0] == c for i in mine]) * np.mean([truth[i] == c for i in mine])
        for c in range(3)
    )
    assert found.kappa[0] == pytest.approx((agreed - chance) / (1 - chance))
    more = [np.mean([(said[i, 0] == c) * 1.0 - (truth[i] == c) for i in mine]) for c in range(3)]
    assert list(found.leaning[0].values()) == pytest.approx(more)


def test_copies_are_one_vote() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=200)
    one = np.where(rng.random(200) < 0.8, truth, 1 - truth)
    found = against_truth(LabelTable.from_matrix(np.repeat(one[:, None], 5, axis=1)), truth)
    assert found.votes == pytest.approx(1.0)
    assert "5 labelers are worth 1.0 independent votes" in found.words
