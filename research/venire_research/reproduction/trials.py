"""Runs of Algorithms 1 and 2 on one stream, over lengths of the learning phase and seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire_research.common.label_sets import Sets
from venire_research.reproduction import measures
from venire_research.reproduction.figure import Figure, Plan, Results
from venire_research.reproduction.sources import Source
from venire_research.sweeps.sweep import Point

__all__ = ["Expected", "Grid", "GridFigure", "Trials", "trials_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """What is run: every length on every seed, each read at every horizon."""

    horizons: tuple[int, ...]
    lengths: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class Expected:
    """A number that should come out: `what` is "regret", "ratio", "norm" or "right"."""

    source: str
    what: str
    horizon: int
    target: float
    tolerance: float


@dataclass(frozen=True)
class GridFigure(Figure):
    """A figure made of a grid of runs: every length on every seed, of each of its streams."""

    name: str
    title: str
    paper: str
    sources: tuple[Source, ...]
    full: Grid
    quick: Grid
    expected: tuple[Expected, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The label sets of its streams."""
        return tuple(dict.fromkeys(s.set for s in self.sources if s.set is not None))

    def grid(self, plan: Plan) -> tuple[Grid, range]:
        """What is run, and on which seeds."""
        grid = plan.pick(self.full, self.quick)
        return grid, plan.seeds_or(grid.seeds)

    def points(self, plan: Plan) -> list[Point]:
        """Every length on every seed."""
        grid, seeds = self.grid(plan)
        return [p for source in self.sources for p in points_of(source, plan.sets, grid, seeds)]


@dataclass(frozen=True, eq=False)
class Trials:
    """The results, as arrays.

    Those of Algorithm 2 are lengths x seeds x horizons, those of the genie seeds x horizons,
    `norm` and `mean_error` lengths x seeds. nan: nothing was served yet.
    """

    source: Source
    horizons: NDArray[np.int64]
    lengths: NDArray[np.int64]
    seeds: tuple[int, ...]
    utility: Floats
    right: Floats
    majority: Floats
    norm: Floats
    mean_error: Floats
    genie: Floats
    genie_right: Floats
    scale: Floats

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Lengths x horizons: whether the phase ends before the horizon."""
        return self.lengths[:, None] < self.horizons[None, :]

    @property
    def regret(self) -> Floats:
        """Regret over mean arrivals a slot times mean weight: in slots of the stream's worth."""
        return (self.genie - self.utility) / self.scale

    @property
    def ratio(self) -> Floats:
        """Utility of Algorithm 2 over that of Algorithm 1."""
        return self.utility / self.genie

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat row for each run and horizon."""
        for (i, j, k), utility in np.ndenumerate(self.utility):
            if self.usable[i, k]:
                yield {
                    "stream": self.source.key,
                    "seed": self.seeds[j],
                    "T_L": int(self.lengths[i]),
                    "T": int(self.horizons[k]),
                    "utility": utility,
                    "genie_utility": self.genie[j, k],
                    "normalised_regret": self.regret[i, j, k],
                    "ratio": self.ratio[i, j, k],
                    "right": self.right[i, j, k],
                    "genie_right": self.genie_right[j, k],
                    "majority_right": self.majority[i, j, k],
                    "norm": self.norm[i, j],
                    "mean_error": self.mean_error[i, j],
                }


def point_of(source: Source, sets: Sets, grid: Grid, seed: int, length: int) -> Point:
    """One run; length 0 is the genie's."""
    settings: dict[str, Any] = {
        "stream": source.settings(sets),
        "seed": seed,
        "horizons": list(grid.horizons),
    }
    if length:
        settings["length"] = length
    return measures.point("stream_run", settings, source.inputs(sets))


def points_of(source: Source, sets: Sets, grid: Grid, seeds: Sequence[int]) -> list[Point]:
    """Every run of the grid, the genie's first."""
    return [point_of(source, sets, grid, s, n) for n in (0, *grid.lengths) for s in seeds]


def trials_of(
    source: Source, sets: Sets, grid: Grid, seeds: Sequence[int], results: Results
) -> Trials:
    """The runs of the grid as arrays."""
    runs = [
        [results[point_of(source, sets, grid, s, n).key] for s in seeds] for n in (0, *grid.lengths)
    ]

    def array(name: str) -> Floats:
        return np.array([[run[name] for run in row] for row in runs], dtype=np.float64)

    utility, right, norm = array("utility"), array("right"), array("norm")
    horizons = np.array(grid.horizons)
    return Trials(
        source,
        horizons,
        np.array(grid.lengths),
        tuple(seeds),
        utility[1:],
        right[1:],
        array("majority")[1:],
        norm[1:],
        array("mean_error")[1:],
        utility[0],
        right[0],
        array("weight")[0] / horizons,
    )
