"""The look of the figures: one column wide, labelled, for colour-blind eyes too.

Legends stand above the plots, so that they cover nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from venire.display import COLOURS, require_matplotlib
from venire_research.common.statistics import Band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "COLOURS",
    "curve",
    "decades",
    "legend",
    "look",
    "panels",
    "percent_axis",
    "positive",
    "require_matplotlib",
    "save",
]

#: The colour of each stream of a figure, and of its reference.
STREAM_COLOURS: Final = (("blue", "orange"), ("red", "purple"))

#: The width of a column, in inches.
COLUMN = 3.4

_LOOK: Final[Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "svg.hashsalt": "venire",
}


@contextmanager
def look() -> Iterator[None]:
    """Use this style; the earlier one is restored afterwards."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context(_LOOK):
        yield


def panels(heights: Sequence[float], share_x: bool = True) -> tuple[Canvas, list[Axes]]:
    """Plots one above the other, each of its height in inches."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(COLUMN, sum(heights)), layout="constrained")
    axes = canvas.subplots(len(heights), 1, height_ratios=list(heights), sharex=share_x)
    flat = list(np.atleast_1d(axes))
    for letter, one in zip("abcdef", flat, strict=False):
        if len(flat) > 1:
            one.text(-0.16, 1.03, f"({letter})", transform=one.transAxes, ha="right", va="bottom")
    return canvas, flat


def curve(axes: Axes, x: ArrayLike, y: Band, colour: str, label: str | None, **style: Any) -> None:
    """A line with dots, and its 95 % band."""
    options = {"marker": "o", "linestyle": "-"} | style
    axes.plot(x, y.mean, color=COLOURS[colour], label=label, **options)
    axes.fill_between(x, y.low, y.high, color=COLOURS[colour], alpha=0.2, linewidth=0)


def legend(axes: Axes, columns: int = 2) -> None:
    """The legend above its plot, where it covers nothing."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.03, 1.0), ncols=columns, columnspacing=1.0,
        handletextpad=0.4, borderaxespad=0.1, borderpad=0.2, labelspacing=0.25,
    )  # fmt: skip


def decades(axes: Axes, label: str) -> None:
    """A logarithmic horizontal axis with plain numbers."""
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")


def positive(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers; bands that reach below it are cut."""
    drawn = [np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.get_lines()]
    lowest = min(float(y.min()) for y in drawn if y.size)
    axes.set_yscale("log")
    axes.set_ylim(max(0.5 * lowest, 0.01), None)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.4g}")


def percent_axis(axes: Axes, label: str) -> None:
    """A vertical axis in per cent of shares."""
    axes.set_ylabel(label)
    axes.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.4g}")


def save(canvas: Canvas, folder: Path, name: str) -> None:
    """Write NAME.png and NAME.svg, the same bytes for the same picture."""
    canvas.savefig(folder / f"{name}.png", dpi=300, metadata={"Software": None})
    canvas.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
