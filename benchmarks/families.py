"""Judges who share errors: the default against the majority, alone, with their family, with gold.

    python -m benchmarks families [--seeds 4] [--panels 2] [--items 600]

Panels of five to nine judges, two to four of whom are a family: each member says what the family
says of a share rho of the items. Skills are drawn: the family's one skill from .65 to .85, the
others' from .6 to .92. Every panel is drawn anew for each of `--panels`, and its labels for each of
`--seeds`; what is shown is the mean over the labels of a panel.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators import Auto, MajorityVote
from venire.estimators.metrics import error_rate
from venire.labels import LabelTable

RHOS: Final = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97)
GOLD: Final = 20


class Panel(NamedTuple):
    """A family of so many with one skill, and the skills of the others."""

    family: int
    skill: float
    others: tuple[float, ...]
    rho: float

    def labels(self, items: int, rng: np.random.Generator) -> tuple[LabelTable, NDArray[np.intp]]:
        """Labels of two classes, the first judges being the family; and the truth."""
        truth = (rng.random(items) < 0.6).astype(np.intp)
        common = rng.random((items, 1)) < self.skill
        own = rng.random((items, self.family)) < self.skill
        shared = rng.random((items, self.family)) < self.rho
        family = np.where(shared, common, own)
        others = rng.random((items, len(self.others))) < self.others
        right = np.hstack([family, others])
        return LabelTable.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None])), truth


def panels(each: int, seed: int) -> Iterator[Panel]:
    """Every size of family and panel and every rho, with skills that are drawn."""
    rng = np.random.default_rng(seed)
    for family in (2, 3, 4):
        for judges in range(5, 10):
            for _ in range(each):
                skill = float(rng.uniform(0.65, 0.85))
                others = tuple(rng.uniform(0.6, 0.92, judges - family).tolist())
                for rho in RHOS:
                    yield Panel(family, skill, others, rho)


class Right(NamedTuple):
    """Per cent right."""

    majority: float
    auto: float
    declared: float
    gold: float
    gold_majority: float


def right(panel: Panel, items: int, seed: int) -> Right:
    """How the methods do on one draw of labels."""
    rng = np.random.default_rng([seed, 31])
    table, truth = panel.labels(items, rng)
    known = rng.choice(items, GOLD, replace=False)
    gold = {int(i): int(truth[i]) for i in known}
    rest = np.setdiff1d(np.arange(items), known)
    declared = dict.fromkeys(range(panel.family), "family")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vote = MajorityVote().fit(table).posteriors_
        auto = Auto().fit(table).posteriors_
        told = Auto(families=declared).fit(table).posteriors_
        taught = Auto().fit(table, gold=gold).posteriors_
    errors = (
        *(error_rate(q, truth) for q in (vote, auto, told)),
        *(error_rate(q[rest], truth[rest]) for q in (taught, vote)),
    )
    return Right(*(100 * (1 - error) for error in errors))


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table, by rho, and the panels below the majority."""
    parser = argparse.ArgumentParser(prog="families", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--panels", type=int, default=2)
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1, help="of the skills")
    given = parser.parse_args(arguments)
    rows: dict[float, list[list[float]]] = {}
    below: list[str] = []
    for panel in panels(given.panels, given.seed):
        seen = np.array([right(panel, given.items, seed) for seed in range(given.seeds)])
        mean = Right(*seen.mean(axis=0))
        gains = [
            mean.auto - mean.majority,
            mean.declared - mean.majority,
            mean.gold - mean.gold_majority,
        ]
        rows.setdefault(panel.rho, []).append([mean.majority, *gains])
        if gains[0] < -1 or gains[2] < -1:
            skills = " ".join(f"{skill:.2f}" for skill in panel.others)
            below.append(
                f"{panel.family} of {panel.skill:.2f}, rho {panel.rho:g}; {skills}: "
                f"auto {gains[0]:+.1f}, gold {gains[2]:+.1f}"
            )
    print(f"| rho | majority | auto (worst) | family declared (worst) | {GOLD} gold (worst) |")
    print("|-|-:|-:|-:|-:|")
    for rho, found in rows.items():
        cells = np.array(found)
        told = (f"{cells[:, j].mean():+.1f} ({cells[:, j].min():+.1f})" for j in range(1, 4))
        print(f"| {rho:g} | {cells[:, 0].mean():.1f} | " + " | ".join(told) + " |")
    total = sum(len(found) for found in rows.values())
    print(f"\nMore than a point below the majority, of {total} panels:", *below, sep="\n")
