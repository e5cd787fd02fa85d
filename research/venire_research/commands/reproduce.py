"""`venire reproduce`: the paper's experiments, figure by figure, with a report."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli.shared import screen, tables
from venire.cli.shared.tables import JOBS, worker_count
from venire.errors import InputError
from venire_research.commands.parallel import check_data, executor_of, say_long, say_resumable

if TYPE_CHECKING:
    from venire_research.reproduction.figure import Figure, Plan
    from venire_research.reproduction.report import Section
    from venire_research.sweeps.executors import Executor

__all__ = ["reproduce"]

FIGURE = "Make only this figure; may be repeated. [default: all]"
OUT = "Folder for the report, the pictures, the tables and the finished points."
DATA = "Folder of label sets: bluebird/labels.csv, bluebird/truth.csv, dog/labels.csv, ..."
QUICK = "Fewer seeds and shorter horizons: every figure within two minutes."
SEEDS = "Streams to average over, seeds 0 to N - 1. [default: each figure's own]"


def reproduce(
    figure: Annotated[list[str] | None, typer.Option(metavar="NAME", help=FIGURE)] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help=OUT)] = Path("venire-reproduce"),
    data: Annotated[Path | None, typer.Option(metavar="DIR", help=DATA)] = None,
    quick: Annotated[bool, typer.Option("--quick", help=QUICK)] = False,
    seeds: Annotated[int | None, typer.Option(metavar="N", help=SEEDS)] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help=JOBS)] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=tables.CLUSTER)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object only.")] = False,
) -> None:
    """Reproduce the paper's experiments, and report which of its claims hold.

    It can be interrupted: the same command resumes where it stopped. Without --data the figures of
    real label sets are left out, and the report says how to get the sets.
    """
    start = time.perf_counter()
    workers = _check(data, seeds, jobs, cluster)
    from venire_research.common.label_sets import Sets
    from venire_research.reproduction.figure import Plan, figures_named
    from venire_research.reproduction.report import claims_of, command_of, stem_of

    plan = Plan(quick, seeds, Sets(data))
    figures = figures_named(figure or [])
    _check_missing(figures if figure else [], plan)
    command = command_of(figure or [], plan, out)
    with executor_of(workers, cluster) as executor:
        sections = _run(figures, plan, out, executor, command, cluster)
    saved = out / f"report{stem_of(out, sections)}.html"
    if as_json:
        record = {"out": str(out), "report": str(saved), "claims": claims_of(sections)}
        print(json.dumps(record, indent=2, allow_nan=False))
        return
    _conclude(sections, plan, saved, time.perf_counter() - start)


def _check(data: Path | None, seeds: int | None, jobs: int | None, cluster: str | None) -> int:
    if seeds is not None and not 2 <= seeds <= 10_000:
        raise InputError(
            f"got --seeds {seeds}, expected 2 to 10000: T_L is chosen on some and judged on others"
        )
    check_data(data)
    return worker_count(jobs, cluster)


def _check_missing(figures: list[Figure], plan: Plan) -> None:
    """A figure asked for by name cannot be left out."""
    for figure in figures:
        for name in figure.missing(plan):
            raise InputError(f"{figure.name} needs a label set: {plan.sets.remedy(name)}")


def _run(
    figures: list[Figure],
    plan: Plan,
    out: Path,
    executor: Executor,
    command: str,
    cluster: str | None,
) -> list[Section]:
    from venire_research.reproduction.runner import STORE
    from venire_research.reproduction.runner import reproduce as make

    words = "points", "drawing"
    try:
        with screen.bar(1, *words) as progress:
            return make(figures, plan, out, executor, say_long(progress, cluster), command)
    except KeyboardInterrupt:
        say_resumable(out / STORE)
        raise


def _conclude(sections: list[Section], plan: Plan, saved: Path, seconds: float) -> None:
    from rich.console import Console

    from venire_research.reproduction.report import claims_of

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    for row in claims_of(sections):
        value = "none" if row["value"] is None else f"{row['value']:.4g}"
        interval = "" if row["low"] is None else f" ({row['low']:.4g} to {row['high']:.4g})"
        console.print(
            f"{row['figure']}: {row['claim']}: {value}{interval}, expected {row['expected']} "
            f"± {row['tolerance']:g} ({row['source']}): {row['verdict']}"
        )
    for name in sorted({name for section in sections for name in section.missing}):
        console.print(f"left out: {plan.sets.remedy(name)}")
    console.print(f"\nSaved {saved} and the rest. That took {seconds:.0f} s.")
    if saved.name != "report.html":
        console.print(f"{saved.with_name('report.html')} has other figures too: left as it was.")
