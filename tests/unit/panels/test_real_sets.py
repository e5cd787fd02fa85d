"""Judges with prices by model: the report names who can go, and nothing is lost by the truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.panel_drops import price
from venire import panel_report
from venire.labels.sources import as_table


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), [("mtbench_judges", 0.7), ("llmjudge2024_binary", 0.5)])
def test_without_those_who_can_go_nothing_is_lost(data: Path, name: str, share: float) -> None:
    table = as_table(data / name / "labels.csv", repeats="first")
    prices = {judge: price(str(judge)) for judge in table.labelers}
    report = panel_report(table, prices, truth=data / name / "truth.csv")
    assert report.can_go
    assert report.cheapest < share * report.cost
    assert report.expected.value >= -0.005 - 1e-9
    assert report.change.value >= -0.005 - 2 * report.change.error
