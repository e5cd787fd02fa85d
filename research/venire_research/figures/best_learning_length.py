"""The best T_L against T, with its spread: the appendix promises it and does not show it.

venire reproduce --figure best-learning-length --data DIR
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from venire_research.common import drawing
from venire_research.common.statistics import Estimate, slope
from venire_research.figures import bird_regret, dog_regret, synthetic_regret
from venire_research.reproduction.claims import Claim, about
from venire_research.reproduction.figure import Figure, Findings, Plan, Results
from venire_research.reproduction.search import Search
from venire_research.sweeps.sweep import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["FIGURE"]

#: b in T_L ~ (log T)^b; Theta(log T) is b = 1.
EXPECTED_POWER, TOLERANCE = 1.0, 0.5

_LOOK = (("blue", "o"), ("green", "s"), ("red", "^"), ("purple", "v"))


class BestLearningLength(Figure):
    """The same runs as the regret figures; missing label sets are left out."""

    name = "best-learning-length"
    title = "The best length of the learning phase against the horizon"
    paper = (
        "Theorem: with T_L = Theta(log T) the competitive ratio is at least 1/2 - O(log(T)/T). "
        "The text refers to the appendix for the best T_L; the appendix does not show it."
    )
    assumptions = (
        "Best: highest mean utility over all seeds. The bars are the middle 95 % of what other "
        "draws of the same seeds would choose (bootstrap).",
        "Where neighbouring lengths earn nearly the same, the best is ill determined: read the "
        "bars, not the dots.",
    )
    parts = (synthetic_regret.FIGURE, bird_regret.FIGURE, dog_regret.FIGURE)

    @property
    def uses(self) -> tuple[str, ...]:
        """The label sets of its parts."""
        return tuple(name for part in self.parts for name in part.needs)

    def points(self, plan: Plan) -> list[Point]:
        """The runs of the regret figures."""
        return [p for part in self.parts if not part.missing(plan) for p in part.points(plan)]

    def measure(self, plan: Plan, results: Results) -> Findings:
        """The best lengths, and how they grow."""
        there = [part for part in self.parts if not part.missing(plan)]
        found = [one for part in there for one in part.searches(plan, results)]
        absent = [part.title for part in self.parts if part.missing(plan)]
        words = [_sentence(one) for one in found]
        words += [f"Left out, for want of its label set: {title}." for title in absent]
        drawn = [row for one in found for row in _drawn(one)]
        runs = [row for one in found for row in _choices(one)]
        seeds = max((one.trials.seeds for one in found), key=len)
        claims = [_claim(one) for one in found]
        return Findings(drawn, runs, claims, words, seeds, found, _seeds(found))

    def draw(self, findings: Findings) -> Canvas:
        """One plot, a colour for each stream."""
        canvas, (axes,) = drawing.panels((2.8,))
        shown: Sequence[Search] = findings.shown
        for k, (one, (colour, marker)) in enumerate(zip(shown, _LOOK, strict=False)):
            T = one.trials.horizons * 1.04 ** (k - (len(shown) - 1) / 2)
            error = np.maximum([one.best - one.best_low, one.best_high - one.best], 0.0)
            axes.errorbar(
                T, one.best, error, fmt=marker, ls="-", lw=0.8, elinewidth=0.8, capsize=1.5,
                color=drawing.COLOURS[colour], label=one.trials.source.title,
            )  # fmt: skip
        first, last = shown[0].trials.horizons[[0, -1]]
        T = np.geomspace(first, last, 100)
        axes.plot(T, np.log(T), "-.", color=drawing.COLOURS["grey"], label="log T")
        axes.set(yscale="log", ylabel="best length of the\nlearning phase $T_L$ (slots)")
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.4g}")
        drawing.decades(axes, "horizon T (slots)")
        drawing.legend(axes, columns=2)
        return canvas


def _seeds(found: Sequence[Search]) -> str:
    """Each stream has its own."""
    each = (
        f"{one.trials.source.title} {one.trials.seeds[0]} to {one.trials.seeds[-1]} "
        f"({len(one.trials.seeds)} streams)"
        for one in found
    )
    return "; ".join(each)


def _powers(one: Search) -> tuple[Estimate, Estimate]:
    """B in T_L ~ T^b, and in T_L ~ (log T)^b, with what redrawn seeds make of them."""
    T = one.trials.horizons.astype(np.float64)
    found = []
    for x in (np.log(T), np.log(np.log(T))):
        best = slope(x, np.log(one.best))
        drawn = [slope(x, np.log(lengths)) for lengths in one.redrawn]
        low, high = np.quantile(drawn, [0.025, 0.975])
        found.append(Estimate(best, float(low), float(high)))
    return found[0], found[1]


def _claim(one: Search) -> Claim:
    text = f"{one.trials.source.title}: best T_L is Theta(log T): b in T_L ~ (log T)^b"
    return about(text, _powers(one)[1], EXPECTED_POWER, TOLERANCE, "our reading")


def _sentence(one: Search) -> str:
    T, power = one.trials.horizons, _powers(one)[0]
    return (
        f"{one.trials.source.title}: the best T_L goes from {one.best[0]} at T = {T[0]:,} to "
        f"{one.best[-1]} at T = {T[-1]:,}, like T^{power.value:.2f} "
        f"(95 % interval {power.low:.2f} to {power.high:.2f})." + _at_the_edge(one)
    )


def _at_the_edge(one: Search) -> str:
    """The horizons whose best T_L is the longest tried: the true best may be longer."""
    T, lengths = one.trials.horizons, one.trials.lengths
    longest = [int(lengths[lengths < t].max()) for t in T]
    edge = [f"{t:,}" for t, best, most in zip(T, one.best, longest, strict=True) if best == most]
    if not edge:
        return ""
    return f" At T = {', '.join(edge)} it is the longest T_L tried, and may be longer still."


def _drawn(one: Search) -> list[dict[str, Any]]:
    columns = zip(one.trials.horizons, one.best, one.best_low, one.best_high, strict=True)
    return [
        {
            "stream": one.trials.source.key,
            "T": int(T),
            "best_T_L": int(best),
            "low": float(low),
            "high": float(high),
            "log_T": float(np.log(T)),
        }
        for T, best, low, high in columns
    ]


def _choices(one: Search) -> list[dict[str, Any]]:
    """What each T_L earns on average: how flat the top is."""
    trials = one.trials
    return [
        {
            "stream": trials.source.key,
            "T": int(T),
            "T_L": int(length),
            "mean_normalised_regret": float(trials.regret[i, :, k].mean()),
            "mean_ratio": float(trials.ratio[i, :, k].mean()),
        }
        for k, T in enumerate(trials.horizons)
        for i, length in enumerate(trials.lengths)
        if length < T
    ]


FIGURE = BestLearningLength()
