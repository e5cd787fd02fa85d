"""The best fixed overlap in hindsight: the rival that a user with a fixed overlap could have been.

On each stream every overlap from 1 to `MOST` is run, and the one with the most true utility counts.
Nobody can follow it, since which overlap is best is known only afterwards; a policy that does not
beat it has lost to a number in a settings file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from venire.scheduling import FixedOverlap

__all__ = ["BEST_OVERLAP", "MOST", "best_of", "overlaps"]

#: Its name among the policies.
BEST_OVERLAP: Final = "best-overlap"
#: The largest overlap that is tried.
MOST: Final = 8


def overlaps() -> list[FixedOverlap]:
    """The policies among which the best is chosen.

    >>> [policy.describe() for policy in overlaps()][:2]
    ['fixed-overlap:1', 'fixed-overlap:2']
    """
    return [FixedOverlap(k) for k in range(1, MOST + 1)]


def best_of(results: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The result of the most true utility, or realised utility where no truth is known.

    >>> best_of([{"true_utility": 1.0}, {"true_utility": 3.0}, {"true_utility": 3.0}])
    {'true_utility': 3.0}
    """

    def earned(found: Mapping[str, Any]) -> float:
        true = found["true_utility"]
        return float(found["realised_utility"] if true is None else true)

    return max(results, key=earned)
