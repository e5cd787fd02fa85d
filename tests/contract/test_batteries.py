"""Every exported policy, way of learning and estimator passes; the public names are there."""

from __future__ import annotations

import pytest

import venire
from venire import (
    DawidSkene,
    Known,
    Learning,
    LearnThenServe,
    LearnWhileServing,
    OneCoin,
    Policy,
    scheduling,
)
from venire.competence.base import BaseEstimator
from venire.testing import check_competence, check_learning, check_policy


def exported_policies() -> list[Policy]:
    found = [getattr(scheduling, name) for name in scheduling.__all__]
    concrete = [c for c in found if isinstance(c, type) and issubclass(c, Policy)]
    return [c() for c in concrete if c is not Policy]


@pytest.mark.parametrize("policy", exported_policies(), ids=lambda p: p.name)
def test_policy(policy: Policy) -> None:
    check_policy(policy)


@pytest.mark.parametrize(
    "learning",
    [
        LearnThenServe(20),
        LearnWhileServing(),
        LearnWhileServing("one-coin"),
        LearnWhileServing(half_life=50, drift=None, longest=7, window=40),
        LearnWhileServing(explore=0),
        LearnWhileServing(estimator=OneCoin(), window=100),
        LearnWhileServing(estimator=DawidSkene(), longest=10),
    ],
    ids=repr,
)
def test_learning(learning: Learning) -> None:
    check_learning(learning)


@pytest.mark.parametrize(
    "estimator",
    [
        OneCoin(),
        OneCoin(prior=None),
        OneCoin(start="best"),
        Known({m: 0.92 - 0.06 * m for m in range(6)}),
    ],
    ids=repr,
)
def test_estimator(estimator: BaseEstimator) -> None:
    check_competence(estimator)


def test_all_names_are_importable_and_no_others() -> None:
    for name in venire.__all__:
        assert getattr(venire, name).__name__ == name
    assert sorted(venire._MODULE) == venire.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = venire.nothing
