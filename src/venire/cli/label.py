"""`venire label`, `venire judge`: a whole file, labelled within a budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, batches, first_given, screen, tables
from venire.cli.shared.tables import (
    BLANK,
    MERGE,
    WIDE,
    Classes,
    Reading,
    families_of,
    gold_of,
    names_of,
    prices_of,
    true_labels,
)
from venire.errors import InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    from venire.batch import BatchItem, Labelled
    from venire.connectors.judges.judge import Judge
    from venire.labels import LabelTable
    from venire.model import Budget
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


@dataclass(frozen=True, kw_only=True)
class Recorded(Reading):
    """How labels that exist already are read."""

    columns: Annotated[str | None, typer.Option(metavar="NAMES", help=COLUMNS)] = None
    wide: Annotated[bool, typer.Option("--wide", help=WIDE_HELP)] = False
    merge: Annotated[bool, typer.Option("--merge", help=MERGE_HELP)] = False
    blank: Annotated[str | None, typer.Option(metavar="NAMES", help=BLANK_HELP)] = None
    repeats: Annotated[str | None, typer.Option(metavar="WHICH", help=REPEATS)] = None
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help=CLUSTER)] = None

    def read(self, labels: PathOrAddress, classes: str | None) -> LabelTable:
        """All of them in one table."""
        from venire.labels import LabelTable
        from venire.labels.partitions import whole_table

        self.check()
        with tables.client_of(self.cluster) as client:
            read = self.partitioned(labels, client, names_of(classes), repartition=True)
            return read if isinstance(read, LabelTable) else read.gathered(whole_table)


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
    reading: Recorded,
    as_json: AsJson = False,
) -> None:
    """Label a file of items: buy the labels that pay most for their price, within a budget.

    All items are there from the start, and delay costs nothing. Interrupted with Ctrl-C, the same
    command continues where it stopped and pays for nothing twice.
    """
    from venire.batch.labelling import label_recorded, read_batch

    replayed = {f"--{name}": value for name, value in asdict(reading).items()}
    replayed |= {"--prices": prices, "--families": families}
    replayed |= {"--expert": expert, "--expert-price": expert_price}
    _check({"ITEMS": items, "--panel": panel}, recorded, out, buying, replayed)
    source = None if recorded is None else located(recorded)
    gold, promise = buying.checked(out, items, panel, source, prices, families, expert)
    options = buying.terms()
    with batches.watched() as watch:
        options["progress"] = watch
        if source is not None:
            table, called = reading.read(source, classes), reading.beside
            if buying.truth is not None:
                options["truth"] = true_labels(buying.truth, table, called)
            options["prices"] = None if prices is None else prices_of(prices, table)
            options["families"] = families_of(families, source, table, called)
            known = batches.gold_of_file(None) if gold is None else gold_of(gold, table, called)
            options |= buying.lessons(known, promise, table.items)
            if expert is not None:
                options["expert"] = true_labels(expert, table, called)
            options["expert_price"] = expert_price
            done = label_recorded(table, buying.limit(len(table.items)), **options)
        else:
            assert items is not None
            assert panel is not None
            assert out is not None
            options |= {"classes": names_of(classes), **buying.asking(out)}
            batch = read_batch(items)
            tasks = [item.id for item in batch]
            batches.say_continued(options["journal"])
            known = batches.gold_of_file(gold, tasks, options["classes"])
            options |= buying.lessons(known, promise, tasks)
            done = _ask(batch, panel, buying.limit(len(batch)), options)
    buying.conclude(done.of_day(known.day), out, promise, known, as_json)


def _check(
    files: dict[str, Path | None],
    recorded: str | None,
    out: Path | None,
    buying: batches.Buying,
    replayed: dict[str, Any],
) -> None:
    if recorded is not None:
        other = first_given({**files, "--journal": buying.journal, "--student": buying.student})
        if other is not None:
            raise InputError(f"--recorded and {other} exclude each other: drop one of them")
        return
    if None in files.values():
        raise InputError("give ITEMS and --panel, or --recorded with labels that exist already")
    other = first_given(replayed)
    if other is not None:
        raise InputError(
            f"{other} is an option of --recorded: prices and families of a panel are in its file"
        )
    if out is None:
        raise InputError("labels of a panel are paid for: give --out, the file for the verdicts")


def _ask(
    batch: Sequence[BatchItem],
    panel: Path,
    limit: Budget | None,
    options: dict[str, Any],
) -> Labelled:
    from venire.batch.asking import close_labelers
    from venire.batch.labelling import label as run
    from venire.cli.shared.callables import find_callable
    from venire.connectors.models import read_panel_of_models

    callers = read_panel_of_models(panel, find_callable)
    try:
        return run(batch, callers, limit, **options)
    finally:
        close_labelers(callers)


JUDGED = "What is judged: JSON Lines or CSV with id; a prompt may use any other field."
CONFIG = "The judges: YAML or TOML (docs/judges.md). Keys come from the environment."
DRY_RUN = "Say what all labels would cost, by the length of the prompts; ask nothing."
BATCH = "Send the questions as batches (/v1/batches): half the price, up to a day for each round."
CACHE = "Where answers are kept for other runs. [default: beside --config, with .cache]"


def judge(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help=JUDGED)],
    config: Annotated[Path, typer.Option(metavar="FILE", help=CONFIG)],
    out: Annotated[Path, typer.Option(metavar="FILE", help=batches.OUT)],
    *,
    buying: batches.Buying,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help=CACHE)] = None,
    batch: Annotated[bool, typer.Option("--batch", help=BATCH)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    as_json: AsJson = False,
) -> None:
    """Let LLM judges label a file, asking each where its answer is worth its price.

    Every judge is asked one question first: a wrong address, key or model is reported at once.
    Interrupted with Ctrl-C, the same command continues where it stopped and pays for nothing twice.
    """
    from venire.batch import label
    from venire.batch.asking import close_labelers, run_beside
    from venire.batch.labelling import check_limits, read_batch
    from venire.batch.rounds import GROWTH, IN_BATCHES
    from venire.connectors.judges.answers import Cache
    from venire.connectors.judges.batches import BatchBook
    from venire.connectors.judges.config import read_judges
    from venire.connectors.judges.panel import check_judges, judges_of
    from venire.connectors.judges.report import (
        forecast,
        judge_lines,
        judges_html,
        judges_record,
        recount_bias,
    )

    gold, promise = buying.checked(out, items, config)
    rows = read_batch(items)
    limit = buying.limit(len(rows))
    kept = Cache(config.with_suffix(".cache") if cache is None else cache, late=batch)
    book = BatchBook(out.with_name(out.name + ".batches"), screen.say) if batch else None
    panel: list[Judge] = []
    try:
        panel += judges_of(config, kept, items.parent, book)
        names = [item.id for item in rows]
        known = batches.gold_of_file(gold, names, *_classes(panel, config))
        lessons = buying.lessons(known, promise, names)
        if dry_run:
            found = forecast(panel, [item.content for item in rows])
            record = found | {"budget": limit and {"money": limit.money, "labels": limit.labels}}
            if as_json:
                print(json.dumps(record))
            else:
                print("\n".join(_forecast_lines(found, limit, batch)))
            return
        check_limits(rows, panel, limit, buying.target)
        asking = buying.asking(out)
        resumed = batches.say_continued(asking["journal"])
        for warning in run_beside(check_judges(panel, rows[0].content)):
            screen.warn(warning)
        with batches.watched() as watch:
            done = label(
                rows,
                panel,
                limit,
                **buying.terms(),
                **asking,
                **lessons,
                progress=watch,
                growth=IN_BATCHES if batch else GROWTH,
            ).of_day(known.day)
        kept.save()
        if resumed:
            run_beside(recount_bias(panel, rows, done.table))
    finally:
        close_labelers(panel)
        for file in (kept, book):
            if file is not None:
                file.close()
    record = judges_record(panel, done.table, done.codes, resumed)
    if book is not None:
        record["batches"] = book.record(read_judges(config))
    order = list(dict.fromkeys(name for one in panel for name in one.config.classes))
    buying.conclude(done, out, promise, known, as_json, record, judges_html(record), order)
    if not as_json:
        stopped = (f"stopped   {one.id}: {one.stopped}" for one in panel if one.stopped)
        print("", *judge_lines(record), *stopped, sep="\n")


def _classes(panel: Sequence[Judge], config: Path) -> tuple[list[str] | None, str]:
    """The classes of the judges, None if they are not all known, and what to do about others."""
    own = [list(judge.config.classes) for judge in panel]
    names = list(dict.fromkeys(name for some in own for name in some)) if all(own) else None
    pair = next((judge.config for judge in panel if judge.config.pair), None)
    if pair is None or pair.pair is None:
        return names, f"correct it, or add it to the classes of {config}"
    first, second, *_ = pair.classes
    return names, (
        f"{first} says that {pair.pair[0]} wins, {second} that {pair.pair[1]} does; write these in "
        f"it, or name the classes of {config}, and the answers in its prompt, as it does"
    )


def _forecast_lines(found: dict[str, Any], limit: Budget | None, batch: bool) -> Iterator[str]:
    """What all labels of all judges would cost, and what the budget allows of it."""
    for row in found["judges"]:
        priced = f"cost {row['cost']:,.6g}" if row["priced"] else "no price in the file"
        cached = f", {row['cached']:,} in the cache" if row["cached"] else ""
        yield (
            f"{row['id']}: {row['questions']:,} questions{cached}, about "
            f"{row['input_tokens']:,} + {row['output_tokens']:,} tokens, {priced}"
        )
    total = f"{found['cost']:,.6g}{' at the discount of batches' if batch else ''}"
    yield f"all judges on all {found['items']:,} items: {total}, nothing was asked"
    if limit is not None and limit.money is not None:
        yield f"--budget {limit.money:,.6g} is the most that is spent"
    if limit is not None and limit.labels is not None:
        whole = found["items"] * len(found["judges"])
        share = min(1.0, limit.labels / whole) if whole else 0.0
        yield f"{limit.labels:,} labels of {whole:,}: about {share * found['cost']:,.6g}"
