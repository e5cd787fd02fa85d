"""Charts as plain SVG, drawn by the server: lines over periods, and the mix of verdicts.

They need no script, follow the colours of the page, light or dark, and carry one sentence for those
who cannot see them; the numbers are in tables beside them and in the API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from venire.service.console_messages import Period

__all__ = ["Bars", "Lines", "lines_of", "mix_of", "trend_charts"]

#: The size of a chart, and of the strip at its left for numbers.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 340, 120, 52, 8, 8

#: How many classes have a colour of their own.
SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines over periods: a name, points and the last value of each; the scale; one sentence."""

    title: str
    curves: tuple[tuple[str, str, str], ...]
    top: str
    bottom: str
    summary: str
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars: rectangles (which class, x, y, width, height), the classes, one sentence."""

    title: str
    parts: tuple[tuple[int, float, float, float, float], ...]
    names: tuple[str, ...]
    summary: str
    width: int = WIDTH
    height: int = HEIGHT


def lines_of(
    title: str,
    series: Mapping[str, Sequence[float]],
    shown: Callable[[float], str],
    top: float | None = None,
) -> Lines:
    """A chart of some series of equal length, from 0 to `top` or their maximum.

    >>> lines_of("labels an item", {"": [1.0, 2.0]}, "{:.1f}".format).summary
    'labels an item: from 1.0 to 2.0'
    """
    most = top or max((max(values, default=0.0) for values in series.values()), default=0.0) or 1.0
    curves = tuple(
        (name, _points(values, most), shown(values[-1])) for name, values in series.items()
    )
    ends = "; ".join(
        f"{name + ' ' if name else ''}from {shown(values[0])} to {shown(values[-1])}"
        for name, values in series.items()
    )
    return Lines(title, curves, shown(most), shown(0.0), f"{title}: {ends}")


def _points(values: Sequence[float], most: float) -> str:
    step = (WIDTH - LEFT - 4) / max(len(values) - 1, 1)
    high = HEIGHT - TOP - BOTTOM
    return " ".join(
        f"{LEFT + step * k:.1f},{TOP + (1 - min(value / most, 1)) * high:.1f}"
        for k, value in enumerate(values)
    )


def _share(p: float) -> str:
    return f"{100 * p:.0f} %"


def mix_of(title: str, periods: Sequence[Period]) -> Bars:
    """The mix of verdicts in each period, the most frequent classes first."""
    shares: Counter[str] = Counter()
    for period in periods:
        shares.update(period.verdicts)
    names = [name for name, _ in shares.most_common(SHOWN)]
    wide, high = (WIDTH - LEFT - 4) / max(len(periods), 1), HEIGHT - TOP - BOTTOM
    parts = []
    for k, period in enumerate(periods):
        y = float(HEIGHT - BOTTOM)
        own = [period.verdicts.get(name, 0.0) for name in names]
        for which, share in enumerate([*own, max(0.0, 1 - sum(own))]):
            y -= share * high
            if share > 0 and period.verdicts:
                parts.append((which, LEFT + wide * k, y, max(wide - 1, 0.5), share * high))
    if len(shares) > SHOWN:
        names.append("others")
    last = periods[-1].verdicts if periods else {}
    said = ", ".join(f"{name} {last.get(name, 0.0):.0%}" for name in names[:SHOWN])
    return Bars(title, tuple(parts), tuple(names), f"{title}, lately: {said}")


def trend_charts(periods: Sequence[Period]) -> tuple[Bars, list[Lines]]:
    """The charts of a stream's page."""
    single = [period.single_label_share for period in periods]
    waits = {
        "p50": [period.seconds_p50 for period in periods],
        "p95": [period.seconds_p95 for period in periods],
    }
    rates = [60 * p.exits / max(p.until - p.since, 1.0) for p in periods]
    return mix_of("mix of verdicts", periods), [
        lines_of("left after one label", {"": single}, _share, 1.0),
        lines_of("labels an item", {"": [p.labels_per_item for p in periods]}, "{:.1f}".format),
        lines_of("mean confidence", {"": [p.confidence for p in periods]}, _share, 1.0),
        lines_of("seconds to the verdict", waits, "{:,.0f} s".format),
        lines_of("exits a minute", {"": rates}, "{:,.0f}".format),
    ]
