"""Copies among labelers: false alarms, power, and what discounting brings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.zoo_worlds import thin
from venire.estimators import (
    Auto,
    DawidSkene,
    MajorityVote,
    OneCoin,
    WeightedMajority,
    find_clones,
    merge_clones,
)
from venire.estimators.base import BaseEstimator
from venire.estimators.metrics import error_rate
from venire.labels import LabelTable

Ints = NDArray[np.int64]

METHODS: dict[str, Callable[[], BaseEstimator]] = {
    "majority": MajorityVote,
    "weighted-majority": WeightedMajority,
    "one-coin": OneCoin,
    "dawid-skene": DawidSkene,
}


def panel(
    seed: int, copies: int = 0, faithful: float = 1.0, items: int = 500, labelers: int = 20,
    classes: int = 2, each: int | None = None,
) -> tuple[LabelTable, Ints]:  # fmt: skip
    """Labelers right on 60 to 85 %; the first few say what the very first says, mostly."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=items)
    right = rng.random((items, labelers)) < rng.uniform(0.6, 0.85, labelers)
    wrong = (truth[:, None] + rng.integers(1, classes, size=right.shape)) % classes
    said = np.where(right, truth[:, None], wrong)
    copied = rng.random((items, copies)) < faithful
    said[:, :copies] = np.where(copied, said[:, :1], said[:, :copies])
    return thin(rng, said, classes, each or labelers, uneven=False), truth


def hard_items(seed: int) -> LabelTable:
    """No copies, but items that are easy or hard for everyone."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=(500, 1))
    odds = np.exp(np.exp(rng.normal(0, 1, (500, 1))) * rng.normal(1, 0.5, 20))
    said = np.where(rng.random((500, 20)) < odds / (1 + odds), truth, 1 - truth)
    return LabelTable.from_matrix(said)


def false_alarms(panels: int = 200) -> None:
    kinds: dict[str, Callable[[int], LabelTable]] = {
        "K = 2, 500 items, all labels": lambda s: panel(s)[0],
        "K = 4, 500 items, all labels": lambda s: panel(s, classes=4)[0],
        "K = 2, 1000 items, 6 labels each": lambda s: panel(s, items=1000, each=6)[0],
        "items easy or hard for everyone": hard_items,
    }
    print("| no copies | panels with a significant pair, % | with a clone pair, % |\n|-|-|-|")
    for name, make in kinds.items():
        tables = [make(seed) for seed in range(panels)]
        shares = [
            100 * np.mean([bool(find_clones(t, strength=s).pairs) for t in tables])
            for s in (-1.0, 0.7)
        ]
        print(f"| {name} | {shares[0]:.1f} | {shares[1]:.1f} |")


def power(panels: int = 20) -> None:
    faith = (0.8, 0.85, 0.9, 0.95, 1.0)
    print("\n| exactly this group found, % | " + " | ".join(map(str, faith)) + " |")
    print("|-" * (len(faith) + 1) + "|")
    for copies in (2, 3, 6, 8, 10, 12):
        cells = []
        for faithful in faith:
            groups = [find_clones(panel(s, copies, faithful)[0]).groups for s in range(panels)]
            hit = [[g.members for g in found] == [tuple(range(copies))] for found in groups]
            cells.append(f"{100 * np.mean(hit):.0f}")
        print(f"| {copies} of 20 | " + " | ".join(cells) + " |")


def gain(panels: int = 20) -> None:
    print("\n| error %, as it is -> copies merged | " + " | ".join([*METHODS, "auto"]) + " |")
    print("|-" * (len(METHODS) + 2) + "|")
    for copies in (3, 6, 8):
        found = np.array([_gain(*panel(s, copies, 0.95, labelers=16)) for s in range(panels)])
        cells = [f"{a:.1f} -> {b:.1f}" for a, b in 100 * found.mean(axis=0)]
        print(f"| {copies} of 16 copies | " + " | ".join(cells) + " |")


def _gain(table: LabelTable, truth: Ints) -> list[tuple[float, float]]:
    merged = merge_clones(table, find_clones(table).groups)
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in METHODS.values():
            one, two = (error_rate(make().fit(t).posteriors_, truth) for t in (table, merged))
            out.append((one, two))
        own = error_rate(Auto().fit(table).posteriors_, truth)
    return [*out, (own, own)]


def main(arguments: Sequence[str] = ()) -> None:
    false_alarms()
    power()
    gain()
