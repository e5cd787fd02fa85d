"""`venire label`: a whole file of items, labelled within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, batches, screen, tables
from venire.cli.shared.tables import (
    BLANK,
    MERGE,
    WIDE,
    Classes,
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
    from venire.budget import Budget
    from venire.cli.shared.guarantees import Promise
    from venire.files.audits import KnownLabels
    from venire.tools.addresses import PathOrAddress


ITEMS = "The items: JSON Lines or CSV with id and optionally weight, target and eligible."
PANEL = "The labelers: YAML, TOML or JSON with id, price, and call, column or a model."
RECORDED = (
    "Instead of ITEMS: labels that exist already, task,worker,label, to replay: a file, a "
    "pattern or a folder; here, or at an address (s3://bucket/*.parquet)."
)
PRICES = "With --recorded: what a label of each labeler costs, labeler,price. [default: 1 each]"
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
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.OUT)] = None,
    *,
    buying: batches.Buying,
    classes: Classes = None,
    expert: Annotated[Path | None, typer.Option(metavar="FILE", help=EXPERT)] = None,
    expert_price: Annotated[float | None, typer.Option(metavar="X", help=EXPERT_PRICE)] = None,
    columns: Annotated[str | None, typer.Option(metavar="NAMES", help=COLUMNS)] = None,
    wide: Annotated[bool, typer.Option("--wide", help=WIDE_HELP)] = False,
    merge: Annotated[bool, typer.Option("--merge", help=MERGE_HELP)] = False,
    blank: Annotated[str | None, typer.Option(metavar="NAMES", help=BLANK_HELP)] = None,
    repeats: Annotated[str | None, typer.Option(metavar="WHICH", help=REPEATS)] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=CLUSTER)] = None,
    as_json: AsJson = False,
) -> None:
    """Label a file of items: buy the labels that pay most for their price, within a budget.

    All items are there from the start, and delay costs nothing. Interrupted with Ctrl-C, the same
    command continues where it stopped and pays for nothing twice.
    """
    from venire.batch.labelling import label_recorded, read_batch
    from venire.labels.sources import COLUMNS as COLUMNS_OF_LABELS

    replayed: dict[str, Any] = {"--prices": prices, "--columns": columns, "--repeats": repeats}
    replayed |= {"--cluster": cluster, "--families": families}
    replayed |= {"--expert": expert, "--expert-price": expert_price}
    replayed |= {"--wide": wide or None, "--merge": merge or None, "--blank": blank}
    _check({"ITEMS": items, "--panel": panel}, recorded, out, buying, replayed)
    source = None if recorded is None else located(recorded)
    gold, promise = buying.checked(out, items, panel, source, prices, families, expert)
    if buying.probabilities and out is None:
        raise InputError("--probabilities needs --out: give the file for the verdicts")
    options = buying.terms()
    with batches.watched() as watch:
        options["progress"] = watch
        if source is not None:
            table, options["truth"] = _table(
                source,
                buying.truth,
                columns,
                repeats,
                classes,
                cluster,
                {"wide": wide, "merge": merge, "blank": blank_of(blank)},
            )
            limit = buying.limit(len(table.items))
            options["prices"] = None if prices is None else prices_of(prices, table)
            called = COLUMNS_OF_LABELS if wide else columns_of(columns, COLUMNS_OF_LABELS)
            options["families"] = families_of(families, source, table, called)
            known = batches.gold_of_file(None) if gold is None else gold_of(gold, table, called)
            options |= _told(known, promise, table.items, buying.target)
            if expert is not None:
                options["expert"] = true_labels(expert, table, called)
            options["expert_price"] = expert_price
            done = label_recorded(table, limit, **options)
        else:
            assert items is not None
            assert panel is not None
            assert out is not None
            options |= {"classes": names_of(classes), **buying.asking(out)}
            batch = read_batch(items)
            batches.say_continued(options["journal"])
            known = batches.gold_of_file(gold, [item.id for item in batch], options["classes"])
            options |= _told(known, promise, [item.id for item in batch], buying.target)
            done = _ask(batch, panel, buying.limit(len(batch)), options)
    done = done.of_day(known.day)
    held = batches.kept_promise(promise, done, known)
    batches.write_labelled(done, out, buying, held=held)
    batches.say_labelled(done, as_json, held=held)


def _told(
    known: KnownLabels, promise: Promise | None, tasks: Sequence[Any], target: float | None
) -> dict[str, Any]:
    """What gold there is to learn from, after checks of all gold."""
    batches.check_promise(promise, tasks, known)
    batches.warn_target(target, known)
    return {"gold": known.labels or None, "asked": known.asked}


def _check(
    files: dict[str, Path | None],
    recorded: str | None,
    out: Path | None,
    buying: batches.Buying,
    replayed: dict[str, Any],
) -> None:
    live = {**files, "--journal": buying.journal, "--student": buying.student}
    if recorded is not None:
        other = next((name for name, value in live.items() if value is not None), None)
        if other is not None:
            raise InputError(f"--recorded and {other} exclude each other: drop one of them")
        return
    if None in files.values():
        raise InputError("give ITEMS and --panel, or --recorded with labels that exist already")
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
    limit: Budget | None,
    options: dict[str, Any],
) -> Labelled:
    from venire.batch.asking import close_labelers
    from venire.batch.labelling import label as run
    from venire.cli.shared.worlds import find_callable
    from venire.connectors.models import read_panel_of_models

    callers = read_panel_of_models(panel, find_callable)
    try:
        return run(batch, callers, limit, **options)
    finally:
        close_labelers(callers)
