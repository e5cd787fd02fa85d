"""Every method on every real label set: python -m benchmarks real-data --data ../shared/data."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.zoo import FOUR
from venire.estimators import Anchored, Auto
from venire.estimators.base import BaseEstimator, right_shares
from venire.estimators.metrics import error_rate, expected_calibration_error
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.tools.arrays import Floats

Ints = NDArray[np.int64]

SETS = (
    "adult2", "bluebird", "civilcomments", "dog", "dtype_athlete", "face", "fact_eval", "labelme",
    "llmbar", "llmjudge2024_binary", "medrelex_cause", "ms", "mtbench_judges", "product", "reuters",
    "rte", "sentiment", "snow_joy", "temp", "trec2010", "web", "zencrowd_in",
)  # fmt: skip


def load(folder: Path) -> tuple[LabelTable, Ints]:
    """The labels (of a repeated one, the first), and the class of each item or -1."""
    table = as_table(folder / "labels.csv", repeats="first")
    return table, as_truth(folder / "truth.csv", table)


def rows(table: LabelTable, truth: Ints) -> dict[str, tuple[float, float]]:
    """Error and ECE of each method, in per cent."""
    found = {}
    for name, make in {**FOUR, "anchored": Anchored, "auto": Auto}.items():
        fitted = _fit(make(), table)
        found[name] = _figures(fitted.posteriors_, truth)
    return found


def _fit(model: BaseEstimator, table: LabelTable) -> BaseEstimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    return model


def _figures(posteriors: Floats, truth: Ints) -> tuple[float, float]:
    known = truth >= 0
    q, right = posteriors[known], truth[known]
    sure = expected_calibration_error(q.max(axis=1), right_shares(q, right))
    return 100 * error_rate(q, right), 100 * sure


def measure(data: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """Set by set, what each method reaches."""
    return {name: rows(*load(data / name)) for name in SETS if (data / name).is_dir()}


def markdown(found: dict[str, dict[str, tuple[float, float]]]) -> str:
    """A row for each set, `error / ECE` in per cent of each method; the last row is the mean."""
    methods = list(next(iter(found.values())))
    mean = {m: tuple(np.mean([of[m] for of in found.values()], axis=0)) for m in methods}
    lines = ["| error / ECE, % | " + " | ".join(methods) + " |", "|-" * (len(methods) + 1) + "|"]
    for name, of in [*found.items(), ("mean", mean)]:
        cells = [f"{of[m][0]:.2f} / {of[m][1]:.1f}" for m in methods]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks real-data")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    found = measure(parser.parse_args(arguments).data)
    if not found:
        sys.exit("none of the sets is in that folder; each is a folder with labels.csv, truth.csv")
    print(markdown(found))
