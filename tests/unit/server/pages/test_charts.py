"""The charts of a stream's page: the same data as SVG, as a sentence, and for plotly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.server.admin_messages import Lesson, Period
from venire.server.pages.charts import (
    HEIGHT,
    WIDTH,
    Chart,
    lesson_chart,
    student_charts,
    trend_charts,
)

SHARES = st.floats(0, 1)


def period(k: int, share: float, money: float = 0.0, classes: int = 2) -> Period:
    names = [f"c{n}" for n in range(classes)]
    mix = dict.fromkeys(names, 1 / classes)
    return Period(10.0 * k, 10.0 * k + 9, 5, 1.0, 9.0, 2.0, share, share, mix, 3, mix, money, share)


def points(chart: Chart) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in curve.split())]
        for curve in chart.curves
    ]


@given(
    shares=st.lists(SHARES, min_size=1, max_size=24),
    money=st.sampled_from([0.0, 1e-9, 3.5]),
    classes=st.integers(1, 9),
)
def test_every_point_is_inside_and_every_series_is_as_long_as_the_moments(
    shares: list[float], money: float, classes: int
) -> None:
    charts = trend_charts([period(k, p, money, classes) for k, p in enumerate(shares)])
    assert len({chart.title for chart in charts}) == len(charts) == 7 + (money > 0)
    for chart in charts:
        assert chart.low < chart.high
        assert chart.summary.startswith(chart.title)
        data = chart.data()
        assert all(len(one["values"]) == len(data["x"]) for one in data["series"])
        for curve in points(chart):
            assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in curve)
    for mix in charts[:2]:
        sums = [sum(at) for at in zip(*mix.series.values(), strict=True)]
        assert sums == pytest.approx([1.0] * len(sums))
        assert len(mix.series) == min(classes, 5)


def test_exits_at_one_moment_are_drawn_side_by_side() -> None:
    same = [replace(period(0, 0.5), since=5.0, until=5.0) for _ in range(3)]
    for chart in trend_charts(same):
        xs = [x for x, _ in points(chart)[0]][:4]
        assert xs == sorted(set(xs))


def test_the_course_of_a_student() -> None:
    lessons = [Lesson(v, 9.0 * v, 50 * v, 50 * v, 0.5 + v / 10, 0.4, True) for v in (1, 2, 3)]
    chart = lesson_chart(lessons)
    assert chart.summary == (
        "agreement with the panel: student from 60 % to 80 %; most frequent class from 40 % to 40 %"
    )
    assert chart.span == ("50", "150 exits")
    assert student_charts([period(0, 0.5)], []) == []
    assert len(student_charts([period(0, 0.5)], lessons[:1])) == 1
    assert len(student_charts([period(0, 0.5)], lessons)) == 2
