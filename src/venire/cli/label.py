"""`venire label`: a whole file of items, labelled within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, batches, screen, tables
from venire.cli.shared.guarantees import Level, Promise, RightShare, TestingGold, promise_of
from venire.cli.shared.tables import (
    BLANK,
    MERGE,
    WIDE,
    blank_of,
    columns_of,
    families_of,
    gold_of,
    prices_of,
    repeats_of,
    true_labels,
)
from venire.cli.shared.worlds import names_of
from venire.errors import InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    from venire.batch import BatchItem, Labelled
    from venire.files.audits import KnownLabels
    from venire.tools.addresses import PathOrAddress


ITEMS = "The items: JSON Lines or CSV with id and optionally weight, target and eligible."
PANEL = "The labelers: YAML, TOML or JSON with id, price, and call, column or a model."
RECORDED = (
    "Instead of ITEMS: labels that are there already, task,worker,label, to replay: a file, a "
    "pattern or a folder; here, or at an address (s3://bucket/*.parquet)."
)
PRICES = "With --recorded: what a label of each labeler costs, labeler,price. [default: 1 each]"
CLASSES = "The possible labels, such as spam,ok. [default: the labels that occur]"
COLUMNS = "With --recorded: the names of the columns. [default: as in venire aggregate]"
WIDE_HELP, MERGE_HELP, BLANK_HELP = (
    f"With --recorded: {h[0].lower()}{h[1:]}" for h in (WIDE, MERGE, BLANK)
)
CLUSTER = "With --recorded: read its files on a Dask cluster, by its address, or local."
FAMILIES = "With --recorded: who may share errors, as in venire aggregate --families."
EXPERT = "With --recorded: what an expert would say of each task: a file with task,label."
EXPERT_PRICE = "With --expert: what a label of the expert costs, in the currency of the prices."
REPEATS = "With --recorded: repeated labels of a task by one worker: error, first or last."


def label(
    items: Annotated[Path | None, typer.Argument(metavar="[ITEMS]", help=ITEMS)] = None,
    panel: Annotated[Path | None, typer.Option(metavar="FILE", help=PANEL)] = None,
    recorded: Annotated[str | None, typer.Option(metavar="FILE", help=RECORDED)] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help=PRICES)] = None,
    families: Annotated[Path | None, typer.Option(metavar="FILE", help=FAMILIES)] = None,
    budget: Annotated[float | None, typer.Option(metavar="X", help=batches.BUDGET)] = None,
    labels: Annotated[int | None, typer.Option(metavar="N", help=batches.LABELS)] = None,
    labels_per_item: Annotated[
        float | None, typer.Option(metavar="X", help=batches.PER_ITEM)
    ] = None,
    target: Annotated[float | None, typer.Option(metavar="X", help=batches.TARGET)] = None,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)] = None,
    costs: Annotated[str | None, typer.Option(metavar="COSTS", help=batches.COSTS)] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.TRUTH)] = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.GOLD)] = None,
    expert: Annotated[Path | None, typer.Option(metavar="FILE", help=EXPERT)] = None,
    expert_price: Annotated[float | None, typer.Option(metavar="X", help=EXPERT_PRICE)] = None,
    expert_share: Annotated[
        float | None, typer.Option(metavar="X", help=batches.EXPERT_SHARE)
    ] = None,
    alone: Annotated[float | None, typer.Option(metavar="X", help=batches.ALONE)] = None,
    guarantee: RightShare = None,
    guarantee_level: Level = None,
    guarantee_gold: TestingGold = None,
    columns: Annotated[str | None, typer.Option(metavar="NAMES", help=COLUMNS)] = None,
    wide: Annotated[bool, typer.Option("--wide", help=WIDE_HELP)] = False,
    merge: Annotated[bool, typer.Option("--merge", help=MERGE_HELP)] = False,
    blank: Annotated[str | None, typer.Option(metavar="NAMES", help=BLANK_HELP)] = None,
    repeats: Annotated[str | None, typer.Option(metavar="WHICH", help=REPEATS)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.OUT)] = None,
    labels_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help=batches.LABELS_OUT)
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help=batches.PROBABILITIES)
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.REPORT)] = None,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.JOURNAL)] = None,
    student: Annotated[str | None, typer.Option(metavar="FIELD", help=batches.STUDENT)] = None,
    seed: Annotated[int, typer.Option(help=batches.SEED)] = 0,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=CLUSTER)] = None,
    as_json: AsJson = False,
) -> None:
    """Label a file of items: buy the labels that pay most for their price, within a budget.

    Everything is there at once and delay costs nothing. Interrupted with Ctrl-C, the same command
    continues where it stopped and pays for nothing twice.
    """
    from venire.batch.labelling import label_recorded, read_batch
    from venire.costs import costs_of_text
    from venire.files import check_targets
    from venire.labels.sources import COLUMNS as COLUMNS_OF_LABELS

    replayed: dict[str, Any] = {"--prices": prices, "--columns": columns, "--repeats": repeats}
    replayed |= {"--cluster": cluster, "--families": families}
    replayed |= {"--expert": expert, "--expert-price": expert_price}
    replayed |= {"--wide": wide or None, "--merge": merge or None, "--blank": blank}
    _check(items, panel, recorded, journal, out, student, replayed)
    source = None if recorded is None else located(recorded)
    gold, promise = promise_of(guarantee, guarantee_level, guarantee_gold, gold)
    every = (items, panel, source, prices, families, truth, expert, gold, promise and promise.gold)
    sources = [path for path in every if path is not None]
    check_targets([path for path in (out, labels_out) if path is not None], sources)
    batches.check_report(report)
    if probabilities and out is None:
        raise InputError("--probabilities needs --out: give the file for the verdicts")
    options: dict[str, Any] = {
        "target": target,
        "costs": costs_of_text(costs) if costs else None,
        "seed": seed,
        "expert_share": expert_share,
        "alone": alone,
    }
    with batches.watched() as watch:
        options["progress"] = watch
        if source is not None:
            table, options["truth"] = _table(
                source,
                truth,
                columns,
                repeats,
                classes,
                cluster,
                {"wide": wide, "merge": merge, "blank": blank_of(blank)},
            )
            limit = batches.budget_of(budget, labels, labels_per_item, len(table.items))
            options["prices"] = None if prices is None else prices_of(prices, table)
            called = COLUMNS_OF_LABELS if wide else columns_of(columns, COLUMNS_OF_LABELS)
            options["families"] = families_of(families, source, table, called)
            known = batches.gold_of_file(None) if gold is None else gold_of(gold, table, called)
            options |= _told(known, promise, table.items, target)
            if expert is not None:
                options["expert"] = true_labels(expert, table, called)
            options["expert_price"] = expert_price
            done = label_recorded(table, limit, **options)
        else:
            assert items is not None
            assert panel is not None
            assert out is not None
            options |= {"classes": names_of(classes), "truth": batches.truth_of(truth)}
            options["journal"] = journal or out.with_name(out.name + ".journal")
            options["student"] = batches.student_of(student)
            batch = read_batch(items)
            batches.say_continued(options["journal"])
            known = batches.gold_of_file(gold, [item.id for item in batch], options["classes"])
            options |= _told(known, promise, [item.id for item in batch], target)
            done = _ask(batch, panel, (budget, labels, labels_per_item), options)
    done = done.of_day(known.day)
    held = batches.kept_promise(promise, done, known)
    batches.write_labelled(done, out, report, probabilities, labels_out=labels_out, held=held)
    batches.say_labelled(done, as_json, held=held)


def _told(
    known: KnownLabels, promise: Promise | None, tasks: Sequence[Any], target: float | None
) -> dict[str, Any]:
    """What gold there is to learn from, after checks of all gold."""
    batches.check_promise(promise, tasks, known)
    batches.warn_target(target, known)
    return {"gold": known.labels or None, "asked": known.asked}


def _check(
    items: Path | None,
    panel: Path | None,
    recorded: str | None,
    journal: Path | None,
    out: Path | None,
    student: str | None,
    replayed: dict[str, Any],
) -> None:
    live = {"ITEMS": items, "--panel": panel, "--journal": journal, "--student": student}
    if recorded is not None:
        other = next((name for name, value in live.items() if value is not None), None)
        if other is not None:
            raise InputError(f"--recorded and {other} exclude each other: drop one of them")
        return
    if items is None or panel is None:
        raise InputError("give ITEMS and --panel, or --recorded with labels that are there already")
    other = next((name for name, value in replayed.items() if value is not None), None)
    if other is not None:
        raise InputError(
            f"{other} is an option of --recorded: prices and families of a panel are in its file"
        )
    if out is None:
        raise InputError("labels of a panel are paid for: give --out, the file for the verdicts")


def _table(
    recorded: PathOrAddress,
    truth: Path | None,
    columns: str | None,
    repeats: str | None,
    classes: str | None,
    cluster: str | None,
    form: dict[str, Any],
) -> tuple[Any, Any]:
    from venire.labels import LabelTable
    from venire.labels.partitions import whole_table
    from venire.labels.sources import COLUMNS, as_table

    named, called, kept = (
        names_of(classes),
        columns_of(columns, COLUMNS, form["wide"]),
        repeats_of(repeats or "error"),
    )
    if cluster is None and not tables.is_several(recorded):
        table = as_table(recorded, named, kept, called, **form, tell=screen.say)
    else:
        tables.refuse_forms(form)
        with tables.client_of(cluster) as client:
            read = tables.read_files(recorded, client, named, kept, called, False, True)
            table = read if isinstance(read, LabelTable) else read.gathered(whole_table)
    called = COLUMNS if form["wide"] else called  # the truth has no columns of judges
    return table, None if truth is None else true_labels(truth, table, called)


def _ask(
    batch: Sequence[BatchItem],
    panel: Path,
    budget: tuple[float | None, int | None, float | None],
    options: dict[str, Any],
) -> Labelled:
    from venire.batch.asking import close_labelers
    from venire.batch.labelling import label as run
    from venire.cli.shared.worlds import find_callable
    from venire.connectors.models import read_panel_of_models

    callers = read_panel_of_models(panel, find_callable)
    try:
        return run(batch, callers, batches.budget_of(*budget, len(batch)), **options)
    finally:
        close_labelers(callers)
