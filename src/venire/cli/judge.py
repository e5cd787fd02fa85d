"""`venire judge`: a file of answers, labelled by LLM judges within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from venire.cli import batches

__all__ = ["judge"]

ITEMS = "What is judged: JSON Lines or CSV with id; a prompt may use any other field."
CONFIG = "The judges: YAML or TOML (docs/judges.md). Keys come from the environment."
CACHE = "Where answers are kept for other runs. [default: beside --config, with .cache]"


def judge(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help=ITEMS)],
    config: Annotated[Path, typer.Option(metavar="FILE", help=CONFIG)],
    out: Annotated[Path, typer.Option(metavar="FILE", help=batches.OUT)],
    budget: Annotated[float | None, typer.Option(metavar="X", help=batches.BUDGET)] = None,
    labels: Annotated[int | None, typer.Option(metavar="N", help=batches.LABELS)] = None,
    labels_per_item: Annotated[
        float | None, typer.Option(metavar="X", help=batches.PER_ITEM)
    ] = None,
    target: Annotated[float | None, typer.Option(metavar="X", help=batches.TARGET)] = None,
    costs: Annotated[str | None, typer.Option(metavar="COSTS", help=batches.COSTS)] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.TRUTH)] = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.GOLD)] = None,
    labels_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help=batches.LABELS_OUT)
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help=batches.PROBABILITIES)
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.REPORT)] = None,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help=batches.JOURNAL)] = None,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help=CACHE)] = None,
    student: Annotated[str | None, typer.Option(metavar="FIELD", help=batches.STUDENT)] = None,
    seed: Annotated[int, typer.Option(help=batches.SEED)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Let LLM judges label a file, asking each where its answer is worth its price.

    Interrupted with Ctrl-C, the same command continues where it stopped and pays for nothing twice.
    """
    from venire.batch import label
    from venire.batch.asking import close_labelers
    from venire.batch.files import read_batch
    from venire.connectors.judges.cache import Cache
    from venire.connectors.judges.opening import judges_of
    from venire.costs import costs_of_text
    from venire.files import check_targets

    sources = [path for path in (items, config, truth, gold) if path is not None]
    check_targets([path for path in (out, labels_out) if path is not None], sources)
    batches.check_report(report)
    batch = read_batch(items)
    limit = batches.budget_of(budget, labels, labels_per_item, len(batch))
    kept = Cache(config.with_suffix(".cache") if cache is None else cache)
    try:
        panel = judges_of(config, kept)
        with batches.watched() as watch:
            done = label(
                batch,
                panel,
                limit,
                target=target,
                costs=costs_of_text(costs) if costs else None,
                seed=seed,
                journal=journal or out.with_name(out.name + ".journal"),
                truth=batches.truth_of(truth),
                progress=watch,
                student=batches.student_of(student),
                gold=batches.gold_of_file(gold),
            )
        close_labelers(panel)
    finally:
        kept.close()
    batches.write_labelled(done, out, report, probabilities, labels_out)
    batches.say_labelled(done, as_json)
    for one in panel:
        if one.stopped:
            print(f"stopped   {one.id}: {one.stopped}")
