"""The picture of the demo: what was learned, what it buys, and who keeps up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from venire_research.common import drawing
from venire_research.digits.comparison import METHODS, Trial, mean_and_spread
from venire_research.digits.equal import Row, summary
from venire_research.digits.panel import RATE, SLOTS, DigitJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "save_equal", "save_picture"]

Floats = NDArray[np.float64]

#: Okabe and Ito's colours, which colour-blind eyes tell apart, and a line style for each.
_LOOK: Final = {
    "venire-student": ("#000000", "-"),
    "venire": ("#0072B2", "-"),
    "overlap-3": ("#E69F00", "-"),
    "overlap-3-ds": ("#E69F00", ":"),
    "overlap-5": ("#D55E00", "-"),
    "overlap-5-ds": ("#D55E00", ":"),
    "best-alone": ("#009E73", (0, (4, 4))),
    "everyone": ("#CC79A7", "-"),
    "paper-learned": ("#56B4E9", "-"),
    "paper-genie": ("0.45", "-"),
}
_SHORT: Final = {
    "venire-student": "with a student",
    "venire": "venire",
    "overlap-3": "3 labels",
    "overlap-5": "5 labels",
    "best-alone": "best alone",
    "everyone": "everyone",
    "paper-learned": "paper, learned",
    "paper-genie": "paper, known",
}
#: Queues are smoothed over this many slots.
_SMOOTH = 10
#: ... and the end of a line is the mean of this many last slots.
_LATE = 100
#: Names at the ends of lines are at least this far apart, as a share of the height.
_APART = 0.058


def save_picture(path: Path, job: DigitJob, trials: Sequence[Trial]) -> None:
    """Draw and save; the folder must exist."""
    draw(job, trials).savefig(path, dpi=160)


def save_equal(path: Path, rows: Sequence[Row]) -> None:
    """Draw the right verdicts at equal labels and equal money, and save that."""
    drawing.require_matplotlib()
    from matplotlib.figure import Figure

    ways = summary(rows)[::-1]
    figure = Figure(figsize=(9, 0.42 * len(ways) + 1.0), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    colours = ["#0072B2" if str(way["key"]).startswith("venire") else "0.35" for way in ways]
    right = [100 * float(way["right"]) for way in ways]
    bars = [100 * float(way["right_spread"]) for way in ways]
    for height, way in enumerate(ways):
        at, wide, colour = right[height], bars[height], colours[height]
        axes.errorbar(at, height, xerr=wide, fmt="o", color=colour, ms=8, capsize=4)
        spent = f"{right[height]:.1f} %, {way['labels']:.1f} labels, {way['money']:.3f} money"
        place = right[height] + bars[height] + 0.6
        axes.annotate(spent, (place, height), va="center", fontsize=10)
    axes.set_yticks(range(len(ways)), [str(way["title"]) for way in ways])
    axes.set(xlim=(65, 106), xlabel="right verdicts, of all images, %")
    axes.set_xticks(range(65, 101, 5))
    figure.savefig(path, dpi=110)


def draw(job: DigitJob, trials: Sequence[Trial]) -> Figure:
    """Three plots side by side; nothing of matplotlib's global state is touched."""
    drawing.require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.8), layout="constrained")
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr,call-arg]
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.05, 1))
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
    known = [t.learned for t in trials if t.method is METHODS[0] and t.learned is not None]
    _competences(left, job, known)
    _verdicts(middle, trials)
    _queues(right, trials)
    figure.suptitle(_heading(job, trials), x=0.01, ha="left", fontsize=12, color="0.25")
    return figure


def _heading(job: DigitJob, trials: Sequence[Trial]) -> str:
    seeds = len({trial.seed for trial in trials})
    spread = f"; {seeds} streams, bars are the standard deviation" if seeds > 1 else ""
    return (
        f"{len(job.names):,} handwritten digits, {len(job.labelers)} weak labelers, "
        f"{RATE:g} images and {sum(job.capacity)} labels a slot{spread}"
    )


def _competences(axes: Axes, job: DigitJob, learned: Sequence[Floats]) -> None:
    """The true competences as marks, and a dot for each time one was learned."""
    order = np.argsort(job.competences)
    height = np.arange(len(order))
    colour = _LOOK[METHODS[0].key][0]
    for once in learned:
        axes.plot(once[order], height, "o", color=colour, alpha=0.45, ms=7, mew=0)
    axes.plot([], [], "o", color=colour, alpha=0.6, ms=7, mew=0, label="learned")
    axes.plot(job.competences[order], height, "|", color="black", ms=16, mew=2.5, label="true")
    axes.set_yticks(height, [f"{job.labelers[m]} ×{job.capacity[m]}" for m in order])
    axes.set(xlim=(0, 1.02), xlabel="competence: share of its labels that are right")
    axes.set_title("Who is how good (× labels a slot)", loc="left", fontsize=12)
    axes.legend(loc="upper left", frameon=False, fontsize=10, handletextpad=0.3)


def _verdicts(axes: Axes, trials: Sequence[Trial]) -> None:
    """For each method the right verdicts, of all images and of the answered ones."""
    for height, method in enumerate(reversed(METHODS)):
        colour = _LOOK[method.key][0]
        of_all, spread = mean_and_spread(trials, method, "right_of_all")
        of_answered = mean_and_spread(trials, method, "right_of_answered")[0]
        labels = mean_and_spread(trials, method, "labels_per_item")[0]
        axes.plot([100 * of_all, 100 * of_answered], [height] * 2, color=colour, lw=1.5, alpha=0.6)
        axes.plot(100 * of_answered, height, "o", color=colour, mfc="white", ms=8, mew=1.8)
        axes.errorbar(
            100 * of_all, height, xerr=100 * spread, fmt="o", color=colour, ms=7, capsize=4
        )
        axes.annotate(f"{labels:.1f}", (104, height), va="center", ha="center", fontsize=11)
    axes.annotate("labels\neach", (104, len(METHODS) - 0.45), ha="center", fontsize=10)
    axes.plot([], [], "o", color="0.3", ms=9, label="of all that arrived")
    axes.plot([], [], "o", color="0.3", mfc="white", ms=9, mew=1.8, label="of those answered")
    axes.set_yticks(range(len(METHODS)), [_wrapped(m.title) for m in reversed(METHODS)])
    for tick, method in zip(axes.get_yticklabels(), reversed(METHODS), strict=True):
        tick.set_color(_LOOK[method.key][0])
        tick.set_fontweight("bold")
    axes.set(xlim=(20, 108), ylim=(-0.5, len(METHODS) - 0.4), xlabel="right verdicts, %")
    axes.set_xticks(range(20, 101, 20))
    axes.set_title("What the labels buy", loc="left", fontsize=12)
    axes.legend(loc="center left", frameon=False, fontsize=10, handletextpad=0.3)


def _wrapped(title: str) -> str:
    return title.replace(", ", ",\n")


def _queues(axes: Axes, trials: Sequence[Trial]) -> None:
    """The queue of each method over time, mean over the streams."""
    ends = {}
    for method in (m for m in METHODS if m.key in _SHORT):
        queues = [trial.outcome.queue for trial in trials if trial.method is method]
        mean = np.convolve(np.mean(queues, axis=0), np.full(_SMOOTH, 1 / _SMOOTH), "valid")
        colour, style = _LOOK[method.key]
        slots = np.arange(len(mean)) + _SMOOTH - 1
        axes.plot(slots, mean, color=colour, linestyle=style, lw=2, zorder=2 + (style != "-"))
        ends[method.key] = float(mean[-_LATE:].mean())
    axes.set_yscale("symlog", linthresh=1)
    axes.set(xlim=(0, SLOTS), ylim=(-0.05, 2000), xlabel="slot")
    axes.set_ylabel(f"images waiting (mean of {_SMOOTH} slots)")
    axes.set_yticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1,000"])
    axes.set_title("Who keeps up", loc="left", fontsize=12)
    _name_ends(axes, ends)


def _name_ends(axes: Axes, ends: dict[str, float]) -> None:
    """Write each method's name where its line ends, none on top of another."""
    to_share = axes.transData + axes.transAxes.inverted()
    lowest = -1.0
    for key in sorted(ends, key=lambda key: (ends[key], key)):
        at = max(float(to_share.transform((0, ends[key]))[1]), lowest + _APART)
        lowest = at
        text = axes.text(1.02, at, _SHORT[key], transform=axes.transAxes, va="center")
        text.set(color=_LOOK[key][0], fontweight="bold")
