"""The page of a report: what a reader needs first stands first, and nothing is cut off."""

from __future__ import annotations

import re

import venire as vn


def test_ticks_are_round_and_within_the_chart_and_more_stands_before_the_reasons() -> None:
    rows = [(i, w, i % 2) for i in range(40) for w in "abc"]
    done = vn.label_recorded(rows, vn.Budget(money=111))
    page = done.html(["<h2>Judges</h2>"])
    ticks = re.findall(r'<text x="([\d.]+)" y="294.0"[^>]*>\n([\d.,]+)</text>', page)
    assert [text for _, text in ticks][:3] == ["0", "20", "40"]
    assert max(float(x) for x, _ in ticks) < 700
    assert "ended: " in page
    assert "no_gain" not in page
    assert page.index("<h2>Labelers") < page.index("<h2>Judges")
