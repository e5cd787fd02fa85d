"""From the points to the files: run what is missing, measure, draw, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from venire_research.common import drawing
from venire_research.common.files import as_csv, make_folder
from venire_research.reproduction import report
from venire_research.reproduction.figure import Figure, Plan
from venire_research.reproduction.report import Section
from venire_research.sweeps.executors import Executor
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import sweep

__all__ = ["STORE", "reproduce"]

#: The file of finished points, in the folder of the report.
STORE = "points.sqlite"


def reproduce(
    figures: Sequence[Figure],
    plan: Plan,
    out: Path,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    command: str = "venire reproduce",
) -> list[Section]:
    """Make the figures and the report in `out`; finished runs are not repeated.

    A figure whose label sets are missing becomes a section that says so.
    """
    drawing.require_matplotlib()
    make_folder(out)
    missing = {figure.name: figure.missing(plan) for figure in figures}
    ready = [figure for figure in figures if not missing[figure.name]]
    with Store(out / STORE) as store:
        points = [point for figure in ready for point in figure.points(plan)]
        results = sweep(points, store, executor, progress)
    sections = []
    for figure in figures:
        if missing[figure.name]:
            sections.append(Section(figure, None, missing[figure.name]))
            continue
        findings = figure.measure(plan, results)
        for name, rows in ((figure.name, findings.drawn), (f"{figure.name}-runs", findings.runs)):
            (out / f"{name}.csv").write_text(as_csv(list(rows)), encoding="utf-8", newline="")
        with drawing.look():
            drawing.save(figure.draw(findings), out, figure.name)
        sections.append(Section(figure, findings, ()))
    report.save(out, sections, plan, command)
    return sections
