"""The exact accuracy of weighted majority against the paper's bounds and its proxy.

venire reproduce --figure bounds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venire.paper.accuracy import (
    accuracy,
    accuracy_lower_bound,
    accuracy_upper_bound,
    clamp_competence,
)
from venire_research.common import drawing
from venire_research.common.statistics import band
from venire_research.reproduction import measures
from venire_research.reproduction.claims import Claim, about, at_least
from venire_research.reproduction.exact import best_c, implied_c
from venire_research.reproduction.figure import Figure, Findings, Plan, Results
from venire_research.reproduction.sources import RHO
from venire_research.sweeps.sweep import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["FIGURE"]

Floats = NDArray[np.float64]

#: The panels; those of the label sets are added where these are there.
PANELS: Mapping[str, tuple[float, ...]] = {
    "synthetic": tuple((0.9 - 0.005 * np.arange(1, 31)).round(6).tolist()),
    "weak (0.55–0.70)": tuple(np.linspace(0.55, 0.70, 21).round(6).tolist()),
    "mixed (0.55–0.95)": tuple(np.linspace(0.55, 0.95, 21).round(6).tolist()),
    "erratum 7": (0.984375, 0.9375, 0.9375, 0.875, 0.875),
}
#: The c that fits the synthetic panel best.
BEST_C, TOLERANCE = 2.398, 0.01
#: A c so near to 1 is called about right.
ABOUT = 0.1


@dataclass(frozen=True)
class Config:
    """The runs behind "what it changes in the decisions"."""

    constants: tuple[float, ...]
    slots: int
    seeds: int


FULL = Config(constants=(0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0), slots=10_000, seeds=20)
QUICK = Config(constants=(0.25, 0.5, 1.0, 2.0, 4.0), slots=2000, seeds=4)


@dataclass(frozen=True, eq=False)
class Shown:
    """What is drawn: exact curves by panel, and what c does to a run (seeds x constants)."""

    exact: Mapping[str, tuple[Floats, Floats]]
    fitted: Mapping[str, float]
    constants: Sequence[float]
    labels: Floats
    right: Floats
    true_utility: Floats


class Bounds(Figure):
    """Exact against bounds and proxy; the c that fits, and what it changes."""

    name = "bounds"
    title = "The accuracy of weighted majority: exact, bounds and proxy"
    paper = (
        "1 - exp(-err) <= accuracy <= 1 - 3/8 exp(-2 err - 4 sqrt(err)); and since the gap "
        "between the bounds is a constant, accuracy = 1 - exp(-c err) for a constant c."
    )
    assumptions = (
        "Label sets are the best 1, 2, ... labelers of a panel; two equally likely classes.",
        "The best c has the least squared error over those sets. The Bird panel is what Algorithm "
        "3 learns on all of its labels, kept within [1/2, 0.99].",
        "Plot (c): Algorithm 1 on the synthetic stream with known competences.",
    )

    @property
    def uses(self) -> tuple[str, ...]:
        """The Bird panel."""
        return ("bluebird",)

    def panels(self, plan: Plan) -> dict[str, tuple[float, ...]]:
        """The panels, with Bird's where it is there."""
        found = dict(PANELS)
        if plan.sets.has("bluebird"):
            learned = plan.sets.load("bluebird").competences
            found["Bird"] = tuple(clamp_competence(learned, rho=RHO).round(6).tolist())
        return found

    def constants(self, plan: Plan) -> tuple[float, ...]:
        """The c of the runs: a grid, and the one that fits the synthetic panel best."""
        curve = measures.exact_curve(PANELS["synthetic"])
        best = best_c(curve["evidence"], curve["accuracy"])
        return tuple(sorted({*plan.pick(FULL, QUICK).constants, best}))

    def points(self, plan: Plan) -> list[Point]:
        """The exact curves and the runs."""
        config = plan.pick(FULL, QUICK)
        found = [_curve(panel) for panel in self.panels(plan).values()]
        seeds = plan.seeds_or(config.seeds)
        return found + [_run(config, c, s) for c in self.constants(plan) for s in seeds]

    def measure(self, plan: Plan, results: Results) -> Findings:
        """Curves, fits and decisions."""
        config = plan.pick(FULL, QUICK)
        seeds, constants = list(plan.seeds_or(config.seeds)), self.constants(plan)
        exact = {}
        for name, panel in self.panels(plan).items():
            found = results[_curve(panel).key]
            exact[name] = np.array(found["evidence"]), np.array(found["accuracy"])
        runs = [[results[_run(config, c, s).key] for c in constants] for s in seeds]
        shown = Shown(
            exact,
            {name: best_c(*curve) for name, curve in exact.items()},
            constants,
            np.array([[run["labels_per_item"] for run in row] for row in runs]),
            np.array([[run["right"][0] for run in row] for row in runs]),
            np.array([[run["true_utility"][0] / run["items"][0] for run in row] for row in runs]),
        )
        rows = _rows(shown, seeds)
        return Findings(_drawn(shown), rows, _claims(shown), _words(shown), seeds, shown)

    def draw(self, findings: Findings) -> Canvas:
        """Three plots: the error, the implied c, the decisions."""
        shown: Shown = findings.shown
        canvas, (top, middle, bottom) = drawing.panels((2.9, 1.5, 1.6), share_x=False)
        _draw_error(top, shown)
        _draw_implied(middle, shown)
        _draw_decisions(bottom, shown)
        drawing.legend(top)
        return canvas


def _curve(panel: Sequence[float]) -> Point:
    return measures.point("exact_curve", {"competences": list(panel)})


def _run(config: Config, c: float, seed: int) -> Point:
    settings = {"stream": {"set": None}, "seed": seed, "horizons": [config.slots], "c": c}
    return measures.point("stream_run", settings)


def _claims(shown: Shown) -> list[Claim]:
    held = np.concatenate([e for e, _ in shown.exact.values()])
    exact = np.concatenate([a for _, a in shown.exact.values()])
    implied = implied_c(*shown.exact["synthetic"])
    printed, half = exact - accuracy(held), exact - accuracy_lower_bound(held)
    room = accuracy_upper_bound(held) - exact
    spread = float(implied[0] / implied[-1])
    rounding = 1e-12
    sets = "least over all sets"
    return [
        at_least(
            f"exact less the lower bound as printed, {sets}", float(printed.min()), 0, rounding
        ),
        at_least(
            f"exact less the lower bound with the half, {sets}",
            float(half.min()),
            0,
            rounding,
            "venire",
        ),
        at_least(f"upper bound less exact, {sets}", float(room.min()), 0, rounding),
        about(
            "one c serves: that of 1 label over that of 30 (synthetic)",
            spread,
            1.0,
            0.25,
            "our reading",
        ),
        about("c that fits the synthetic panel best", _fit(shown), BEST_C, TOLERANCE, "venire"),
    ]


def _fit(shown: Shown) -> float:
    return shown.fitted["synthetic"]


def _words(shown: Shown) -> list[str]:
    fits = ", ".join(f"{c:.2f} ({name})" for name, c in shown.fitted.items())
    implied = implied_c(*shown.exact["synthetic"])
    best, one = shown.constants.index(shown.fitted["synthetic"]), shown.constants.index(1.0)
    labels, right, true = (band(v).mean for v in (shown.labels, shown.right, shown.true_utility))
    top, bought = int(np.argmax(true)), round(float(labels[one]))
    near = "about" if abs(implied[bought - 1] - 1) <= ABOUT else "not"
    return [
        "The c that fits best, by the squared error of the accuracy over the best 1, 2, ... "
        f"labelers, depends on the panel: {fits}; small sets weigh most in it, for there the "
        "errors are large. Within the synthetic panel the c "
        f"that would be right falls from {implied[0]:.2f} with one label to {implied[-1]:.2f} with "
        "30: no constant serves small and large sets of labels. With the best "
        f"{bought}, as many as Algorithm 1 buys for an item, it is {implied[bought - 1]:.2f}: "
        f"c = 1 is {near} right where the algorithm works.",
        f"With c = {shown.constants[best]:.2f} instead of 1, Algorithm 1 on the synthetic stream "
        f"buys {labels[best]:.2f} labels per item instead of {labels[one]:.2f}, is right on "
        f"{right[best]:.2%} instead of {right[one]:.2%}, and earns a true utility of "
        f"{true[best]:.3f} an item instead of {true[one]:.3f}. Of the constants tried, "
        f"c = {shown.constants[top]:.2f} earns most, {true[top]:.3f}.",
    ]


_PANEL_LOOK = (("blue", "o"), ("red", "^"), ("green", "s"), ("purple", "D"), ("orange", "v"))


def _draw_error(axes: Axes, shown: Shown) -> None:
    top = 6.0
    e = np.linspace(0.01, top, 300)
    grey = drawing.COLOURS["grey"]
    axes.plot(e, 1 - accuracy(e), color="black", label="proxy, c = 1 (eq. 2)")
    axes.plot(e, 1 - accuracy_lower_bound(e), "--", color=grey, label="lower bound, with 1/2")
    axes.plot(e, 1 - accuracy_upper_bound(e), ":", color=grey, label="upper bound")
    c = shown.fitted["synthetic"]
    axes.plot(e, 1 - accuracy(e, c), "-.", color="black", label=f"proxy, c = {c:.2f} (fit)")
    for (name, (held, exact)), (colour, marker) in zip(
        shown.exact.items(), _PANEL_LOOK, strict=False
    ):
        few = held <= top
        axes.plot(
            held[few],
            1 - exact[few],
            marker,
            color=drawing.COLOURS[colour],
            ms=3,
            label=name,
        )
    axes.set(yscale="log", ylim=(1e-4, 1), xlim=(0, top))
    axes.set(xlabel="evidence of the labels, err", ylabel="chance of a\nwrong verdict")


def _draw_implied(axes: Axes, shown: Shown) -> None:
    for (held, exact), (colour, marker) in zip(shown.exact.values(), _PANEL_LOOK, strict=False):
        size, colour = np.arange(1, len(held) + 1), drawing.COLOURS[colour]
        axes.plot(size, implied_c(held, exact), marker + "-", color=colour, ms=2.5, lw=0.8)
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set(xlabel="labels in the set (the best of the panel)", ylabel="c that would\nbe right")
    axes.set(yscale="log", xscale="log")
    _ticks(axes.xaxis, (1, 2, 5, 10, 20, 40))
    _ticks(axes.yaxis, (0.7, 1, 2, 4, 7))


def _draw_decisions(axes: Axes, shown: Shown) -> None:
    change = band(100 * _gain(shown))
    drawing.curve(axes, shown.constants, change, "blue", None)
    axes.axhline(0.0, color="black", lw=0.8)
    axes.set(xscale="log", xlabel="constant c of the proxy")
    axes.set_ylabel("true utility\nvs. c = 1 (%)")
    _ticks(axes.xaxis, (0.25, 0.5, 1, 2, 4))


def _gain(shown: Shown) -> Floats:
    """How much more true utility than with c = 1, on the same stream."""
    one = shown.true_utility[:, shown.constants.index(1.0)]
    return shown.true_utility / one[:, None] - 1


def _ticks(axis: Any, places: Sequence[float]) -> None:
    axis.set_major_formatter(lambda v, _: f"{v:g}")
    axis.set_minor_formatter(lambda v, _: "")
    axis.set_ticks(places)


def _drawn(shown: Shown) -> list[dict[str, Any]]:
    rows = []
    for name, (held, exact) in shown.exact.items():
        columns = zip(
            held, exact, accuracy(held), accuracy_lower_bound(held), accuracy_upper_bound(held),
            accuracy(held, shown.fitted[name]), implied_c(held, exact), strict=True,
        )  # fmt: skip
        for size, (e, a, proxy, low, high, fit, c) in enumerate(columns, start=1):
            rows.append(
                {
                    "panel": name, "labels": size, "evidence": e, "exact": a, "proxy_c_1": proxy,
                    "lower_bound": low, "upper_bound": high, "fitted_c": shown.fitted[name],
                    "proxy_fitted": fit, "implied_c": c,
                }
            )  # fmt: skip
    return rows


def _rows(shown: Shown, seeds: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "c": c,
            "seed": seed,
            "labels_per_item": float(shown.labels[j, k]),
            "right": float(shown.right[j, k]),
            "true_utility_per_item": float(shown.true_utility[j, k]),
        }
        for j, seed in enumerate(seeds)
        for k, c in enumerate(shown.constants)
    ]


FIGURE = Bounds()
