"""Which limits of `Auto` would have been chosen without a set, and how it does on that set.

    python -m benchmarks leave-one-out --data ../shared/data

`Auto` says EM where the excess of `independence` is at most one limit, the vote where it is above
another, and stays near the vote in between. For each set the limits are chosen on all *other* sets,
among those at most `MOST_BELOW` points below the majority on every one of them, and judged on the
set that they have not seen. They are not the best on average, but the most careful within one
standard error of the best (the one-standard-error rule): safety comes before the last tenth.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.real_data import SETS, Ints, load
from venire.estimators import Anchored, Auto, DawidSkene, MajorityVote
from venire.estimators.metrics import error_rate
from venire.estimators.screening import independence
from venire.labels import LabelTable

MOST_BELOW: Final = 2.5
LIMITS: Final = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.5, 2.0, 1e9)

Limits = tuple[float, float]


class Found(NamedTuple):
    """Its excess, whether labelers share enough items, and per cent right on each basis."""

    excess: float
    enough: bool
    vote: float
    near: float
    em: float
    auto: float

    def right(self, limits: Limits) -> float:
        """Per cent right with these limits."""
        if not self.enough:
            return self.near
        below, above = limits
        return self.em if self.excess <= below else self.vote if self.excess > above else self.near


def found(table: LabelTable, truth: Ints) -> Found:
    """What there is to know of a set."""
    known = truth >= 0
    shown = independence(table)
    methods = MajorityVote(), Anchored(), DawidSkene(), Auto()
    right = (100 * (1 - error_rate(m.fit(table).posteriors_[known], truth[known])) for m in methods)
    return Found(shown.excess, shown.enough, *right)


def chosen_without(name: str, sets: dict[str, Found]) -> tuple[Limits, Limits]:
    """By all other sets: the best limits, and the most careful ones that may be as good."""
    others = [one for other, one in sets.items() if other != name]
    right = {
        (below, above): np.array([one.right((below, above)) for one in others])
        for below, above in product(LIMITS, LIMITS)
        if below <= above
    }
    vote = np.array([one.vote for one in others])
    safe = [pair for pair, found in right.items() if (found >= vote - MOST_BELOW).all()]
    best = max(safe, key=lambda pair: right[pair].mean())

    def as_good(pair: Limits) -> bool:
        less = right[best] - right[pair]
        return bool(less.mean() <= less.std(ddof=1) / len(less) ** 0.5)

    return best, min(filter(as_good, safe), key=lambda pair: (pair[1], pair[0]))


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="leave-one-out", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args(arguments).data
    sets: dict[str, Found] = {}
    for name in SETS:
        if not (data / name).is_dir():
            print(f"skipped {name}: not in {data}", file=sys.stderr)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets[name] = found(*load(data / name))
    print("| set | excess | majority | near | EM | limits without it | right | `Auto` |")
    print("|-|-:|-:|-:|-:|-|-:|-:|")
    gains = []
    for name, one in sets.items():
        best, limits = chosen_without(name, sets)
        results = one.right(limits), one.right(best), one.auto
        gains.append([result - one.vote for result in results])
        cells = f"{one.vote:.1f} | {one.near:.1f} | {one.em:.1f} | {limits[0]:g}, {limits[1]:g}"
        print(f"| {name} | {one.excess:.2f} | {cells} | {results[0]:.1f} | {one.auto:.1f} |")
    for title, gain in zip(
        ("these limits", "the best ones", "`Auto`"), np.transpose(gains), strict=True
    ):
        print(f"above majority with {title}: {gain.mean():+.1f} (worst {gain.min():+.1f})")
