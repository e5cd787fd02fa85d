"""The charts of a stream's page: what they show, as data and as plain SVG.

The server draws each chart as SVG, which is there at once, needs no script, and follows the colours
of the page. Where scripts run, plotly draws the same data in its place (static/charts.js), with the
values of a point under the pointer or the arrow keys. A sentence says the same to those who see
neither; the numbers are in a table below and in the API.
"""

from __future__ import annotations

import asyncio
import gzip
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from venire.server.admin_messages import Lesson, Period

#: The size of a chart, and what is left around the drawing for numbers.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 340, 150, 46, 4, 8, 22

#: How many classes have a colour of their own.
SHOWN: Final = 4

OTHERS: Final = "others"

Unit = Literal["share", "seconds", "number", "money"]


@dataclass(frozen=True, slots=True)
class Chart:
    """Series of equal length over moments, as lines or as shares that add up to one.

    `x` are seconds since 1970, or with `over` numbers of that. The scale goes from `low` to `high`.
    """

    title: str
    x: Sequence[float]
    series: Mapping[str, Sequence[float]]
    unit: Unit
    high: float
    low: float = 0.0
    stacked: bool = False
    over: str | None = None
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def ends(self) -> dict[str, str]:
        """The last value of each series, for people."""
        return {name: shown(values[-1], self.unit) for name, values in self.series.items()}

    @property
    def whole(self) -> dict[str, str]:
        """The mean of each series over all periods, of which each has as many exits."""
        periods = {name: values[1:] or values for name, values in self.series.items()}
        return {n: shown(sum(v) / len(v), self.unit) for n, v in periods.items()}

    @property
    def summary(self) -> str:
        """The chart in one sentence."""
        if self.stacked:
            told = (f"{name} {value}" for name, value in self.whole.items())
            lately = (f"{name} {value}" for name, value in self.ends.items())
            return f"{self.title}: {', '.join(told)}; in the last period {', '.join(lately)}"
        first = {name: shown(values[0], self.unit) for name, values in self.series.items()}
        parts = (
            f"{f'{name} ' if name else ''}from {first[name]} to {end}"
            for name, end in self.ends.items()
        )
        return f"{self.title}: {'; '.join(parts)}"

    @property
    def scale(self) -> tuple[str, str]:
        """The largest and the smallest value at the side."""
        return shown(self.high, self.unit), shown(self.low, self.unit)

    @property
    def span(self) -> tuple[str, str]:
        """Where the chart begins and ends."""
        begin, end = self.x[0], self.x[-1]
        if self.over is not None:
            return f"{begin:,.0f}", f"{end:,.0f} {self.over}"
        return moment(begin, end - begin), moment(end, end - begin)

    @property
    def curves(self) -> list[str]:
        """The points of each series, those of shares as an area above the series before."""
        below = [0.0] * len(self.x)
        found = []
        for values in self.series.values():
            if not self.stacked:
                found.append(self._points(values))
                continue
            top = [a + b for a, b in zip(below, values, strict=True)]
            found.append(f"{self._points(top)} {self._points(below, back=True)}")
            below = top
        return found

    def _points(self, values: Sequence[float], back: bool = False) -> str:
        begin, span, size = self.x[0], self.x[-1] - self.x[0], self.high - self.low
        wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        points = []
        for k, (x, y) in enumerate(zip(self.x, values, strict=True)):
            along = (x - begin) / span if span > 0 else k / max(len(self.x) - 1, 1)
            up = min(max((y - self.low) / size, 0.0), 1.0)
            points.append(f"{LEFT + along * wide:.1f},{TOP + (1 - up) * tall:.1f}")
        return " ".join(reversed(points) if back else points)

    def data(self) -> dict[str, Any]:
        """What plotly draws."""
        return {
            "x": self.x if self.over else [round(1000 * at) for at in self.x],
            "series": [{"name": n, "values": v} for n, v in self.series.items()],
            "unit": self.unit,
            "range": [self.low, self.high],
            "stacked": self.stacked,
            "over": self.over,
        }


def moment(at: float, span: float) -> str:
    """A moment, as exactly as it matters in a span of seconds.

    >>> moment(1e9, 60), moment(1e9, 7200), moment(1e9, 1e6)
    ('01:46:40', '01:46', 'Sep 9')
    """
    when = datetime.fromtimestamp(at, UTC)
    if span >= 86_400:
        return f"{when:%b} {when.day}"
    return f"{when:%H:%M:%S}" if span < 3600 else f"{when:%H:%M}"


def shown(value: float, unit: Unit) -> str:
    """A value for people.

    >>> shown(0.5, "share"), shown(1234, "seconds"), shown(1.5, "number"), shown(0.02, "money")
    ('50 %', '1,234 s', '1.5', '0.020')
    """
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "seconds":
        return f"{value:,.1f} s" if value < 10 else f"{value:,.0f} s"
    if unit == "money":
        return f"{value:,.3f}" if value < 1 else f"{value:,.2f}"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def lines(
    title: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    unit: Unit,
    low: float = 0.0,
    over: str | None = None,
) -> Chart:
    """A chart of lines, up to their maximum; shares up to 1.

    >>> lines("labels per item", [0, 60], {"": [1.0, 2.0]}, "number").summary
    'labels per item: from 1.0 to 2.0'
    """
    most = max((max(values) for values in series.values()), default=0.0)
    high = 1.0 if unit == "share" else max(most, 1e-6 if unit == "money" else 1.0)
    return Chart(title, x, series, unit, high, low, over=over)


def mix_names(periods: Sequence[Period]) -> list[str]:
    """The most frequent classes among verdicts and votes.

    >>> mix_names([])
    []
    """
    shares: Counter[str] = Counter()
    for period in periods:
        shares.update(period.verdicts)
        shares.update(period.votes)
    names = [name for name, _ in shares.most_common(SHOWN)]
    return [*names, OTHERS] if len(shares) > SHOWN else names


def mix_chart(
    title: str, x: Sequence[float], mixes: Sequence[Mapping[str, float]], names: Sequence[str]
) -> Chart:
    """The shares of the classes in each period."""
    own = {name: [mix.get(name, 0.0) for mix in mixes] for name in names[:SHOWN]}
    if names[SHOWN:]:
        sums = [sum(values) for values in zip(*own.values(), strict=True)]
        pairs = zip(sums, mixes, strict=True)
        own[OTHERS] = [max(0.0, 1 - total) if mix else 0.0 for total, mix in pairs]
    return Chart(title, x, own, "share", 1.0, stacked=True)


def trend_charts(periods: Sequence[Period]) -> list[Chart]:
    """The trends of a stream; every period stands at its end, the first at its beginning too."""
    both, x = [periods[0], *periods], _moments(periods)
    minutes = [max(end - begin, 1.0) / 60 for begin, end in pairwise(x)]
    rates = {
        "arrivals": [p.arrivals / m for p, m in zip(periods, minutes, strict=True)],
        "exits": [p.exits / m for p, m in zip(periods, minutes, strict=True)],
    }
    waits = {"p50": [p.seconds_p50 for p in both], "p95": [p.seconds_p95 for p in both]}
    sure = [p.confidence for p in both]
    names = mix_names(periods)
    found = [
        mix_chart("mix of verdicts", x, [p.verdicts for p in both], names),
        mix_chart("mix of votes", x, [p.votes for p in both], names),
        lines(
            "items per minute that arrived and left",
            x,
            {k: [v[0], *v] for k, v in rates.items()},
            "number",
        ),
        lines("time to the verdict", x, waits, "seconds"),
        lines("labels per item", x, {"": [p.labels_per_item for p in both]}, "number"),
        lines("left after one label", x, {"": [p.single_label_share for p in both]}, "share"),
        lines("mean confidence", x, {"": sure}, "share", min(math.floor(10 * min(sure)) / 10, 0.9)),
    ]
    if any(p.money for p in periods):
        found.append(lines("money an item", x, {"": [p.money / p.exits for p in both]}, "money"))
    return found


def _moments(periods: Sequence[Period]) -> list[float]:
    return [periods[0].since, *(period.until for period in periods)]


def student_charts(periods: Sequence[Period], lessons: Sequence[Lesson]) -> list[Chart]:
    """How the student learned, and what it decides."""
    found = [lesson_chart(lessons)] if len(lessons) > 1 else []
    if periods and lessons:
        share = [p.student_share for p in [periods[0], *periods]]
        title = "left with its labels alone"
        found.append(lines(title, _moments(periods), {"": share}, "share"))
    return found


def lesson_chart(lessons: Sequence[Lesson]) -> Chart:
    """How often the student agrees with the panel, beside the most frequent class."""
    series = {
        "student": [lesson.agreement for lesson in lessons],
        "most frequent class": [lesson.commonest for lesson in lessons],
    }
    x = [float(lesson.exits) for lesson in lessons]
    return lines("agreement with the panel", x, series, "share", over="exits")


#: The size of the chart, and the room for its line at the edges.
SMALL_WIDTH, SMALL_HEIGHT, EDGE = 90, 20, 2


def sparkline(values: Sequence[float]) -> str:
    """The points of a line from 0 to the most; where it goes on straight there are none.

    >>> sparkline([0, 0, 0, 4])
    '2,18 59.3,18 88,2'
    >>> sparkline([])
    ''
    """
    most, step = max(values, default=0) or 1, (SMALL_WIDTH - 2 * EDGE) / max(len(values) - 1, 1)
    points = []
    for k, value in enumerate(values):
        inside = 0 < k < len(values) - 1
        if inside and values[k - 1] == value == values[k + 1]:
            continue
        y = EDGE + (1 - value / most) * (SMALL_HEIGHT - 2 * EDGE)
        points.append(f"{_short(EDGE + step * k)},{_short(y)}")
    return " ".join(points)


def _short(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


PLOTLY_PATH: Final = "/static/plotly-{version}.js"

#: For a year, which is as good as for ever, and without asking again.
FOR_GOOD: Final = "public, max-age=31536000, immutable"


@cache
def _found() -> tuple[str, Path] | None:
    """The version of the package and where its script is; None if it is not installed."""
    try:
        package = distribution("plotly")
    except PackageNotFoundError:
        return None
    file = Path(str(package.locate_file("plotly/package_data/plotly.min.js")))
    return (package.version, file) if file.is_file() else None


def plotly_address() -> str | None:
    """Where the pages get the script; None without the package: then they show the SVG alone.

    >>> plotly_address() is None or plotly_address().startswith("/static/plotly-")
    True
    """
    found = _found()
    return None if found is None else PLOTLY_PATH.format(version=found[0])


@cache
def _content(compressed: bool) -> bytes:
    found = _found()
    assert found is not None
    content = found[1].read_bytes()
    return gzip.compress(content, 6, mtime=0) if compressed else content


async def send_plotly(request: Request) -> Response:
    """The script, of the version that is installed."""
    found = _found()
    if found is None or request.path_params["version"] != found[0]:
        raise HTTPException(404)
    compressed = "gzip" in request.headers.get("accept-encoding", "")
    tag = f'"{found[0]}{"-gzip" if compressed else ""}"'
    headers = {"cache-control": FOR_GOOD, "etag": tag, "vary": "accept-encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = await asyncio.to_thread(_content, compressed)
    if compressed:
        headers["content-encoding"] = "gzip"
    headers["x-content-type-options"] = "nosniff"
    return Response(content, headers=headers, media_type="text/javascript")
