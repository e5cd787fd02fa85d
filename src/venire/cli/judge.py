"""`venire judge`: a file of answers, labelled by LLM judges within a budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, batches, screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from venire.budget import Budget
    from venire.connectors.judges.judge import Judge


ITEMS = "What is judged: JSON Lines or CSV with id; a prompt may use any other field."
CONFIG = "The judges: YAML or TOML (docs/judges.md). Keys come from the environment."
DRY_RUN = "Say what all labels would cost, by the length of the prompts; ask nothing."
BATCH = "Send the questions as batches (/v1/batches): half the price, up to a day for each round."
CACHE = "Where answers are kept for other runs. [default: beside --config, with .cache]"


def judge(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help=ITEMS)],
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
    from venire.connectors.judges.panel import judges_of
    from venire.connectors.judges.report import (
        check_judges,
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
        batches.check_promise(promise, names, known)
        batches.warn_target(buying.target, known)
        if dry_run:
            found = forecast(panel, [item.content for item in rows])
            return _say_forecast(found, limit, as_json, batch)
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
                progress=watch,
                gold=known.labels or None,
                asked=known.asked,
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
    said = judges_record(panel, done.table, done.codes, resumed)
    if book is not None:
        said["batches"] = book.record(read_judges(config))
    held = batches.kept_promise(promise, done, known)
    order = list(dict.fromkeys(name for one in panel for name in one.config.classes))
    more = judges_html(said)
    batches.write_labelled(done, out, buying, more, held, order)
    batches.say_labelled(done, as_json, said, held)
    if as_json:
        return
    print()
    for line in judge_lines(said):
        print(line)
    for one in panel:
        if one.stopped:
            print(f"stopped   {one.id}: {one.stopped}")


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


def _say_forecast(found: dict[str, Any], limit: Budget | None, as_json: bool, batch: bool) -> None:
    """What all labels of all judges would cost, and what the budget allows of it."""
    if as_json:
        print(
            json.dumps(found | {"budget": limit and {"money": limit.money, "labels": limit.labels}})
        )
        return
    for row in found["judges"]:
        priced = f"cost {row['cost']:,.6g}" if row["priced"] else "no price in the file"
        cached = f", {row['cached']:,} in the cache" if row["cached"] else ""
        print(
            f"{row['id']}: {row['questions']:,} questions{cached}, about "
            f"{row['input_tokens']:,} + {row['output_tokens']:,} tokens, {priced}"
        )
    total = f"{found['cost']:,.6g}{' at the discount of batches' if batch else ''}"
    print(f"all judges on all {found['items']:,} items: {total}, nothing was asked")
    if limit is not None and limit.money is not None:
        print(f"--budget {limit.money:,.6g} is the most that is spent")
    if limit is not None and limit.labels is not None:
        whole = found["items"] * len(found["judges"])
        share = min(1.0, limit.labels / whole) if whole else 0.0
        print(f"{limit.labels:,} labels of {whole:,}: about {share * found['cost']:,.6g}")
