"""`venire judge`: a file of answers, labelled by LLM judges within a budget."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli.batches import (
    BUDGET,
    COSTS,
    JOURNAL,
    LABELS,
    OUT,
    PER_ITEM,
    REPORT,
    SEED,
    TARGET,
    TRUTH,
    budget_of,
    check_report,
    costs_of,
    say_labelled,
    truth_of,
    watched,
    write_labelled,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from venire.connectors.judges.opening import AnyJudge

__all__ = ["judge"]

ITEMS = "What is judged: JSON Lines or CSV with id; a prompt may use any other field."
CONFIG = "The judges: YAML or TOML (docs/judges.md). Keys come from the environment."
CACHE = "Where answers are kept for other runs. [default: beside --config, with .cache]"


def judge(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help=ITEMS)],
    config: Annotated[Path, typer.Option(metavar="FILE", help=CONFIG)],
    out: Annotated[Path, typer.Option(metavar="FILE", help=OUT)],
    budget: Annotated[float | None, typer.Option(metavar="X", help=BUDGET)] = None,
    labels: Annotated[int | None, typer.Option(metavar="N", help=LABELS)] = None,
    labels_per_item: Annotated[float | None, typer.Option(metavar="X", help=PER_ITEM)] = None,
    target: Annotated[float | None, typer.Option(metavar="X", help=TARGET)] = None,
    costs: Annotated[list[str] | None, typer.Option(metavar="COST", help=COSTS)] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help=REPORT)] = None,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help=JOURNAL)] = None,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help=CACHE)] = None,
    seed: Annotated[int, typer.Option(help=SEED)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Let LLM judges label a file, asking each where its answer is worth its price.

    Interrupted with Ctrl-C, the same command continues where it stopped and pays for nothing twice.
    """
    from venire.batch import label
    from venire.batch.files import read_batch
    from venire.connectors.judges.cache import Cache
    from venire.connectors.judges.opening import judges_of
    from venire.files import check_targets

    check_targets([out], [path for path in (items, config, truth) if path is not None])
    check_report(report)
    batch = read_batch(items)
    limit = budget_of(budget, labels, labels_per_item, len(batch))
    kept = Cache(config.with_suffix(".cache") if cache is None else cache)
    try:
        panel = judges_of(config, kept)
        with watched() as watch:
            done = label(
                batch,
                panel,
                limit,
                target=target,
                costs=costs_of(costs),
                seed=seed,
                journal=journal or out.with_name(out.name + ".journal"),
                truth=truth_of(truth),
                progress=watch,
            )
        asyncio.run(_close(panel))
    finally:
        kept.close()
    write_labelled(done, out, report)
    say_labelled(done, as_json)
    for one in panel:
        if one.stopped:
            print(f"stopped   {one.id}: {one.stopped}")


async def _close(panel: Sequence[AnyJudge]) -> None:
    await asyncio.gather(*(one.close() for one in panel))
