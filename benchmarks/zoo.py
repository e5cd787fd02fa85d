"""Every method on the zoo of synthetic worlds: python -m benchmarks zoo [--each 25] [--seed 1]."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.zoo_worlds import KINDS, World, zoo
from venire.estimators import Anchored, Auto, DawidSkene, MajorityVote, OneCoin, WeightedMajority
from venire.estimators.base import BaseEstimator, right_shares
from venire.estimators.metrics import error_rate, expected_calibration_error
from venire.tools.arrays import Floats

FOUR: dict[str, Callable[[], BaseEstimator]] = {
    "majority": MajorityVote,
    "weighted-majority": WeightedMajority,
    "one-coin": OneCoin,
    "dawid-skene": DawidSkene,
}
METHODS: dict[str, Callable[[], BaseEstimator]] = {
    **FOUR,
    "auto": Auto,
    "anchored": Anchored,
}


def errors(world: World, make: Callable[[], BaseEstimator]) -> tuple[float, float]:
    """Error and ECE of a method, in per cent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = make().fit(world.table).posteriors_
    sure = expected_calibration_error(q.max(axis=1), right_shares(q, world.truth))
    return 100 * error_rate(q, world.truth), 100 * sure


def table(each: int, seed: int) -> tuple[list[str], dict[str, Floats]]:
    """The kind of each world, and worlds x (error, ECE) of each method."""
    worlds = list(zoo(each, seed))
    found = {name: np.array([errors(w, make) for w in worlds]) for name, make in METHODS.items()}
    return [w.kind for w in worlds], found


def markdown(kinds: Sequence[str], found: dict[str, Floats]) -> str:
    """Mean error by kind; then over all: mean, regret, worst against majority, ECE."""
    names, where = list(KINDS), np.array(kinds)
    best = np.min([found[name][:, 0] for name in FOUR], axis=0)
    plain = found["majority"][:, 0]
    last = ["mean", "regret", "95 %", "worst", "share", "ECE"]
    lines = ["| | " + " | ".join([*names, *last]) + " |", "|-" * (len(names) + len(last) + 1) + "|"]
    oracle = np.column_stack([best, np.full_like(best, np.nan)])
    for name, values in {"best of the four": oracle, **found}.items():
        e = values[:, 0]
        cells = [e[where == kind].mean() for kind in names]
        cells += [e.mean(), (e - best).mean(), np.quantile(e - best, 0.95), (e - plain).max()]
        cells += [100 * np.mean(e > plain + 1), values[:, 1].mean()]
        lines.append(f"| {name} | " + " | ".join(_cell(c) for c in cells) + " |")
    return "\n".join(lines)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.1f}"


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks zoo")
    parser.add_argument("--each", type=int, default=25, help="worlds of each kind")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    print(markdown(*table(given.each, given.seed)))
