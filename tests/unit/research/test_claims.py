"""A claim's verdict is computed from its value, and says when the interval disagrees."""

from __future__ import annotations

import math

import pytest

from venire_research.common.statistics import Estimate
from venire_research.reproduction.claims import Claim, about, at_least, at_most


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (at_least("x", 1.0, 1.0), True),
        (at_least("x", 0.99, 1.0), False),
        (at_least("x", 0.99, 1.0, 0.02), True),
        (at_most("x", 1.0, 1.0), True),
        (at_most("x", 1.01, 1.0), False),
        (at_most("x", 1.01, 1.0, 0.02), True),
        (about("x", 1.1, 1.0, 0.2), True),
        (about("x", 0.7, 1.0, 0.2), False),
        (about("x", math.nan, 1.0, 0.2), False),
        (at_least("x", math.nan, 1.0), False),
    ],
)
def test_holds(claim: Claim, holds: bool) -> None:
    assert claim.holds is holds
    assert claim.verdict == ("holds" if holds else "fails")


def test_an_interval_that_reaches_to_the_other_side_is_noise() -> None:
    assert at_most("x", Estimate(0.9, 0.8, 1.1), 1.0).verdict == "holds, within noise"
    assert at_most("x", Estimate(1.05, 0.8, 1.1), 1.0).verdict == "fails, within noise"
    assert at_most("x", Estimate(0.9, 0.8, 0.95), 1.0).verdict == "holds"


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (0.9, 1.0, 1.1, "holds"),
        (0.9, 1.0, 1.3, "holds, within noise"),
        (0.5, 1.3, 1.5, "fails, within noise"),
        (1.1, 1.3, 1.5, "fails, within noise"),
        (1.25, 1.3, 1.5, "fails"),
        (0.5, 0.6, 0.7, "fails"),
    ],
)
def test_about_is_settled_inside_or_clear_of_the_tolerance(
    low: float, value: float, high: float, verdict: str
) -> None:
    """Both ends of 0.5 to 1.5 are off, like 1.3, and yet it holds everything that is allowed."""
    assert about("x", Estimate(value, low, high), 1.0, 0.2).verdict == verdict


def test_a_record_has_value_tolerance_and_verdict() -> None:
    record = about("the ratio", Estimate(0.99, 0.98, 1.0), 0.95, 0.1, "venire").record("fig")
    assert record == {
        "figure": "fig",
        "source": "venire",
        "claim": "the ratio",
        "expected": "about 0.95",
        "tolerance": 0.1,
        "value": 0.99,
        "low": 0.98,
        "high": 1.0,
        "holds": True,
        "verdict": "holds",
    }
    assert about("x", math.nan, 1.0, 0.2).record("fig")["value"] is None
