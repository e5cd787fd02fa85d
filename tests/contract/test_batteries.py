"""Every exported policy, way of learning and estimator passes; the public names are there."""

from __future__ import annotations

import pytest

import venire
from venire import (
    Algorithm2,
    DawidSkene,
    Known,
    Learning,
    LearnThenServe,
    LearnWhileServing,
    OneCoin,
    Policy,
    scheduling,
)
from venire.estimators.base import BaseEstimator
from venire.testing import check_competence, check_learning, check_policy

#: What `import venire` had before its names were read from one list; none may be lost.
FIRST_NAMES = frozenset(
    [
        "Anchored",
        "Assignment",
        "AsyncClient",
        "Auto",
        "Bounds",
        "BradleyTerry",
        "Bursty",
        "Client",
        "DawidSkene",
        "Everyone",
        "Exit",
        "FetchError",
        "FileError",
        "Fixed",
        "FixedOverlap",
        "Greedy",
        "InputError",
        "Item",
        "Known",
        "Label",
        "LabelTable",
        "Labeler",
        "LearnThenServe",
        "LearnWhileServing",
        "Learning",
        "LookAhead",
        "MajorityVote",
        "MissingExtra",
        "OneCoin",
        "Ordinal",
        "Poisson",
        "Policy",
        "Random",
        "Realised",
        "RealisedProxy",
        "ReplayError",
        "Revision",
        "RobustMean",
        "RoundRobin",
        "Run",
        "Scheduler",
        "StateError",
        "Streaming",
        "Trace",
        "UnknownName",
        "VenireError",
        "Verdict",
        "Waterfill",
        "WeightedMajority",
        "World",
        "as_table",
        "find_clones",
        "find_constant",
        "krippendorff_alpha",
        "simulate",
        "vote_entropy",
    ]
)


def exported_policies() -> list[Policy]:
    found = [getattr(scheduling, name) for name in dir(scheduling)]
    concrete = [c for c in found if isinstance(c, type) and issubclass(c, Policy)]
    return [c() for c in concrete if hasattr(c, "name")]


@pytest.mark.parametrize("policy", exported_policies(), ids=lambda p: p.name)
def test_policy(policy: Policy) -> None:
    check_policy(policy)


@pytest.mark.parametrize(
    "learning",
    [
        LearnThenServe(20),
        Algorithm2(20),
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
    names = set(dir(venire)) - {"__version__"}
    assert names >= FIRST_NAMES, "a public name was lost"
    for name in names:
        assert getattr(venire, name).__name__ == name
    assert sorted(names) == getattr(venire, "__all__")  # noqa: B009 - served by __getattr__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(venire, "nothing")  # noqa: B009 - a type checker knows that there is none
