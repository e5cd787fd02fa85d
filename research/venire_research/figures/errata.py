"""Three errata in pictures: the theorem of 1/2, the sign flip, and `Break`.

venire reproduce --figure errata
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venire_research.common import drawing
from venire_research.common.statistics import Estimate, band
from venire_research.reproduction import measures
from venire_research.reproduction.claims import Claim, about, at_least
from venire_research.reproduction.figure import Figure, Findings, Plan, Results
from venire_research.reproduction.sources import SYNTHETIC
from venire_research.sweeps.sweep import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["FIGURE"]

#: Erratum 4 of docs/errata.md: the ratio with 300 labelers.
RATIO_OF_300, TOLERANCE = 0.04, 0.001


@dataclass(frozen=True)
class Config:
    """What is run."""

    labelers: tuple[int, ...]
    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    slots: int
    seeds: int


FULL = Config(
    labelers=(10, 20, 50, 100, 200, 300, 500, 1000),
    lengths=(5, 15, 25, 45, 125, 300, 600),
    shares=(0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0),
    slots=5000,
    seeds=20,
)
QUICK = Config(
    labelers=(10, 30, 100, 300, 1000),
    lengths=(5, 15, 45, 125),
    shares=(0.05, 0.1, 0.2, 0.4, 0.7, 1.0),
    slots=2000,
    seeds=4,
)


@dataclass(frozen=True, eq=False)
class Shown:
    """What is drawn: the ratio, against each of three things (seeds first)."""

    config: Config
    counterexample: NDArray[np.float64]
    fixed: NDArray[np.float64]
    literal: NDArray[np.float64]
    breaking: NDArray[np.float64]


class Errata(Figure):
    """Each statement as printed, shown failing."""

    name = "errata"
    title = "Three errata, each as a small picture"
    paper = (
        "(a) Algorithm 1 with known competences earns at least half of the optimum. (b) Online "
        "Learn, line 3: flip all competences if their mean is at least 1/K. (c) Algorithm 1, line "
        "11: Break as soon as a classifier finds no sample of positive gain."
    )
    assumptions = (
        "(a) M labelers of evidence 3/M, 2M items of weight 0.33 M, all at slot 0; the optimum is "
        "at least what a plain schedule earns, which gives each slot whole to a few fresh items.",
        "(c) The synthetic stream; each labeler may label an item with the given probability.",
    )

    def points(self, plan: Plan) -> list[Point]:
        """All runs of the three pictures."""
        config = plan.pick(FULL, QUICK)
        seeds = plan.seeds_or(config.seeds)
        found = [_counterexample(n) for n in config.labelers]
        found += [_flip(config, n, rule, s) for n, rule in _flips(config) for s in seeds]
        return found + [_break(config, share, s) for share in config.shares for s in seeds]

    def measure(self, plan: Plan, results: Results) -> Findings:
        """The ratios, and what they say of the statements."""
        config = plan.pick(FULL, QUICK)
        seeds = list(plan.seeds_or(config.seeds))
        shown = _shown(config, seeds, results)
        rows = list(_rows(shown, seeds))
        return Findings(_drawn(shown), rows, _claims(shown), _words(shown), seeds, shown)

    def draw(self, findings: Findings) -> Canvas:
        """Three plots with axes of their own."""
        shown: Shown = findings.shown
        canvas, (top, middle, bottom) = drawing.panels((1.8, 1.8, 1.8), share_x=False)
        _draw_counterexample(top, shown)
        _draw_flip(middle, shown)
        _draw_break(bottom, shown)
        for axes in (top, middle, bottom):
            drawing.legend(axes)
        return canvas


def _counterexample(labelers: int) -> Point:
    return measures.point("counterexample", {"labelers": labelers})


def _flips(config: Config) -> list[tuple[int, str]]:
    return [
        (n, rule)
        for n in (0, *config.lengths)
        for rule in (("fixed", "literal") if n else ("fixed",))
    ]


def _flip(config: Config, length: int, rule: str, seed: int) -> Point:
    settings: dict[str, Any] = {
        "stream": {"set": SYNTHETIC.set},
        "seed": seed,
        "horizons": [config.slots],
        "length": length,
        "sign_rule": rule,
    }
    return measures.point("stream_run", settings)


def _break(config: Config, share: float, seed: int) -> Point:
    settings = {"share": share, "seed": seed, "slots": config.slots}
    return measures.point("break_run", settings)


def _shown(config: Config, seeds: list[int], results: Results) -> Shown:
    pairs = [results[_counterexample(n).key] for n in config.labelers]

    def utility(length: int, rule: str) -> NDArray[np.float64]:
        runs = [results[_flip(config, length, rule, s).key] for s in seeds]
        return np.array([run["utility"][0] for run in runs])

    genie = utility(0, "fixed")
    ratios = {
        rule: np.array([utility(n, rule) / genie for n in config.lengths]).T
        for rule in ("fixed", "literal")
    }
    breaks = [[results[_break(config, share, s).key] for share in config.shares] for s in seeds]
    return Shown(
        config,
        np.array([pair["greedy"] / pair["plain"] for pair in pairs]),
        ratios["fixed"],
        ratios["literal"],
        np.array([[run["break"] / run["going_on"] for run in row] for row in breaks]),
    )


def _claims(shown: Shown) -> list[Claim]:
    at_300 = float(shown.counterexample[shown.config.labelers.index(300)])
    k = shown.config.lengths.index(45)
    flip, ours, breaking = band(shown.literal), band(shown.fixed), band(shown.breaking)
    worst = int(np.argmin(breaking.mean))
    least = float(shown.counterexample.min())
    half = "(a) Algorithm 1 over a plain schedule, least over M"
    on = "(c) utility with Break over going on, least over shares"
    return [
        at_least(half, least, 0.5),
        about("(a) the same with 300 labelers", at_300, RATIO_OF_300, TOLERANCE, "venire"),
        at_least(
            "(b) ratio with the flip as printed, T_L = 45", _at(flip, k), 0.5, 0.0, "our reading"
        ),
        at_least("(b) ratio with our flip, T_L = 45", _at(ours, k), 0.95, 0.0, "venire"),
        at_least(on, _at(breaking, worst), 1.0, 0.01, "our reading"),
    ]


def _at(values: Any, k: int) -> Estimate:
    return Estimate(float(values.mean[k]), float(values.low[k]), float(values.high[k]))


def _words(shown: Shown) -> list[str]:
    config = shown.config
    breaking = band(shown.breaking)
    return [
        f"(a) Against a plain schedule Algorithm 1 earns {shown.counterexample[0]:.2f} with "
        f"{config.labelers[0]} labelers and {shown.counterexample[-1]:.3f} with "
        f"{config.labelers[-1]:,}: the guarantee of 1/2 does not hold, and no constant would.",
        f"(b) With the flip as printed Algorithm 2 earns {np.nanmean(shown.literal):.2f} of the "
        f"genie's utility, averaged over T_L; with ours {np.nanmean(shown.fixed):.2f}.",
        f"(c) Where each labeler may label {config.shares[0]:.0%} of the items, Break earns "
        f"{breaking.mean[0]:.2f} of what going on earns; where all may label all, "
        f"{breaking.mean[-1]:.3f}.",
    ]


def _draw_counterexample(axes: Axes, shown: Shown) -> None:
    M = shown.config.labelers
    axes.plot(
        M,
        shown.counterexample,
        "o-",
        color=drawing.COLOURS["blue"],
        label="Alg. 1 / plain schedule",
    )
    axes.axhline(0.5, color=drawing.COLOURS["grey"], ls="-.", label="theorem: 1/2")
    axes.set(yscale="log", ylabel="share of the\noptimum, at most")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    drawing.decades(axes, "number of labelers M")


def _draw_flip(axes: Axes, shown: Shown) -> None:
    drawing.curve(axes, shown.config.lengths, band(shown.fixed), "green", "flip below 1/K")
    drawing.curve(
        axes,
        shown.config.lengths,
        band(shown.literal),
        "red",
        "from 1/K on (printed)",
        marker="s",
    )
    axes.set(ylabel="utility / genie's", ylim=(0, 1.05))
    drawing.decades(axes, "length of the learning phase $T_L$ (slots)")


def _draw_break(axes: Axes, shown: Shown) -> None:
    drawing.curve(
        axes, shown.config.shares, band(shown.breaking), "purple", "Break / going on", marker="^"
    )
    axes.set(ylabel="utility / that of\ngoing on", ylim=(0, 1.05))
    axes.set_xlabel("share of the items that a labeler may label (%)")
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g}")


def _drawn(shown: Shown) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"picture": "counterexample", "x": n, "ratio": float(r), "low": None, "high": None}
        for n, r in zip(shown.config.labelers, shown.counterexample, strict=True)
    ]
    for name, x, values in _bands(shown):
        b = band(values)
        rows += [
            {"picture": name, "x": x[k], "ratio": b.mean[k], "low": b.low[k], "high": b.high[k]}
            for k in range(len(x))
        ]
    return rows


def _bands(shown: Shown) -> list[tuple[str, tuple[float, ...], NDArray[np.float64]]]:
    config = shown.config
    return [
        ("flip-ours", config.lengths, shown.fixed),
        ("flip-printed", config.lengths, shown.literal),
        ("break", config.shares, shown.breaking),
    ]


def _rows(shown: Shown, seeds: list[int]) -> list[dict[str, Any]]:
    return [
        {"picture": name, "x": x[k], "seed": seed, "ratio": float(values[j, k])}
        for name, x, values in _bands(shown)
        for j, seed in enumerate(seeds)
        for k in range(len(x))
    ]


FIGURE = Errata()
