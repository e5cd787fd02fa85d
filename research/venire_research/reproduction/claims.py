"""A claim, the measured value, and whether it holds: always computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from venire_research.common.statistics import Estimate

__all__ = ["Claim", "about", "at_least", "at_most"]

Relation = Literal["at least", "at most", "about"]
#: "our reading": what the paper does not say literally, but probably means.
ClaimSource = Literal["paper", "our reading", "venire"]


@dataclass(frozen=True)
class Claim:
    """`value` should be at least, at most or about `target`, give or take `tolerance`.

    `source` says whose claim it is: the paper's, our reading of it, or ours (a number that we
    have published and that should come out again).

    >>> about("ratio at T = 10,000", 0.9906, target=0.99, tolerance=0.005, source="venire").holds
    True
    """

    text: str
    value: float
    relation: Relation
    target: float
    tolerance: float
    source: ClaimSource
    low: float | None = None
    high: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the measured value is as claimed."""
        return self._holds(self.value)

    @property
    def settled(self) -> bool:
        """Whether the whole 95 % interval says the same as the value.

        An interval around a target has both ends outside of the tolerance and yet settles
        nothing: it must lie wholly inside, or not meet what is allowed at all.
        """
        if self.low is None or self.high is None:
            return True
        if self.holds:
            return self._holds(self.low) and self._holds(self.high)
        return not self._meets(self.low, self.high)

    def _meets(self, low: float, high: float) -> bool:
        """Whether some value from `low` to `high` would be as claimed."""
        least = -math.inf if self.relation == "at most" else self.target - self.tolerance
        most = math.inf if self.relation == "at least" else self.target + self.tolerance
        return low <= most and high >= least

    def _holds(self, value: float) -> bool:
        if math.isnan(value):
            return False
        if self.relation == "about":
            return abs(value - self.target) <= self.tolerance
        short = self.target - value if self.relation == "at least" else value - self.target
        return short <= self.tolerance

    @property
    def verdict(self) -> str:
        """In a word or two."""
        return ("holds" if self.holds else "fails") + ("" if self.settled else ", within noise")

    def record(self, figure: str) -> dict[str, Any]:
        """One row of the table of claims."""
        return {
            "figure": figure,
            "source": self.source,
            "claim": self.text,
            "expected": f"{self.relation} {self.target:.4g}",
            "tolerance": self.tolerance,
            "value": None if math.isnan(self.value) else self.value,
            "low": self.low,
            "high": self.high,
            "holds": self.holds,
            "verdict": self.verdict,
        }


def _claim(
    relation: Relation,
    text: str,
    value: float | Estimate,
    target: float,
    tolerance: float,
    source: ClaimSource,
) -> Claim:
    if isinstance(value, Estimate):
        found, ends = value.value, (value.low, value.high)
        return Claim(text, found, relation, target, tolerance, source, *ends)
    return Claim(text, float(value), relation, target, tolerance, source)


def at_least(
    text: str,
    value: float | Estimate,
    target: float,
    tolerance: float = 0.0,
    source: ClaimSource = "paper",
) -> Claim:
    """`value` should be `target` or more."""
    return _claim("at least", text, value, target, tolerance, source)


def at_most(
    text: str,
    value: float | Estimate,
    target: float,
    tolerance: float = 0.0,
    source: ClaimSource = "paper",
) -> Claim:
    """`value` should be `target` or less."""
    return _claim("at most", text, value, target, tolerance, source)


def about(
    text: str,
    value: float | Estimate,
    target: float,
    tolerance: float,
    source: ClaimSource = "paper",
) -> Claim:
    """`value` should be within `tolerance` of `target`."""
    return _claim("about", text, value, target, tolerance, source)
