"""Guaranteed verdicts: how often broken, how many: python -m benchmarks guarantee.

--data names the folder of real label sets, --draws the draws of gold for each set. Verdicts are
those of `Auto`, without gold. Rivals, each for one look at the end and after every fifth label:
learn then test (a fixed sequence of thresholds from the surest verdicts on, each by the exact
binomial test), and the largest threshold whose Clopper-Pearson bound is low enough.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from benchmarks.real_data import SETS, load
from venire.audits.guarantees import allowed, cuts_of, log_evidence, passed
from venire.estimators import Auto

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

RIGHT, LEVEL, SEED, MOST, EVERY = (0.9, 0.95, 0.98), 0.95, 27, 500, 5

METHODS = ("ours", "learn then test", "Clopper-Pearson")


class Judged(NamedTuple):
    """How sure each verdict is, and whether it is wrong."""

    sure: Floats
    wrong: Bools


def judged(folder: Path) -> Judged:
    table, truth = load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = Auto().fit(table).posteriors_[truth >= 0]
    return Judged(q.max(axis=1), q.argmax(axis=1) != truth[truth >= 0])


def upper(wrong: Ints, audited: Ints, level: float) -> Floats:
    """Clopper and Pearson's bound, one-sided."""
    right = audited - wrong
    return np.where(right > 0, betaincinv(wrong + 1, np.maximum(right, 1), level), 1.0)


class Table:
    """Values of a function of two counts, worked out once for each pair."""

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        self.known: dict[int, float] = {}

    def at(self, wrong: Ints, audited: Ints) -> Floats:
        codes = wrong * 100_000 + audited
        unique, place = np.unique(codes, return_inverse=True)
        new = np.array([code for code in unique.tolist() if code not in self.known], np.int64)
        if len(new):
            S, n = new // 100_000, new % 100_000
            far = 2 * (self.most + 1) / self.size * n + 5 < S  # too many errors to pass
            found = np.full(len(new), -np.inf)
            if (~far).any():
                found[~far] = log_evidence(S[~far], n[~far], self.size, self.most)
            self.known |= dict(zip(new.tolist(), found.tolist(), strict=True))
        return np.array([self.known[c] for c in unique.tolist()])[place].reshape(wrong.shape)


def through(
    method: str, tables: list[Table], S: Ints, n: Ints, part: Floats, right: float
) -> Bools:
    """Which thresholds (last axis) are passed at each look."""
    if method == "ours":
        evidence = np.stack([t.at(S[:, k], n[:, k]) for k, t in enumerate(tables)], axis=1)
        return passed(evidence, part, LEVEL)
    low = upper(S, n, LEVEL) <= 1 - right
    if method == "Clopper-Pearson":
        return low
    begun = np.log(1 - LEVEL) / np.log(right) <= n  # the first that could be passed
    first = begun & (np.cumsum(begun, axis=1) == 1)
    stopped = np.cumsum(begun & ~low, axis=1) > 0
    return np.asarray(begun & ~stopped | first & low)


def measured(data: Judged, right: float, draws: int) -> dict[str, tuple[float, float, float]]:
    """For each method: share guaranteed, broken at the end, ever broken; in per cent."""
    rng, size = np.random.default_rng(SEED), len(data.sure)
    cuts = cuts_of(data.sure)
    most = allowed(cuts.size, right)
    bad = np.array([data.wrong[data.sure >= c].sum() for c in cuts.confidence]) > np.array(most)
    tables = [Table(int(n), m) for n, m in zip(cuts.size.tolist(), most, strict=True)]
    end = min(MOST, size // 2)
    looks = np.arange(EVERY, end + 1, EVERY) - 1
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    for _ in range(draws):
        place = rng.permutation(size)[:end]
        above = data.sure[place][:, None] >= cuts.confidence[None, :]
        n = above.cumsum(axis=0)[looks]
        S = (above & data.wrong[place][:, None]).cumsum(axis=0)[looks]
        for name in METHODS:
            ok = through(name, tables, S, n, cuts.part, right)
            last = np.where(ok.any(axis=1), ok.shape[1] - 1 - ok[:, ::-1].argmax(axis=1), -1)
            broken = (last >= 0) & bad[last]
            share = float(cuts.size[last[-1]] / size) if last[-1] >= 0 else 0.0
            rows[name].append((share, float(broken[-1]), float(broken.any())))
    mean = {name: (100 * np.mean(found, axis=0)).tolist() for name, found in rows.items()}
    return {name: (x[0], x[1], x[2]) for name, x in mean.items()}


def main(arguments: Sequence[str] = ()) -> None:
    """A row for each set and share of right verdicts; then the means and the worst."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks guarantee")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args(arguments)
    heads = [f"{name}: {what}" for name in METHODS for what in ("share", "broken", "ever")]
    print(f"| set | gold | wrong | right | {' | '.join(heads)} |")
    print("|-" * (len(heads) + 4) + "|")
    every: dict[float, list[list[float]]] = {right: [] for right in RIGHT}
    for name in SETS:
        if not (options.data / name).is_dir():
            continue
        data = judged(options.data / name)
        gold = min(MOST, len(data.sure) // 2)
        for right in RIGHT:
            found = measured(data, right, options.draws)
            cells = [x for method in METHODS for x in found[method]]
            every[right].append(cells)
            shown = " | ".join(f"{x:.1f}" for x in cells)
            wrong = f"{100 * data.wrong.mean():.1f}"
            print(f"| {name} | {gold} | {wrong} | {right:.0%} | {shown} |", flush=True)
    for right, rows in every.items():
        for what, fold in (("mean", np.mean), ("worst", np.max)):
            shown = " | ".join(f"{x:.1f}" for x in fold(rows, axis=0))
            print(f"| {what} | | | {right:.0%} | {shown} |")
