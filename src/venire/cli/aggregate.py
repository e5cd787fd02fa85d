"""`venire aggregate`: verdicts and skills from a table of labels."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli import screen
from venire.cli.tables import columns_of, repeats_of
from venire.cli.worlds import names_of
from venire.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from venire.costs import Costs
    from venire.estimators.base import BaseEstimator
    from venire.labels import LabelTable, Repeats

__all__ = ["aggregate", "finite"]

LABELS = "The labels: CSV, Parquet or JSON Lines with task,worker,label."
TRUTH = "Known true labels, for comparison: a file with task,label."
METHOD = "auto, majority, weighted-majority, one-coin, dawid-skene or ordinal. [default: auto]"
CLASSES = "The possible labels, such as spam,ok. [default: the labels that occur]"
ORDINAL = "The classes are ordered: numerically, or as given by --classes."
NUMERIC = "Labels are measurements: estimate a robust mean of each task, with its standard error."
COLUMNS = "The names of the columns. [default: task,worker,label]"
REPEATS = "Repeated labels of a task by one worker: error, or keep the first or the last."
SEED = "Seed of the draw that breaks ties. [default: 0]"
GOLD = "Known true labels to learn from: a file with task,label."
COSTS = "What errors cost, truth:verdict=cost, as in toxic:ok=10; the others cost 1."
OUT = "Write the verdicts, .csv, .parquet, .jsonl or .dataset: task,label,confidence,entropy."
PROBABILITIES = "With --out: also the probability of each class, one column each."
SKILLS = "Write the skills, .csv, .parquet or .jsonl: worker,labels,skill,low,high."


def aggregate(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help=LABELS)],
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)] = None,
    ordinal: Annotated[bool, typer.Option("--ordinal", help=ORDINAL)] = False,
    numeric: Annotated[bool, typer.Option("--numeric", help=NUMERIC)] = False,
    columns: Annotated[str | None, typer.Option(metavar="NAMES", help=COLUMNS)] = None,
    repeats: Annotated[str, typer.Option(metavar="WHICH", help=REPEATS)] = "error",
    seed: Annotated[int | None, typer.Option(help=SEED)] = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    costs: Annotated[str | None, typer.Option(metavar="COSTS", help=COSTS)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help=PROBABILITIES)] = False,
    skills: Annotated[Path | None, typer.Option(metavar="FILE", help=SKILLS)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate the true label of each task and the skill of each labeler, from labels alone.

    The truth, if given, is used only to report the error, never to learn from; gold is learned
    from. With costs, verdicts are those of least expected cost.
    """
    from venire.cli.methods import method_named
    from venire.costs import cost_matrix, costs_of_text
    from venire.files import check_targets
    from venire.labels.sources import COLUMNS
    from venire.labels.sources.text import like

    named, called = names_of(classes), columns_of(columns, COLUMNS)
    given = {"--gold": gold, "--costs": costs}
    method = _method(method, ordinal, numeric, classes, probabilities, seed, given)
    charged: Costs = costs_of_text(costs) if costs else {}
    if probabilities and out is None:
        raise InputError("--probabilities needs --out: give the file for the verdicts")
    kept = repeats_of(repeats)
    sources = [path for path in (labels, truth, gold) if path is not None]
    check_targets([path for path in (out, skills) if path is not None], sources)
    if numeric:
        from venire.cli.numeric import aggregate_numbers

        return aggregate_numbers(labels, truth, called, kept, out, skills, as_json)
    with screen.working(f"reading {labels.name}") as working:
        estimator = method_named(method)
        table, right = _read(labels, truth, named, kept, called, method == "ordinal")
        estimator.seed = seed or 0
        if method == "ordinal":
            estimator.set_params(order=tuple(table.classes))
        working(f"{method}: {len(table.said):,} labels (a first run compiles, some 10 s)")
        start = time.perf_counter()
        charged = {like(pair, table.classes): cost for pair, cost in charged.items()}
        cost_matrix(charged, tuple(table.classes))  # an unknown class is refused before the work
        fitted = _fit(estimator, table, gold, (called[0], called[2]))
        seconds = round(time.perf_counter() - start, 6)
        _write(fitted, out, probabilities, skills, charged)
    paid = _cost(fitted, right, charged)
    if as_json:
        record = _record(method, fitted, right, seconds) | paid
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        from venire.cli.summary import print_summary

        print_summary(method, fitted, right, seconds)
        for name, value in paid.items():
            print(f"{name.replace('_', ' ')}: {value:.4g}")


def _fit(
    estimator: BaseEstimator, table: LabelTable, gold: Path | None, columns: tuple[str, str]
) -> BaseEstimator:
    """Fit the estimator, with gold if there is any."""
    if gold is None:
        return estimator.fit(table)
    from venire.labels.sources import as_truth

    if "gold" not in inspect.signature(estimator.fit).parameters:
        raise InputError(
            f"{type(estimator).__name__} does not learn from gold: take another --method, such as "
            "auto, or drop --gold"
        )
    codes = as_truth(gold, table, columns)
    if (codes >= len(table.classes)).any():
        raise InputError(
            f"{gold} has a label that is not one of the classes {list(table.classes)}: name all "
            "of them with --classes"
        )
    named = zip(table.items, codes.tolist(), strict=True)
    known = {item: table.classes[k] for item, k in named if k >= 0}
    fit: Any = estimator.fit
    fitted: BaseEstimator = fit(table, gold=known)
    return fitted


def _cost(
    fitted: BaseEstimator, right: NDArray[np.int64] | None, costs: Costs | None
) -> dict[str, float]:
    """The mean cost of the verdicts, and of the most probable classes, where the truth is known."""
    if right is None or not costs:
        return {}
    from venire.costs import cost_matrix

    names = fitted.classes_
    matrix, code = cost_matrix(costs, names), {name: k for k, name in enumerate(names)}
    if matrix is None:
        return {}
    pairs = [
        (int(t), code[a], code[b])
        for t, a, b in zip(
            right, fitted.verdicts(costs).values(), fitted.labels_.values(), strict=True
        )
        if 0 <= t < len(names) and a is not None and b is not None
    ]
    if not pairs:
        return {}
    mine = sum(float(matrix[t, a]) for t, a, _ in pairs) / len(pairs)
    plain = sum(float(matrix[t, b]) for t, _, b in pairs) / len(pairs)
    return {"cost_per_task": mine, "cost_of_the_most_probable": plain}


def _method(
    method: str | None,
    ordinal: bool,
    numeric: bool,
    classes: str | None,
    probabilities: bool,
    seed: int | None,
    more: dict[str, Any],
) -> str:
    """The name of the method, after checking for conflicting options."""
    if ordinal and method not in (None, "ordinal"):
        raise InputError(f"--ordinal and --method {method} exclude each other: drop one of them")
    given: dict[str, Any] = {"--method": method, "--ordinal": ordinal, "--classes": classes}
    given |= {"--probabilities": probabilities, "--seed": seed, **more}
    other = next((name for name, x in given.items() if x is not None and x is not False), None)
    if numeric and other is not None:
        raise InputError(f"--numeric and {other} exclude each other: measurements have no classes")
    return "ordinal" if ordinal else method or "auto"


def _read(
    labels: Path,
    truth: Path | None,
    classes: tuple[str, ...] | None,
    repeats: Repeats,
    columns: Sequence[str],
    ordered: bool,
) -> tuple[LabelTable, NDArray[np.int64] | None]:
    from venire.labels.sources import as_ordered, as_table, as_truth
    from venire.labels.sources.ordered import many_numbers

    read = as_ordered if ordered else as_table
    table = read(labels, classes, repeats, columns)
    if not ordered and many_numbers(table.classes):
        screen.warn(
            f"the labels are {len(table.classes)} different numbers, each treated as a class of "
            "its own: for measurements use --numeric, for ordered ratings --ordinal"
        )
    if truth is None:
        return table, None
    names = columns[0], columns[2]
    right = as_truth(truth, table, names)
    strange = (right == len(table.classes)).nonzero()[0]
    if strange.size:
        _warn(truth, table, int(strange[0]), strange.size, names)
    return table, right


def _warn(
    truth: Path, table: LabelTable, example: int, number: int, columns: Sequence[str]
) -> None:
    from venire.labels.sources.truth import truth_of

    task = table.items[example]
    tasks = "1 task" if number == 1 else f"{number:,} tasks"
    said = truth_of(truth, table, task, columns)
    screen.warn(
        f"the truth of {tasks} is not one of the classes, such as {said!r} "
        f"for task {task!r}: verdicts on them count as wrong"
    )


def _write(
    fitted: BaseEstimator,
    out: Path | None,
    probabilities: bool,
    skills: Path | None,
    costs: Costs | None,
) -> None:
    from venire.files import Output, skills_output, verdicts_output, write_outputs

    outputs: list[Output] = []
    if out is not None:
        outputs.append(verdicts_output(out, fitted, probabilities, costs))
    if skills is not None:
        outputs.append(skills_output(skills, fitted))
    write_outputs(outputs)


def _record(
    method: str, fitted: BaseEstimator, right: NDArray[np.int64] | None, seconds: float
) -> dict[str, Any]:
    """The result as a JSON object; NaN and infinities are null."""
    from venire.cli.summary import agreement, scores

    table = fitted.table_
    return {
        "method": method,
        "chosen": getattr(fitted, "chosen_", method),
        "items": len(table.items),
        "labelers": len(table.labelers),
        "labels": len(table.said),
        "classes": len(table.classes),
        "iterations": int(fitted.n_iter_),
        "converged": bool(fitted.converged_),
        "log_likelihood": finite(fitted.log_likelihood_),
        **{key: finite(value) for key, value in agreement(fitted).items()},
        **scores(fitted, right),
        "seconds": seconds,
    }


def finite(value: float | None) -> float | None:
    """A number for JSON: None for NaN and infinities.

    >>> finite(0.5), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None
