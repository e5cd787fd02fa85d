"""`venire aggregate`: who is right and who is good, from a table of labels."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from venire.cli import screen
from venire.cli.worlds import names_of
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from venire.competence.base import BaseEstimator
    from venire.labels import LabelTable

__all__ = ["aggregate"]

LABELS = "The labels: CSV or Parquet with task,worker,label."
TRUTH = "What is known of the truth: CSV or Parquet with task,label."
METHOD = "auto, majority, weighted-majority, one-coin or dawid-skene."
CLASSES = "What a label may say, such as spam,ok. [default: the labels that occur]"
REPEATS = "Of a worker's repeated labels of a task: error, or keep the first or the last."
OUT = "Write the verdicts, CSV or Parquet: task,label,confidence."
PROBABILITIES = "With --out: also one column for each class, its probability."
SKILLS = "Write the skills, CSV or Parquet: worker,labels,skill,low,high."


def aggregate(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help=LABELS)],
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help=METHOD)] = "auto",
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)] = None,
    repeats: Annotated[str, typer.Option(metavar="WHICH", help=REPEATS)] = "error",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help=PROBABILITIES)] = False,
    skills: Annotated[Path | None, typer.Option(metavar="FILE", help=SKILLS)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what each task is and how good each labeler, from their labels alone.

    The truth, where you give some, is for comparison: it is never learned from.
    """
    from venire.cli.methods import method_named
    from venire.datasets import check_targets

    named = names_of(classes)
    if probabilities and out is None:
        raise InputError("--probabilities needs --out: give the file for the verdicts")
    with screen.working(f"reading {labels.name}") as working:
        estimator = method_named(method)
        targets, sources = [out, skills], [labels, truth]
        check_targets([p for p in targets if p is not None], [p for p in sources if p is not None])
        table, right = _read(labels, truth, named, repeats)
        working(f"{method}: {len(table.said):,} labels (a first run compiles, some 10 s)")
        start = time.perf_counter()
        fitted = estimator.fit(table)
        seconds = round(time.perf_counter() - start, 6)
        _write(fitted, out, probabilities, skills)
    if as_json:
        print(json.dumps(_record(method, fitted, right, seconds), indent=2, allow_nan=False))
    else:
        from venire.cli.summary import print_summary

        print_summary(method, fitted, right, seconds)


def _read(
    labels: Path, truth: Path | None, classes: tuple[str, ...] | None, repeats: str
) -> tuple[LabelTable, NDArray[np.int64] | None]:
    from venire.labels import Repeats
    from venire.tables import as_table, as_truth

    if repeats not in get_args(Repeats):
        raise UnknownName("way with --repeats", repeats, get_args(Repeats))
    table = as_table(labels, classes, repeats)  # type: ignore[arg-type] # it was just checked
    if truth is None:
        return table, None
    right = as_truth(truth, table)
    strange = (right == len(table.classes)).nonzero()[0]
    if strange.size:
        _warn(truth, table, int(strange[0]), strange.size)
    return table, right


def _warn(truth: Path, table: LabelTable, example: int, number: int) -> None:
    from venire.tables.truth import truth_of

    task = table.items[example]
    tasks = "1 task" if number == 1 else f"{number:,} tasks"
    screen.warn(
        f"the truth of {tasks} is none of the classes, such as {truth_of(truth, table, task)!r} "
        f"for task {task!r}: verdicts on them count as wrong"
    )


def _write(
    fitted: BaseEstimator, out: Path | None, probabilities: bool, skills: Path | None
) -> None:
    from venire.datasets import Output, skills_output, verdicts_output, write_outputs

    outputs: list[Output] = []
    if out is not None:
        outputs.append(verdicts_output(out, fitted, probabilities))
    if skills is not None:
        outputs.append(skills_output(skills, fitted))
    write_outputs(outputs)


def _record(
    method: str, fitted: BaseEstimator, right: NDArray[np.int64] | None, seconds: float
) -> dict[str, Any]:
    """What came of it; what is not a finite number is null."""
    from venire.cli.summary import scores

    table = fitted.table_
    likelihood: float | None = fitted.log_likelihood_
    finite = likelihood is not None and math.isfinite(likelihood)
    return {
        "method": method,
        "chosen": getattr(fitted, "chosen_", method),
        "items": len(table.items),
        "labelers": len(table.labelers),
        "labels": len(table.said),
        "classes": len(table.classes),
        "iterations": int(fitted.n_iter_),
        "converged": bool(fitted.converged_),
        "log_likelihood": float(likelihood) if finite and likelihood is not None else None,
        **scores(fitted, right),
        "seconds": seconds,
    }
