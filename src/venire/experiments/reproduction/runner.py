"""From the points to the files: run what is missing, measure, draw, report."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from venire.errors import InputError
from venire.experiments.common import drawing
from venire.experiments.reproduction import report
from venire.experiments.reproduction.figure import Figure, Plan
from venire.experiments.reproduction.report import Section
from venire.simulation.sweeps.executors import Executor
from venire.simulation.sweeps.store import Store
from venire.simulation.sweeps.sweep import sweep

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
    """Make the figures and the report in `out`; what was run before is not run again.

    A figure whose label sets are not there becomes a section that says what is missing.
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
        write_csv(out / f"{figure.name}.csv", findings.drawn)
        write_csv(out / f"{figure.name}-runs.csv", findings.runs)
        with drawing.look():
            drawing.save(figure.draw(findings), out, figure.name)
        sections.append(Section(figure, findings, ()))
    report.save(out, sections, plan, command)
    return sections


def make_folder(out: Path) -> None:
    """Make the folder, or say why it cannot be written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {out} ({error.strerror}): give another one with --out"
        ) from None
    if not os.access(out, os.W_OK):
        raise InputError(f"cannot write to the folder {out}: give another one with --out")


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One line for each row; the columns are those of the first."""
    listed = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(listed[0]) if listed else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _plain(v) for k, v in row.items()} for row in listed)


def _plain(value: Any) -> Any:
    return json.dumps(float(value)) if isinstance(value, float) else value
