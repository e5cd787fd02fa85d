"""`venire aggregate`: verdicts and skills from a table of labels."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen, tables
from venire.cli.shared.guarantees import Level, Promise, RightShare, TestingGold, promise_of
from venire.cli.shared.tables import (
    Blank,
    Classes,
    Columns,
    CostsGiven,
    FamiliesFile,
    Labels,
    Merge,
    Probabilities,
    Repeats,
    Wide,
    blank_of,
    columns_of,
    families_of,
    gold_of,
    repeats_of,
)
from venire.cli.shared.worlds import names_of
from venire.errors import InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from venire.audits import Guarantee
    from venire.costs import Costs
    from venire.estimators.base import BaseEstimator
    from venire.labels import LabelTable
    from venire.labels import Repeats as Kept
    from venire.labels.partitions import Spread, Table
    from venire.tools.addresses import PathOrAddress


TRUTH = "Known true labels, for comparison: a file with task,label."
METHOD = "auto, majority, weighted-majority, one-coin, dawid-skene or ordinal. [default: auto]"
ORDINAL = "The classes are ordered: numerically, or as given by --classes."
NUMERIC = "Labels are measurements: estimate a robust mean of each task, with its standard error."
SEED = "Seed of the draw that breaks ties. [default: 0]"
GOLD = "Known true labels to learn from: a file with task,label and optionally date."
OUT = "Write the verdicts, .csv, .parquet, .jsonl or .dataset: task,label,confidence,entropy."
SKILLS = "Write the skills, .csv, .parquet or .jsonl: worker,labels,skill,low,high."


def aggregate(
    labels: Labels,
    truth: Annotated[str | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help=METHOD)] = None,
    classes: Classes = None,
    ordinal: Annotated[bool, typer.Option("--ordinal", help=ORDINAL)] = False,
    numeric: Annotated[bool, typer.Option("--numeric", help=NUMERIC)] = False,
    columns: Columns = None,
    wide: Wide = False,
    merge: Merge = False,
    blank: Blank = None,
    repeats: Repeats = "error",
    seed: Annotated[int | None, typer.Option(help=SEED)] = None,
    gold: Annotated[str | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    costs: CostsGiven = None,
    families: FamiliesFile = None,
    guarantee: RightShare = None,
    guarantee_level: Level = None,
    guarantee_gold: TestingGold = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    probabilities: Probabilities = False,
    skills: Annotated[Path | None, typer.Option(metavar="FILE", help=SKILLS)] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=tables.CLUSTER)] = None,
    repartition: Annotated[bool, typer.Option("--repartition", help=tables.REPARTITION)] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the true label of each task and the skill of each labeler, from labels alone.

    The truth, if given, is used only to report the error, never to learn from; gold is learned
    from. With costs, verdicts are those of least expected cost.
    """
    from venire.costs import cost_matrix, costs_of_text
    from venire.estimators.base import method_named
    from venire.files import check_targets
    from venire.labels.partitions import sizes
    from venire.labels.sources import COLUMNS
    from venire.labels.sources.columns import like

    named, called = names_of(classes), columns_of(columns, COLUMNS, wide)
    source = located(labels)
    gold, promise = promise_of(guarantee, guarantee_level, guarantee_gold, gold)
    if promise is not None and (cluster is not None or tables.is_several(source)):
        raise InputError(
            "--guarantee is for one file of labels: write the verdicts with --out, then use venire "
            "audit guarantee"
        )
    given = {"--gold": gold, "--costs": costs, "--families": families}
    given |= {"--guarantee": guarantee, "--blank": blank}
    method = _method(method, ordinal, numeric, classes, probabilities, seed, given)
    charged: Costs = costs_of_text(costs) if costs else {}
    if probabilities and out is None:
        raise InputError("--probabilities needs --out: give the file for the verdicts")
    kept = repeats_of(repeats)
    right_in, gold_in = (None if p is None else located(p) for p in (truth, gold))
    every = (source, right_in, gold_in, families, promise and promise.gold)
    sources = [path for path in every if path is not None]
    check_targets([path for path in (out, skills) if path is not None], sources)
    if numeric:
        tables.refuse(cluster, "--numeric")
        from venire.cli.shared.summary import aggregate_numbers

        return aggregate_numbers(source, right_in, called, kept, out, skills, as_json, wide)
    with ExitStack() as stack:
        working = stack.enter_context(screen.working(f"reading {source.name}"))
        estimator = method_named(method)
        client = stack.enter_context(tables.client_of(cluster))
        table = _labels(
            source,
            client,
            named,
            kept,
            called,
            method == "ordinal",
            repartition,
            working,
            {"wide": wide, "merge": merge, "blank": blank_of(blank)},
        )
        called = COLUMNS if wide else called  # the truth and gold have no columns of judges
        right = _truth(right_in, table, called)
        estimator.seed = seed or 0
        _relate(estimator, families, source, table, called)
        if method == "ordinal":
            estimator.set_params(order=tuple(table.classes))
        working(f"{method}: {sizes(table)[1]:,} labels (a first run compiles, some 10 s)")
        start = time.perf_counter()
        charged = {like(pair, table.classes): cost for pair, cost in charged.items()}
        cost_matrix(charged, tuple(table.classes))  # an unknown class is refused before the work
        fitted = _fit(estimator, table, gold_in, called)
        seconds = round(time.perf_counter() - start, 6)
        held = None if promise is None else _guaranteed(fitted, charged, gold_in, called, promise)
        _write(fitted, out, probabilities, skills, charged, held)
        paid = _cost(fitted, right, charged)
        if as_json:
            record = _record(method, fitted, right, seconds) | paid
            record |= {} if held is None else {"guarantee": held.record()}
            said = json.dumps(record, indent=2, allow_nan=False)
        else:
            said = _summary(method, fitted, right, seconds, paid, held)
    print(said)


def _summary(
    method: str,
    fitted: BaseEstimator,
    right: NDArray[np.int64] | Spread | None,
    seconds: float,
    paid: dict[str, float],
    held: Guarantee | None,
) -> str:
    from venire.cli.shared.guarantees import guarantee_lines
    from venire.cli.shared.summary import summary

    costs = (f"{name.replace('_', ' ')}: {value:.4g}" for name, value in paid.items())
    promised = [] if held is None else ["", *guarantee_lines(held)]
    return "\n".join([*summary(method, fitted, right, seconds), *costs, *promised])


def _guaranteed(
    fitted: BaseEstimator,
    costs: Costs | None,
    gold: PathOrAddress | None,
    columns: Sequence[str],
    promise: Promise,
) -> Guarantee:
    """Which verdicts are guaranteed, by gold that did not teach them."""
    from venire.estimators.frames import verdict_columns

    found = verdict_columns(fitted, False, costs)
    verdicts = {str(t): str(x) for t, x in zip(found["task"], found["label"], strict=True)}
    sure = dict(zip(verdicts, found["confidence"], strict=True))
    if gold is not None and not isinstance(gold, Path):
        raise InputError("--guarantee needs a --gold on this machine: copy the file first")
    taught = None if gold is None else gold_of(gold, fitted.table_, columns)
    promise.check(verdicts, taught)
    return promise.kept(verdicts, sure, taught)


def _fit(
    estimator: BaseEstimator, table: Table, gold: PathOrAddress | None, columns: Sequence[str]
) -> BaseEstimator:
    if gold is None:
        return estimator.fit(table)
    from venire.cli.shared.summary import count_truth
    from venire.estimators.auto import Auto
    from venire.labels import LabelTable
    from venire.labels.partitions import pieces, total
    from venire.labels.sources import as_truth
    from venire.labels.sources.sheets import truth_columns

    if "gold" not in inspect.signature(estimator.fit).parameters:
        raise InputError(
            f"{type(estimator).__name__} does not learn from gold: take another --method, such as "
            "auto, or drop --gold"
        )
    fit: Any = estimator.fit
    if isinstance(gold, Path) and isinstance(table, LabelTable):
        told = gold_of(gold, table, columns)
        more = {"asked": told.asked} if isinstance(estimator, Auto) else {}
        fitted: BaseEstimator = fit(table, gold=told.labels, **more)
        if isinstance(fitted, Auto) and fitted.checked_ is not None:
            fitted.checked_ = fitted.checked_._replace(day=told.day)
        return fitted
    codes = as_truth(gold, table, truth_columns(gold, columns))
    if total(table, count_truth, codes, len(table.classes))[1]:
        raise InputError(
            f"{gold} has a label that is not one of the classes {list(table.classes)}: name all "
            "of them with --classes"
        )
    known = {item: table.classes[k] for pairs in pieces(table, _known, codes) for item, k in pairs}
    fitted = fit(table, gold=known)
    return fitted


def _relate(
    estimator: BaseEstimator,
    families: Path | None,
    labels: PathOrAddress,
    table: Table,
    columns: Sequence[str],
) -> None:
    if hasattr(estimator, "families"):
        estimator.set_params(families=families_of(families, labels, table, columns))
    elif families is not None:
        raise InputError(
            f"{type(estimator).__name__} makes no use of families: take --method auto, or drop "
            "--families"
        )


def _known(table: LabelTable, codes: NDArray[np.int64]) -> list[tuple[Any, int]]:
    return [(table.items[i], int(codes[i])) for i in (codes >= 0).nonzero()[0].tolist()]


def _cost(
    fitted: BaseEstimator, right: NDArray[np.int64] | Spread | None, costs: Costs | None
) -> dict[str, float]:
    """The mean cost of the verdicts, and of the most probable classes, where the truth is known."""
    if right is None or not costs:
        return {}
    from venire.costs import cost_matrix
    from venire.labels.partitions import total

    names = fitted.classes_
    matrix, code = cost_matrix(costs, names), {name: k for k, name in enumerate(names)}
    if matrix is None:
        return {}
    given = fitted.posterior_rows(), right, fitted.seed, costs, matrix, code
    mine, plain, judged = total(fitted.table_, _charged, *given)
    if not judged:
        return {}
    return {"cost_per_task": mine / judged, "cost_of_the_most_probable": plain / judged}


def _charged(
    table: LabelTable,
    posteriors: NDArray[np.float64],
    right: NDArray[np.int64],
    seed: int,
    costs: Costs,
    matrix: NDArray[np.float64],
    code: dict[Any, int],
) -> tuple[float, float, int]:
    """What the verdicts cost, what the most probable classes would, and how many are judged."""
    from venire.estimators.frames import part_columns

    mine, plain = (part_columns(table, posteriors, seed, False, c)["label"] for c in (costs, None))
    pairs = [
        (int(t), code[a], code[b])
        for t, a, b in zip(right, mine, plain, strict=True)
        if 0 <= t < len(code) and a is not None and b is not None
    ]
    spent = [sum(float(matrix[pair[0], pair[k]]) for pair in pairs) for k in (1, 2)]
    return spent[0], spent[1], len(pairs)


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


def _labels(
    labels: PathOrAddress,
    client: Any,
    classes: tuple[str, ...] | None,
    repeats: Kept,
    columns: Sequence[str],
    ordered: bool,
    repartition: bool,
    working: Callable[[str], None],
    form: dict[str, Any],
) -> Table:
    """The labels of a file, or of several; on a cluster, if there is one, in partitions."""
    from venire.labels.sources import as_ordered, as_table
    from venire.labels.sources.truth import many_numbers

    read = as_ordered if ordered else as_table
    if client is None:
        tables.hint(labels)
    table: Table
    if client is not None or tables.is_several(labels):
        tables.refuse_forms(form)
        more = columns, ordered, repartition, working
        table = tables.read_files(labels, client, classes, repeats, *more)
    else:
        table = read(labels, classes, repeats, columns, **form, tell=screen.say)
    if not ordered and many_numbers(table.classes):
        screen.warn(
            f"the labels are {len(table.classes)} different numbers, each treated as a class of "
            "its own: for measurements use --numeric, for ordered ratings --ordinal"
        )
    return table


def _truth(truth: PathOrAddress | None, table: Table, labels: Sequence[str]) -> Any:
    """The known truth, as its code for each item, beside labels with these columns."""
    if truth is None:
        return None
    from venire.cli.shared.summary import count_truth
    from venire.labels.partitions import pieces, total
    from venire.labels.sources import as_truth
    from venire.labels.sources.sheets import truth_columns

    columns = truth_columns(truth, labels)
    right = as_truth(truth, table, columns)
    strange = int(total(table, count_truth, right, len(table.classes))[1])
    if strange:
        example = next(name for names in pieces(table, _strange, right) for name in names)
        _warn(truth, example, strange, columns)
    return right


def _strange(table: LabelTable, right: NDArray[np.int64]) -> list[Any]:
    """An item whose truth is not one of the classes."""
    return [table.items[i] for i in (right == len(table.classes)).nonzero()[0][:1].tolist()]


def _warn(truth: PathOrAddress, task: Any, number: int, columns: Sequence[str]) -> None:
    from venire.labels.sources.truth import truth_of

    tasks = "1 task" if number == 1 else f"{number:,} tasks"
    said = truth_of(truth, task, columns)
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
    held: Guarantee | None,
) -> None:
    from venire.files import Output, skills_output, verdicts_output, write_outputs

    outputs: list[Output] = []
    if out is not None:
        marked = None if held is None else held.tasks
        outputs.append(verdicts_output(out, fitted, probabilities, costs, marked))
    if skills is not None:
        outputs.append(skills_output(skills, fitted))
    write_outputs(outputs)


def _record(
    method: str, fitted: BaseEstimator, right: NDArray[np.int64] | Spread | None, seconds: float
) -> dict[str, Any]:
    """The result as a JSON object; NaN and infinities are null."""
    from venire.cli.shared.summary import agreement, grounds, related, scores
    from venire.labels.partitions import sizes

    table = fitted.table_
    items, labels = sizes(table)
    return {
        "method": method,
        "chosen": getattr(fitted, "chosen_", method),
        "items": items,
        "labelers": len(table.labelers),
        "labels": labels,
        "classes": len(table.classes),
        "iterations": int(fitted.n_iter_),
        "converged": bool(fitted.converged_),
        "log_likelihood": finite(fitted.log_likelihood_),
        **{key: finite(value) for key, value in agreement(fitted).items()},
        **scores(fitted, right),
        **related(fitted),
        **grounds(fitted),
        "seconds": seconds,
    }


def finite(value: float | None) -> float | None:
    """A number for JSON: None for NaN and infinities.

    >>> finite(0.5), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None
