"""The comparison as a picture: a line for each regime, a dot for each policy.

One plot for each accounting. Whiskers are standard deviations over the seeds; a dot that does
not fit is an arrow at the edge, never left out.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from venire_research.common.drawing import COLOURS, look
from venire_research.regimes.comparison import ACCOUNTS, Row
from venire_research.regimes.summary import MEASURES, Cell, Table, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw", "picture", "shown"]

#: The paper's Algorithm 1 is always red, so that it is easy to find; the others by rank.
_GREEDY: Final = ("greedy", "red", "D")
_STYLES: Final = (
    ("blue", "o"), ("green", "s"), ("orange", "^"), ("purple", "v"), ("sky", "P"),
    ("black", "X"), ("grey", "<"), ("grey", ">"), ("grey", "p"), ("grey", "h"),
)  # fmt: skip

#: Heights in inches: of a regime's line, of all that is not plotted.
_LINE, _REST = 0.34, 1.5


def shown(rows: Sequence[Row]) -> list[Table]:
    """The tables that are drawn: each accounting's share, or its ratio without certificates."""
    tables = []
    for share, ratio in ACCOUNTS.values():
        table = Table.of(rows, MEASURES[share])
        tables.append(Table.of(rows, MEASURES[ratio]) if table.empty() else table)
    return tables


def picture(rows: Sequence[Row]) -> bytes:
    """The picture as PNG, the same bytes for the same rows."""
    with look():
        canvas, file = draw(rows), io.BytesIO()
        canvas.savefig(file, dpi=200, metadata={"Software": None})
    return file.getvalue()


def draw(rows: Sequence[Row]) -> Canvas:
    """One plot beside the other, the regimes below one another."""
    from matplotlib.figure import Figure as Canvas

    tables = shown(rows)
    regimes, styles = tables[0].regimes, _styles(tables[0])
    height = _LINE * (len(regimes) + 1.6) + _REST
    canvas = Canvas(figsize=(11, height), layout="constrained")
    plots = canvas.subplots(1, len(tables), sharey=True)
    for axes, table in zip(plots, tables, strict=True):
        _plot(axes, table, styles)
    places = [-1.3, *range(len(regimes))]
    plots[0].set_yticks(places, ["mean of all", *regimes])
    plots[0].set_ylim(len(regimes) - 0.5, -1.9)
    plots[0].get_yticklabels()[0].set_fontweight("bold")
    names = short_names(styles)
    handles = plots[0].get_legend_handles_labels()[0]
    canvas.legend(
        handles, [names[p] for p in styles], loc="outside lower center",
        ncols=min(len(handles), 8), fontsize=8, frameon=False,
    )  # fmt: skip
    return canvas


def _styles(table: Table) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each policy, in the order of rank."""
    rest, styles = iter(_STYLES), {}
    for policy in table.ranked():
        if policy == _GREEDY[0]:
            styles[policy] = _GREEDY[1:]
        else:
            styles[policy] = next(rest, ("grey", "."))
    return styles


def _plot(axes: Axes, table: Table, styles: dict[str, tuple[str, str]]) -> None:
    measure = table.measure
    low, high = (0.0, 1.0) if measure.percent else (0.0, _top(table))
    for k in range(0, len(table.regimes), 2):
        axes.axhspan(k - 0.5, k + 0.5, color="0.965", linewidth=0)
    axes.axhline(-0.6, color="0.6", linewidth=0.8)
    if measure.ratio:
        axes.axvline(1.0, color="0.5", linewidth=0.8, linestyle=(0, (4, 3)))
    step = 0.78 / max(1, len(styles))
    for k, (policy, (colour, marker)) in enumerate(styles.items()):
        offset = (k - (len(styles) - 1) / 2) * step
        cells = [Cell(table.mean(policy), None)]
        cells += [table.cells[regime, policy] for regime in table.regimes]
        y = np.array([-1.3, *range(len(table.regimes))]) + offset
        size = np.array([52.0] + [16.0] * len(table.regimes))
        _dots(axes, cells, y, size, (low, high), COLOURS[colour], marker, policy)
    axes.set_xlim(low - 0.03 * (high - low), high * 1.03)
    axes.set_xlabel(measure.title)
    axes.set_title(_winner(table), loc="left", fontsize=8.5)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    if measure.percent:
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")


def _dots(
    axes: Axes,
    cells: Sequence[Cell],
    y: np.ndarray,
    size: np.ndarray,
    limits: tuple[float, float],
    colour: str,
    marker: str,
    policy: str,
) -> None:
    """The dots of a policy, with whiskers; arrows at the edge for those beyond it."""
    x = np.array([np.nan if cell.mean is None else cell.mean for cell in cells])
    spread = np.array([cell.spread or 0.0 for cell in cells])
    inside = (x >= limits[0]) & (x <= limits[1])
    axes.errorbar(
        x[inside], y[inside], xerr=spread[inside], fmt="none", ecolor=colour, elinewidth=0.8,
        alpha=0.7,
    )  # fmt: skip
    axes.scatter(
        x[inside], y[inside], s=size[inside], c=colour, marker=marker, label=policy,
        edgecolors="white", linewidths=0.4, zorder=3,
    )  # fmt: skip
    for beyond, edge, arrow in ((x < limits[0], limits[0], "<"), (x > limits[1], limits[1], ">")):
        places = np.full(int(beyond.sum()), edge)
        axes.scatter(
            places, y[beyond], s=18, marker=arrow, facecolors="none", edgecolors=colour,
            linewidths=0.9, zorder=3, clip_on=False,
        )  # fmt: skip


def _top(table: Table) -> float:
    means = [cell.mean for cell in table.cells.values() if cell.mean is not None]
    return min(3.0, 1.05 * max([1.2, *means]))


def _winner(table: Table) -> str:
    """Which policy has the best mean, and its worst regime, in two lines."""
    best = table.ranked()[0]
    mean, worst = table.mean(best), table.worst(best)
    if worst is None:
        return "nothing was measured\n"
    measure, name = table.measure, short_names(table.policies)[best]
    unit = " %" if measure.percent else ""
    average = f"best on average: {name}, {measure.write(mean)}{unit}"
    if mean is None:  # ratios that are not above 0 have none
        average = f"no mean of ratios; {name}"
    return f"{average}\nat worst {measure.write(worst[0])}{unit} ({worst[1]})"
