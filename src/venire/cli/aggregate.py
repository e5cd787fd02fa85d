"""`venire aggregate`: verdicts and skills from a table of labels."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, counted, first_given, screen, tables
from venire.cli.shared.guarantees import Guaranteed, Promise
from venire.cli.shared.tables import (
    Classes,
    CostsGiven,
    FamiliesFile,
    Labels,
    Probabilities,
    Reading,
    families_of,
    gold_of,
    names_of,
)
from venire.errors import InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from venire.audits import Guarantee
    from venire.costs import Costs
    from venire.estimators.base import BaseEstimator
    from venire.labels import LabelTable
    from venire.labels.partitions import Table
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
    *,
    reading: Reading,
    seed: Annotated[int | None, typer.Option(help=SEED)] = None,
    gold: Annotated[str | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    costs: CostsGiven = None,
    families: FamiliesFile = None,
    guaranteed: Guaranteed,
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
    from venire.cli.shared.summary import Report
    from venire.costs import cost_matrix, costs_of_text
    from venire.estimators.base import method_named
    from venire.files import check_targets, skills_output, verdicts_output, write_outputs
    from venire.labels.partitions import sizes
    from venire.labels.sources.columns import like

    named, source = names_of(classes), located(labels)
    reading.check()
    gold, promise = guaranteed.promise(gold)
    if promise is not None and (cluster is not None or tables.is_several(source)):
        raise InputError(
            "--guarantee is for one file of labels: write the verdicts with --out, then use venire "
            "audit guarantee"
        )
    if ordinal and method not in (None, "ordinal"):
        raise InputError(f"--ordinal and --method {method} exclude each other: drop one of them")
    if numeric:
        given: dict[str, Any] = {"--method": method, "--ordinal": ordinal, "--classes": classes}
        given |= {"--probabilities": probabilities, "--seed": seed, "--gold": gold}
        given |= {"--costs": costs, "--families": families, "--guarantee": guaranteed.guarantee}
        _refuse_classes(given | {"--blank": reading.blank})
    method = "ordinal" if ordinal else method or "auto"
    charged: Costs = costs_of_text(costs) if costs else {}
    if probabilities and out is None:
        raise InputError("--probabilities needs --out: give the file for the verdicts")
    right_in, gold_in = (None if p is None else located(p) for p in (truth, gold))
    check_targets((out, skills), (source, right_in, gold_in, families, promise and promise.gold))
    if numeric:
        tables.refuse(cluster, "--numeric")
        return _aggregate_numbers(source, right_in, reading, out, skills, as_json)
    with ExitStack() as stack:
        working = stack.enter_context(screen.working(f"reading {source.name}"))
        estimator = method_named(method)
        client = stack.enter_context(tables.client_of(cluster))
        if client is None:
            tables.hint(source)
        form = named, method == "ordinal", repartition, working
        table = reading.partitioned(source, client, *form)
        _warn_numbers(table, method)
        right = _truth(right_in, table, reading.beside)
        estimator.seed = seed or 0
        _relate(estimator, families, source, table, reading.beside)
        if method == "ordinal":
            estimator.set_params(order=tuple(table.classes))
        working(f"{method}: {sizes(table)[1]:,} labels (a first run compiles, some 5 s)")
        start = time.perf_counter()
        charged = {like(pair, table.classes): cost for pair, cost in charged.items()}
        cost_matrix(charged, tuple(table.classes))  # an unknown class is refused before the work
        fitted = _fit(estimator, table, gold_in, reading.beside)
        seconds = round(time.perf_counter() - start, 6)
        held = promise and _guaranteed(fitted, charged, gold_in, reading.beside, promise)
        outputs = []
        if out is not None:
            marked = None if held is None else held.tasks
            outputs.append(verdicts_output(out, fitted, probabilities, charged, marked))
        if skills is not None:
            outputs.append(skills_output(skills, fitted))
        write_outputs(outputs)
        report = Report(method, fitted, right, seconds, charged, held)
        record, lines = (report.record(), []) if as_json else ({}, list(report.lines()))
    screen.show(record, lines, as_json)


def _aggregate_numbers(
    labels: PathOrAddress,
    truth: PathOrAddress | None,
    reading: Reading,
    out: Path | None,
    skills: Path | None,
    as_json: bool,
) -> None:
    """Read measurements, fit, write the files, and print the result."""
    from venire.cli.shared.summary import number_lines, numbers_record
    from venire.estimators import RobustMean
    from venire.files import columns_output, write_outputs
    from venire.labels.sources import as_ratings, as_true_values
    from venire.labels.sources.sheets import truth_columns

    with screen.working(f"reading {labels.name}") as working:
        given = reading.kept, reading.named
        table = as_ratings(labels, *given, wide=reading.wide, tell=screen.say)
        right = None
        if truth is not None:
            right = as_true_values(truth, table, truth_columns(truth, reading.beside))
        working(f"robust mean of {len(table.said):,} numbers")
        start = time.perf_counter()
        fitted = RobustMean().fit(table)
        seconds = round(time.perf_counter() - start, 6)
        made = [(out, fitted.value_columns()), (skills, fitted.labeler_columns())]
        write_outputs(columns_output(path, cells) for path, cells in made if path is not None)
    record = numbers_record(fitted, right) | {"seconds": seconds}
    screen.show(record, number_lines(fitted, record), as_json)


def _refuse_classes(options: dict[str, Any]) -> None:
    """An error about options that measurements do not have."""
    other = first_given(options)
    if other is not None:
        raise InputError(f"--numeric and {other} exclude each other: measurements have no classes")


def _warn_numbers(table: Table, method: str) -> None:
    from venire.labels.sources.truth import many_numbers

    if method != "ordinal" and many_numbers(table.classes):
        screen.warn(
            f"the labels are {len(table.classes)} different numbers, each treated as a class of "
            "its own: for measurements use --numeric, for ordered ratings --ordinal"
        )


def _guaranteed(
    fitted: BaseEstimator,
    costs: Costs,
    gold: PathOrAddress | None,
    columns: Sequence[str],
    promise: Promise,
) -> Guarantee:
    """Which verdicts are guaranteed, by gold that did not teach them."""
    from venire.estimators.frames import verdict_columns
    from venire.files.audits import KnownLabels

    found = verdict_columns(fitted, False, costs)
    verdicts = {str(t): str(x) for t, x in zip(found["task"], found["label"], strict=True)}
    sure = dict(zip(verdicts, found["confidence"], strict=True))
    if gold is not None and not isinstance(gold, Path):
        raise InputError("--guarantee needs a --gold on this machine: copy the file first")
    taught = KnownLabels({}) if gold is None else gold_of(gold, fitted.table_, columns)
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
        known_labels = gold_of(gold, table, columns)
        more = {"asked": known_labels.asked} if isinstance(estimator, Auto) else {}
        fitted: BaseEstimator = fit(table, gold=known_labels.labels, **more)
        if isinstance(fitted, Auto) and fitted.checked_ is not None:
            fitted.checked_ = fitted.checked_._replace(day=known_labels.day)
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
            f"{type(estimator).__name__} does not use families: take --method auto, or drop "
            "--families"
        )


def _known(table: LabelTable, codes: NDArray[np.int64]) -> list[tuple[Any, int]]:
    return [(table.items[i], int(codes[i])) for i in (codes >= 0).nonzero()[0].tolist()]


def _truth(truth: PathOrAddress | None, table: Table, labels: Sequence[str]) -> Any:
    """The known truth, as its code for each item, beside labels with these columns."""
    if truth is None:
        return None
    from venire.cli.shared.summary import count_truth
    from venire.labels.partitions import pieces, total
    from venire.labels.sources import as_truth
    from venire.labels.sources.sheets import truth_columns
    from venire.labels.sources.truth import truth_of

    columns = truth_columns(truth, labels)
    right = as_truth(truth, table, columns)
    strange = int(total(table, count_truth, right, len(table.classes))[1])
    if strange:
        example = next(name for names in pieces(table, _strange, right) for name in names)
        odd = truth_of(truth, example, columns)
        screen.warn(
            f"the truth of {counted(strange, 'task')} is not one of the classes, such as {odd!r} "
            f"for task {example!r}: verdicts on them count as wrong"
        )
    return right


def _strange(table: LabelTable, right: NDArray[np.int64]) -> list[Any]:
    """An item whose truth is not one of the classes."""
    return [table.items[i] for i in (right == len(table.classes)).nonzero()[0][:1].tolist()]
