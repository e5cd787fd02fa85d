"""Ordered classes and numbers against the simplest rivals: python -m benchmarks ratings.

Seeds 100 to 119. Types of rater and `least_order` were chosen on the kinds SEEN and UNORDERED at
seeds 1000 to 1007, what `RobustMean` does on its kinds at seeds 0 to 9; the types were not changed
after the kinds UNSEEN were first run. The real sets were in view when the rule that `least_order`
belongs to was made; its value is that of the synthetic worlds (seeds 1000 to 1059).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.rating_worlds import NUMBERS, SEEN, UNORDERED, UNSEEN, Floats, Ints, Rng, numbers
from benchmarks.real_data import load
from venire.estimators import Auto, DawidSkene, MajorityVote, Ordinal, RobustMean
from venire.estimators.base import BaseEstimator
from venire.estimators.metrics import error_rate
from venire.labels import LabelTable
from venire.labels.partitions import vote_counts

#: The first seed.
FIRST = 100

#: The first two have ordered classes.
REAL = ("web", "adult2", "dog", "face", "fact_eval", "labelme", "ms", "reuters")
RIVALS = ("rounded mean", "majority", "Dawid-Skene", "Auto", "Ordinal")


def verdicts(said: Ints, K: int) -> dict[str, Ints]:
    """What each method takes the items for."""
    table = LabelTable.from_matrix(said, K)
    given = np.where(said >= 0, said.astype(float), np.nan)
    halves = np.random.default_rng(0).random(len(said)) < 0.5
    median = np.nanmedian(given, axis=1)
    ordinal = Ordinal().fit(table)
    return {
        "rounded mean": np.rint(np.nanmean(given, axis=1)).astype(int),
        "median": np.where(halves, np.floor(median), np.ceil(median)).astype(int),
        "majority": _said(MajorityVote().fit(table)),
        "Dawid-Skene": _said(DawidSkene().fit(table)),
        "Auto": _said(Auto().fit(table)),
        "Ordinal": _said(ordinal),
        "Ordinal, medians_": np.array(list(ordinal.medians_.values())),
    }


def _said(fitted: BaseEstimator) -> Ints:
    return np.array(list(fitted.labels_.values()))


def ordered(kinds: dict[str, Callable[[Rng], tuple[Ints, Ints, int]]], seeds: int) -> None:
    """Accuracy in per cent / mean absolute error in classes."""
    found: dict[str, dict[str, Floats]] = {}
    for kind, make in kinds.items():
        runs: dict[str, list[tuple[float, float]]] = {}
        for seed in range(FIRST, FIRST + seeds):
            said, truth, K = make(np.random.default_rng(seed))
            for method, got in verdicts(said, K).items():
                off = np.abs(got - truth)
                runs.setdefault(method, []).append((100 * np.mean(off == 0), off.mean()))
        found[kind] = {method: np.mean(all_of, axis=0) for method, all_of in runs.items()}
    methods = list(next(iter(found.values())))
    print("\n| % right / mean absolute error | " + " | ".join(methods) + " |")
    print("|-" * (len(methods) + 1) + "|")
    for kind, row in found.items():
        cells = [f"{row[m][0]:.1f} / {row[m][1]:.2f}" for m in methods]
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


def measured(seeds: int) -> None:
    """Root mean squared error, and the share of 90 % intervals that hold the truth."""
    print("\n| RMSE | mean | median | RobustMean | coverage of its 90 % intervals |\n|-|-|-|-|-|")
    for kind, how in NUMBERS.items():
        rngs = map(np.random.default_rng, range(FIRST, FIRST + seeds))
        rows = [_measure(*numbers(rng, **how)) for rng in rngs]
        mean, median, robust, held = np.mean(rows, axis=0)
        print(f"| {kind} | {mean:.2f} | {median:.2f} | {robust:.2f} | {100 * held:.0f} % |")


def _measure(said: Floats, truth: Floats) -> tuple[float, float, float, float]:
    rows = [(int(s), int(m), float(said[s, m])) for s, m in np.argwhere(said == said)]
    fitted = RobustMean().fit(rows)
    value = np.array([fitted.values_[s] for s in range(len(truth))])
    error = np.array([fitted.standard_errors_[s] for s in range(len(truth))])
    rivals = np.nanmean(said, axis=1), np.nanmedian(said, axis=1), value
    rmse = [float(np.sqrt(np.mean((x - truth) ** 2))) for x in rivals]
    off = value - truth  # how high everybody rates does not show, so it is not counted
    return rmse[0], rmse[1], rmse[2], float(np.mean(np.abs(off - off.mean()) < 1.645 * error))


def real(data: Path) -> None:
    """Sets whose classes have an order, and some whose classes have none, in the order of names."""
    print("\n| % right, real set | order used | strength | " + " | ".join(RIVALS) + " |")
    print("|-" * (len(RIVALS) + 3) + "|")
    for name in (name for name in REAL if (data / name).is_dir()):
        table, truth = load(data / name)
        counts = vote_counts(table)
        mean = np.rint(counts @ np.arange(counts.shape[1]) / np.maximum(counts.sum(axis=1), 1))
        known = (truth >= 0) & (truth < len(table.classes))
        ordinal = Ordinal(order=tuple(table.classes)).fit(table)
        fits = [MajorityVote().fit(table), DawidSkene().fit(table), Auto().fit(table), ordinal]
        right = [np.mean(mean[known] == truth[known])]
        right += [1 - error_rate(fit.posteriors_, truth) for fit in fits]
        cells = " | ".join(f"{100 * x:.1f}" for x in right)
        believed = "yes" if ordinal.ordered_ else "no"
        print(f"| {name} | {believed} | {ordinal.strength_:.2f} | {cells} |", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks ratings")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args(arguments)
    seeds = options.seeds
    warnings.simplefilter("ignore")
    real(options.data)
    for kinds in (SEEN, UNSEEN, UNORDERED):
        ordered(kinds, seeds)
    measured(seeds)
