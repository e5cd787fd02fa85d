"""Error of what is learned, and utility, against the length of the learning phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from venire.paper.lemmas import error_bound
from venire_research.common import drawing
from venire_research.common.statistics import Estimate, band, bootstrap, share_band
from venire_research.reproduction.claims import Claim, about, at_least, at_most
from venire_research.reproduction.figure import Findings, Plan, Results
from venire_research.reproduction.trials import Expected, GridFigure, Trials, trials_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["LENGTHS", "LearningFigure"]

#: The paper has {5, 15, 25, 45, ..., 1250} and does not say what the dots stand for.
LENGTHS = (5, 15, 25, 45, 75, 125, 200, 300, 450, 650, 900, 1250)

#: The failure probability in Lemma 13's bound.
DELTA = 0.05


@dataclass(frozen=True)
class LearningFigure(GridFigure):
    """Infinity norm, utility and right verdicts against T_L, at one horizon."""

    def measure(self, plan: Plan, results: Results) -> Findings:
        """Bands, claims, and the measurements in words."""
        grid, seeds = self.grid(plan)
        found = [trials_of(s, plan.sets, grid, seeds, results) for s in self.sources]
        claims = [claim for one in found for claim in _claims(one, self.expected)]
        drawn = [row for one in found for row in _drawn(one)]
        runs = [row for one in found for row in one.rows()]
        words = [sentence for one in found for sentence in _words(one, plan)]
        return Findings(drawn, runs, claims, words, list(seeds), found)

    def draw(self, findings: Findings) -> Canvas:
        """Three plots: error, utility, right verdicts."""
        canvas, (top, middle, bottom) = drawing.panels((1.8, 1.9, 2.1))
        several = len(findings.shown) > 1
        for one, colours in zip(findings.shown, drawing.STREAM_COLOURS, strict=False):
            _draw_error(top, one, colours, several)
            _draw_utility(middle, one, colours[0], several)
            _draw_right(bottom, one, colours, several)
        top.set_ylabel("error of the learned\ncompetences")
        top.set_ylim(0, None)
        middle.set_ylabel("utility\n(thousands)")
        drawing.percent_axis(bottom, "right verdicts\n(%)")
        drawing.decades(bottom, "length of the learning phase $T_L$ (slots)")
        for axes in (top, middle, bottom):
            drawing.legend(axes, columns=2 if several else 3)
        return canvas


def _whose(one: Trials, several: bool) -> str:
    return f", {one.source.short}" if several else ""


def _draw_error(axes: Axes, one: Trials, colours: tuple[str, str], several: bool) -> None:
    whose, (dark, light) = _whose(one, several), colours
    mean = band(one.mean_error.T)
    drawing.curve(axes, one.lengths, band(one.norm.T), dark, f"∞-norm{whose}", marker="D")
    drawing.curve(axes, one.lengths, mean, light, f"mean{whose}", marker="v")


def _draw_utility(axes: Axes, one: Trials, colour: str, several: bool) -> None:
    whose = _whose(one, several)
    utility = band(one.utility[:, :, -1].T / 1000)
    drawing.curve(axes, one.lengths, utility, colour, f"Alg. 2{whose}")
    _draw_genie(axes, one, one.genie / 1000, colour if several else "black", whose)


def _draw_genie(
    axes: Axes, one: Trials, values: NDArray[np.float64], colour: str, whose: str
) -> None:
    """The genie does not learn: a flat line with its band."""
    flat = band(np.repeat(values[:, -1:], len(one.lengths), axis=1))
    style: dict[str, Any] = {"marker": "", "linestyle": "--"}
    drawing.curve(axes, one.lengths, flat, colour, f"Alg. 1{whose}", **style)


def _draw_right(axes: Axes, one: Trials, colours: tuple[str, str], several: bool) -> None:
    whose, (dark, light) = _whose(one, several), colours
    drawing.curve(axes, one.lengths, share_band(one.right[:, :, -1].T), dark, f"Alg. 2{whose}")
    _draw_genie(axes, one, one.genie_right, dark if several else "black", whose)
    majority = share_band(one.majority[:, :, -1].T)
    drawing.curve(axes, one.lengths, majority, light, f"majority{whose}", marker="^")


def _claims(one: Trials, expected: Sequence[Expected]) -> list[Claim]:
    who = one.source.title
    claims = [
        at_most(
            f"{who}: the ∞-norm falls with T_L: rank correlation",
            _falls(one),
            -0.9,
            source="our reading",
        ),
        at_least(
            f"{who}: both too short and too long a phase cost: least loss at an end, % of the best",
            _least_loss(one),
            0.1,
            source="our reading",
        ),
        at_least(
            f"{who}: the genie's utility is not constant: spread over streams, % of the mean",
            100 * float(one.genie[:, -1].std(ddof=1) / one.genie[:, -1].mean()),
            0.01,
            source="paper" if one.source.set is None else "our reading",
        ),
    ]
    if one.source.set is None:
        claims.append(_within_lemma(one))
    return claims + [_expected(one, e) for e in expected if e.source == one.source.key]


def _falls(one: Trials) -> Estimate:
    def correlation(norm: NDArray[np.float64]) -> float:
        return float(stats.spearmanr(one.lengths, norm.mean(axis=0)).statistic)

    return bootstrap(one.norm.T, correlation)


def _least_loss(one: Trials) -> Estimate:
    """The smaller of what the shortest and the longest phase lose against the best, in %."""

    def loss(utility: NDArray[np.float64]) -> float:
        mean = utility.mean(axis=0)
        return float(100 * (1 - max(mean[0], mean[-1]) / mean.max()))

    return bootstrap(one.utility[:, :, -1].T, loss)


def _within_lemma(one: Trials) -> Claim:
    """Lemma 13: |error| <= 2 sqrt(log(MK / delta) / T_L) with probability 1 - delta."""
    bound = np.array([error_bound(int(n), 30, 2, DELTA) for n in one.lengths])
    within = float((one.norm <= bound[:, None]).mean())
    text = f"{one.source.title}: share of runs with the ∞-norm within Lemma 13's bound"
    return at_least(text, within, 1 - DELTA)


def _expected(one: Trials, e: Expected) -> Claim:
    """`horizon` is a length here: what should come out at that T_L."""
    k = int(np.flatnonzero(one.lengths == e.horizon)[0])
    values = {"norm": one.norm, "ratio": one.ratio[:, :, -1], "right": one.right[:, :, -1]}[e.what]
    names = {"norm": "∞-norm", "ratio": "ratio", "right": "share of right verdicts"}
    b = band(values.T)
    text = f"{one.source.title}: {names[e.what]} at T_L = {e.horizon}"
    found = Estimate(float(b.mean[k]), float(b.low[k]), float(b.high[k]))
    return about(text, found, e.target, e.tolerance, "venire")


def _words(one: Trials, plan: Plan) -> list[str]:
    T, norm = int(one.horizons[-1]), band(one.norm.T)
    ratio, right = band(one.ratio[:, :, -1].T), band(one.right[:, :, -1].T)
    best = int(np.argmax(ratio.mean))
    genie = float(np.nanmean(one.genie_right[:, -1]))
    majority = band(one.majority[:, :, -1].T)
    said = (
        f"{one.source.title}, T = {T:,}: the ∞-norm falls from {norm.mean[0]:.3f} at T_L = "
        f"{one.lengths[0]} to {norm.mean[-1]:.3f} at T_L = {one.lengths[-1]}. Utility is best at "
        f"T_L = {one.lengths[best]}, {ratio.mean[best]:.2%} of the genie's; there "
        f"{right.mean[best]:.1%} of the verdicts are right (genie {genie:.1%}, plain majority of "
        f"the same labels {majority.mean[best]:.1%}"
    )
    if one.source.set is not None:
        share = plan.sets.load(one.source.set, one.source.merge).majority_accuracy()
        said += f", majority of all labels in the set {share:.1%}"
    return [said + ")."]


def _drawn(one: Trials) -> list[dict[str, Any]]:
    bands = {
        "norm": band(one.norm.T),
        "mean_error": band(one.mean_error.T),
        "utility": band(one.utility[:, :, -1].T),
        "ratio": band(one.ratio[:, :, -1].T),
        "right": band(one.right[:, :, -1].T),
        "majority_right": band(one.majority[:, :, -1].T),
    }
    genie, genie_right = band(one.genie[:, -1]), band(one.genie_right[:, -1])
    rows = []
    for k, length in enumerate(one.lengths.tolist()):
        row: dict[str, Any] = {
            "stream": one.source.key, "T": int(one.horizons[-1]), "T_L": length,
            "seeds": len(one.seeds),
        }  # fmt: skip
        for name, values in bands.items():
            row[name], row[f"{name}_low"], row[f"{name}_high"] = (
                values.mean[k], values.low[k], values.high[k]
            )  # fmt: skip
        row["genie_utility"], row["genie_right"] = float(genie.mean), float(genie_right.mean)
        rows.append(row)
    return rows
