"""Which blend would have been chosen without a set, and how it does on that set.

    python -m benchmarks leave-one-out --data ../shared/data

The candidates are the plain means of one to four learners that stay near the vote (`--free`: also
of one-coin's and Dawid-Skene's EM run to its end). For each set the one is taken that is best on
average over all *other* sets among those that are at most `MOST_BELOW` points below the majority on
every one of them; it is judged on the set it has not seen.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from benchmarks.real_data import SETS, Ints, load
from venire.estimators import DawidSkene, MajorityVote, OneCoin, Subtypes
from venire.estimators.base import Floats
from venire.estimators.calibration import discounted
from venire.estimators.scoring import error_rate
from venire.estimators.screening.screen import screen
from venire.estimators.votes.anchored import fill, near_the_vote
from venire.labels import LabelTable

MOST_BELOW: Final = 3.0
OURS: Final = "weighted-majority", "one-step", "subtypes"

Blend: TypeAlias = tuple[str, ...]


def learners(table: LabelTable, free: bool) -> dict[str, Floats]:
    """What each learner says of the labels of those who count."""
    heard = screen(table).heard
    weighted, step = near_the_vote(heard)
    found = {
        "majority": MajorityVote().fit(heard).posteriors_,
        "weighted-majority": weighted,
        "one-step": discounted(heard, step),
        "subtypes": discounted(heard, Subtypes().fit(heard).posteriors_),
    }
    if free:
        for method in (OneCoin(), DawidSkene()):
            found[method.name] = discounted(heard, method.fit(heard).posteriors_)
    return {name: fill(np.array(q), heard) for name, q in found.items()}


def accuracies(table: LabelTable, truth: Ints, free: bool) -> dict[Blend, float]:
    """Per cent right of every candidate, and of the plain majority of all labels (no name)."""
    known, parts = truth >= 0, learners(table, free)
    vote = MajorityVote().fit(table).posteriors_
    found: dict[Blend, float] = {(): _right(vote[known], truth[known])}
    for size in (1, 2, 3, 4):
        for names in combinations(parts, size):
            mean = np.mean([parts[name][known] for name in names], axis=0)
            found[names] = _right(mean, truth[known])
    return found


def _right(posteriors: Floats, truth: Ints) -> float:
    return 100 - 100 * error_rate(posteriors, truth)


def chosen(found: Sequence[dict[Blend, float]]) -> Blend:
    """The best candidate on these sets that is nowhere far below the majority."""
    safe = [
        names
        for names in found[0]
        if names and all(of[names] >= of[()] - MOST_BELOW for of in found)
    ]
    return max(safe, key=lambda names: float(np.mean([of[names] for of in found])))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks leave-one-out")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--free", action="store_true")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    here = [name for name in SETS if (given.data / name).is_dir()]
    found = {name: accuracies(*load(given.data / name), given.free) for name in here}
    header = "set", "majority", "chosen without the set", "right", "the three of auto"
    lines = [f"| {' | '.join(header)} |", "|-" * len(header) + "|"]
    judged = []
    for name, of in found.items():
        best = chosen([other for s, other in found.items() if s != name])
        judged.append((of[()], of[best], of[OURS]))
        cells = name, f"{of[()]:.1f}", ", ".join(best), f"{of[best]:.1f}", f"{of[OURS]:.1f}"
        lines.append(f"| {' | '.join(cells)} |")
    means = np.mean(judged, axis=0)
    below = [min(row[j] - row[0] for row in judged) for j in (1, 2)]
    lines.append(f"| mean | {means[0]:.2f} | | {means[1]:.2f} | {means[2]:.2f} |")
    lines.append(f"| most below majority | | | {below[0]:.1f} | {below[1]:.1f} |")
    sys.stdout.write("\n".join(lines) + "\n")
