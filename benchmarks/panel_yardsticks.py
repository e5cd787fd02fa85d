"""How well panels can be compared without the truth: three measures on sets that have it.

    python -m benchmarks.panel_yardsticks DATA rte temp ...

Random parts of the panel and single labelers who leave: the true change in accuracy beside

    own       the change in the panel's own mean confidence
    whole     the posteriors of the whole panel, the same for all (`venire.panels.yardstick`)
    held out  agreement with labelers who are held out, in four folds, corrected by their skills
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from venire import Auto
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.labels.table import keep_labels
from venire.panels import Yardstick
from venire.panels.yardstick import verdicts_of

ITEMS, PARTS, SINGLE, FOLDS = 1500, 24, 25, 4

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def smaller(table: LabelTable, truth: NDArray[np.int64]) -> tuple[LabelTable, NDArray[np.int64]]:
    """At most ITEMS of the items, those with truth first, and the labelers of these."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(truth))
    chosen = np.sort(order[np.argsort(truth[order] < 0, kind="stable")][:ITEMS])
    place = np.full(len(truth), -1)
    place[chosen] = np.arange(len(chosen))
    item = place[table.item]
    kept = item >= 0
    here, labeler = np.unique(table.labeler[kept], return_inverse=True)
    names = range(len(chosen)), [table.labelers[m] for m in here], table.classes
    return LabelTable.from_codes(item[kept], labeler, table.said[kept], *names), truth[chosen]


class Measured:
    """A set, and what each measure says of parts of its panel."""

    def __init__(self, table: LabelTable, truth: NDArray[np.int64]) -> None:
        self.table, self.whole = table, Auto().fit(table)
        self.rule = Yardstick.of_truth(truth, len(table.classes))
        self.expect = Yardstick.of_posteriors(self.whole.posteriors_)
        skill, wrong = self.whole.competences_, len(table.classes) - 1
        self.weight = np.clip(skill - (1 - skill) / wrong, 0.02, None)
        self.weight[self.whole.constant_ | self.whole.contrary_] = 0.0
        fold = np.random.default_rng(1).permutation(len(table.labelers)) % FOLDS
        self.folds = [fold == g for g in range(FOLDS)]
        self.before = [self.agreement(~out, out) for out in self.folds]

    def fit(self, on: Mask) -> Auto:
        return Auto().fit(keep_labels(self.table, on[self.table.labeler]))

    def agreement(self, on: Mask, out: Mask) -> float:
        """How far those who are held out agree with the verdicts of the others."""
        if not on.any():
            return 0.0
        table, verdicts = self.table, verdicts_of(self.fit(on))
        held = out[table.labeler]
        agree = verdicts[table.item[held], table.said[held]]
        return float((self.weight[table.labeler[held]] * agree).sum())

    def changes(self, on: Mask) -> tuple[float, float, float, float, float]:
        """The true change; what three measures say; and the error of the second."""
        part, scale = self.fit(on), float((self.weight[self.table.labeler] ** 2).sum())
        before, after = verdicts_of(self.whole), verdicts_of(part)
        own = part.posteriors_.max(axis=1).mean() - self.whole.posteriors_.max(axis=1).mean()
        folds = zip(self.folds, self.before, strict=True)
        held = sum(self.agreement(on & ~out, out) - known for out, known in folds)
        whole = self.expect.change(before, after)
        true = self.rule.change(before, after).value
        return true, float(own), whole.value, held / scale, whole.error


def parts(labelers: int) -> list[Mask]:
    """Random parts of a panel, of all sizes from a tenth on."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(PARTS):
        size = int(rng.integers(max(2, labelers // 10), labelers))
        found.append(np.isin(np.arange(labelers), rng.permutation(labelers)[:size]))
    return found


def report(name: str, found: list[tuple[float, float, float, float, float]]) -> None:
    """Rank correlation and mean error of each measure, and the coverage of the second."""
    values = np.array(found)
    true, error = values[:, 0], values[:, 4]
    cells = []
    for k in (1, 2, 3):
        varied = values[:, k].std() > 0 and true.std() > 0
        rank = float(spearmanr(true, values[:, k])[0]) if varied else float("nan")
        cells.append(f"{rank:5.2f} {100 * np.abs(values[:, k] - true).mean():5.2f}")
    covered = np.mean(np.abs(values[:, 2] - true) <= 1.96 * error + 1e-12)
    print(f"{name:32} own {cells[0]}  whole {cells[1]}  held out {cells[2]}  cover {covered:.2f}")


def main(data: Path, names: list[str]) -> None:
    """Print two lines for each set."""
    for name in names:
        table = as_table(data / name / "labels.csv", repeats="first")
        found = Measured(*smaller(table, as_truth(data / name / "truth.csv", table)))
        labelers = len(found.table.labelers)
        report(f"{name}, parts", [found.changes(on) for on in parts(labelers)])
        given = np.bincount(found.table.labeler, minlength=labelers)
        busy = np.argsort(-given, kind="stable")[:SINGLE]
        report(f"{name}, one less", [found.changes(np.arange(labelers) != m) for m in busy])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
