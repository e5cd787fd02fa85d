"""`venire label`: a whole file of items, labelled within a budget."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from venire.cli.aggregate import columns_of
from venire.cli.worlds import names_of
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.batch import Labelled, Progress
    from venire.budget import Budget

__all__ = ["label"]

ITEMS = "The items: JSON Lines or CSV with id and optionally weight, target and eligible."
PANEL = "The labelers: YAML, TOML or JSON with id, price, and call or column."
RECORDED = "Instead of ITEMS: labels that are there already, task,worker,label, to replay."
PRICES = "With --recorded: what a label of each labeler costs, labeler,price. [default: 1 each]"
BUDGET = "The most to spend, in the currency of the prices."
LABELS = "The most labels to buy."
PER_ITEM = "The most labels to buy, on average for an item."
TARGET = "An item is done when its verdict has this confidence."
CLASSES = "The possible labels, such as spam,ok. [default: the labels that occur]"
COSTS = "What an error costs, right:said=cost, such as toxic:ok=10; may be given several times."
TRUTH = "Known true labels, for the report only: a file with task,label."
COLUMNS = "With --recorded: the names of the columns. [default: task,worker,label]"
REPEATS = "With --recorded: repeated labels of a task by one worker: error, first or last."
OUT = "Write the verdicts, .jsonl, .csv or .parquet: task,label,confidence,labels,cost,reason."
REPORT = "Write the report as one HTML file."
JOURNAL = "Keeps every answer, so that a run resumes. [default: the name of --out + .journal]"
SEED = "Seed of the draws of labelers."


def label(
    items: Annotated[Path | None, typer.Argument(metavar="[ITEMS]", help=ITEMS)] = None,
    panel: Annotated[Path | None, typer.Option(metavar="FILE", help=PANEL)] = None,
    recorded: Annotated[Path | None, typer.Option(metavar="FILE", help=RECORDED)] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help=PRICES)] = None,
    budget: Annotated[float | None, typer.Option(metavar="X", help=BUDGET)] = None,
    labels: Annotated[int | None, typer.Option(metavar="N", help=LABELS)] = None,
    labels_per_item: Annotated[float | None, typer.Option(metavar="X", help=PER_ITEM)] = None,
    target: Annotated[float | None, typer.Option(metavar="X", help=TARGET)] = None,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help=CLASSES)] = None,
    costs: Annotated[list[str] | None, typer.Option(metavar="COST", help=COSTS)] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    columns: Annotated[str | None, typer.Option(metavar="NAMES", help=COLUMNS)] = None,
    repeats: Annotated[str | None, typer.Option(metavar="WHICH", help=REPEATS)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help=REPORT)] = None,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help=JOURNAL)] = None,
    seed: Annotated[int, typer.Option(help=SEED)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Label a file of items: buy the labels that pay most for their price, within a budget.

    Everything is there at once and delay costs nothing. Interrupted with Ctrl-C, the same command
    continues where it stopped and pays for nothing twice.
    """
    from venire.batch.labelling import label as run
    from venire.batch.labelling import label_recorded
    from venire.files import check_targets

    _check(items, panel, recorded, prices, columns, repeats, journal, out, classes)
    sources = [p for p in (items, panel, recorded, prices, truth) if p is not None]
    check_targets([] if out is None else [out], sources)
    _check_report(report)
    options: dict[str, Any] = {"target": target, "costs": _costs(costs), "seed": seed}
    with _watched() as watch:
        options["progress"] = watch
        if recorded is not None:
            table, options["truth"] = _table(recorded, truth, columns, repeats, classes)
            limit = _budget(budget, labels, labels_per_item, len(table.items))
            options["prices"] = _prices(prices, table)
            done = label_recorded(table, limit, **options)
        else:
            assert items is not None
            assert panel is not None
            assert out is not None
            batch, callers = _batch(items, panel)
            limit = _budget(budget, labels, labels_per_item, len(batch))
            options |= {"classes": names_of(classes), "truth": _truth(truth)}
            options["journal"] = journal or out.with_name(out.name + ".journal")
            done = run(batch, callers, limit, **options)
    _write(done, out, report)
    if as_json:
        print(json.dumps(done.record(), indent=2, allow_nan=False))
    else:
        from venire.cli.label_summary import print_labelled

        print_labelled(done)


def _check(
    items: Path | None,
    panel: Path | None,
    recorded: Path | None,
    prices: Path | None,
    columns: str | None,
    repeats: str | None,
    journal: Path | None,
    out: Path | None,
    classes: str | None,
) -> None:
    live = {"ITEMS": items, "--panel": panel, "--journal": journal}
    replayed = {"--prices": prices, "--columns": columns, "--repeats": repeats}
    if recorded is not None:
        other = next((name for name, value in live.items() if value is not None), None)
        if other is not None:
            raise InputError(f"--recorded and {other} exclude each other: drop one of them")
        return
    if items is None or panel is None:
        raise InputError("give ITEMS and --panel, or --recorded with labels that are there already")
    other = next((name for name, value in replayed.items() if value is not None), None)
    if other is not None:
        raise InputError(f"{other} is an option of --recorded: prices of a panel are in its file")
    if out is None:
        raise InputError("labels of a panel are paid for: give --out, the file for the verdicts")


def _check_report(report: Path | None) -> None:
    if report is not None and (report.suffix != ".html" or not report.resolve().parent.is_dir()):
        raise InputError(f"got --report {report}, expected a file .html in a folder that is there")


def _budget(
    money: float | None, labels: int | None, per_item: float | None, items: int
) -> Budget | None:
    from venire.budget import Budget

    if labels is not None and per_item is not None:
        raise InputError("--labels and --labels-per-item exclude each other: drop one of them")
    if per_item is not None:
        if not 0 < per_item < 1e6:
            raise InputError(f"got --labels-per-item {per_item!r}, expected a number above 0")
        labels = round(per_item * items)
    return None if money is None and labels is None else Budget(money=money, labels=labels)


def _costs(given: list[str] | None) -> dict[tuple[str, str], float] | None:
    """The costs in `right:said=cost`.

    >>> _costs(["toxic:ok=10"])
    {('toxic', 'ok'): 10.0}
    """
    if not given:
        return None
    costs = {}
    for text in given:
        pair, _, cost = text.rpartition("=")
        right, colon, said = pair.partition(":")
        try:
            costs[right.strip(), said.strip()] = float(cost)
        except ValueError:
            colon = ""
        if not (colon and right.strip() and said.strip()):
            raise InputError(f"got --costs {text!r}, expected right:said=cost, as toxic:ok=10")
    return costs


def _table(
    recorded: Path,
    truth: Path | None,
    columns: str | None,
    repeats: str | None,
    classes: str | None,
) -> tuple[Any, Any]:
    from venire.labels import Repeats
    from venire.labels.sources import COLUMNS, as_table, as_truth

    if repeats is not None and repeats not in get_args(Repeats):
        raise UnknownName("way with --repeats", repeats, get_args(Repeats))
    called = columns_of(columns, COLUMNS)
    table = as_table(recorded, names_of(classes), repeats or "error", called)  # type: ignore[arg-type] # it was checked
    if truth is None:
        return table, None
    codes = as_truth(truth, table, (called[0], called[2]))
    names = [*table.classes, object()]  # a truth nobody ever said is never right
    return table, {
        item: names[k] for item, k in zip(table.items, codes.tolist(), strict=True) if k >= 0
    }


def _prices(path: Path | None, table: Any) -> dict[Any, float] | None:
    from venire.batch.files import read_prices

    if path is None:
        return None
    known = read_prices(path)
    missing = next((name for name in table.labelers if str(name) not in known), None)
    if missing is not None:
        raise InputError(f"{path} has no price for labeler {missing!r}: add a line for each")
    return {name: known[str(name)] for name in table.labelers}


def _batch(items: Path, panel: Path) -> tuple[Any, Any]:
    from venire.batch.files import read_batch, read_batch_panel
    from venire.cli.work import find_callable

    return read_batch(items), read_batch_panel(panel, find_callable)


def _truth(path: Path | None) -> dict[Any, Any] | None:
    from venire.files import read_verdicts

    return None if path is None else dict(read_verdicts(path))


def _write(done: Labelled, out: Path | None, report: Path | None) -> None:
    from venire.files import Output, write_outputs

    if out is not None:
        columns = ("task", "label", "confidence", "labels", "cost", "reason")
        write_outputs([Output(out, columns, done.rows())])
    if report is not None:
        done.write_report(report)


@contextmanager
def _watched() -> Iterator[Callable[[Progress], None] | None]:
    """Progress on a terminal: spend, sure items, expected accuracy, time left."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TimeElapsedColumn()
    began = time.monotonic()
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("asking (the first run compiles, some 10 s)", total=1.0)

        def watch(now: Progress) -> None:
            shown.update(task, completed=now.share or 0.0, description=_words(now, began))

        yield watch


def _words(now: Progress, began: float) -> str:
    """One line: what was spent and reached, and how long it may still take."""
    words = f"{now.labels:,} labels, {now.spent:,.6g} spent"
    if now.expected:
        words += f", {now.sure:,} sure, expected accuracy {100 * now.expected:.1f} %"
    if now.share:
        left = (time.monotonic() - began) * (1 - now.share) / now.share
        words += f", {left:.0f} s left" if left < 120 else f", {left / 60:.0f} min left"
    return words
