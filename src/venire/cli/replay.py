"""`venire replay`: what another policy, panel or budget would have bought."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.stores import STORE, StorageUrl, StreamName, chosen_stream, open_guest
from venire.cli.shared.tables import gold_of
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.budget import Budget
    from venire.model import ItemId
    from venire.server.store import Storage
    from venire.whatif import Comparison, Paired, Recorded


POLICY = "Another policy, such as fixed-overlap:3. [default: as it was]"
LEARNING = "Another way of learning, such as while-serving. [default: as it was]"
WITHOUT = "A labeler who is left out; may be given several times."
BUDGET = "The most to spend: money:50 or labels:3000. Then items leave with the labels they have."
CONFIDENCE = "The confidence that a verdict must reach. [default: as it was]"
OVERLAP = "The most labels of an item. [default: as it was]"
PRICES = "What one label of each labeler costs: a file with labeler,price. [default: as in the log]"
TRUTH = "Known true labels, to measure accuracy by: a file with task,label."
GOLD = "Known true labels to learn from while it runs, each told when its item leaves: task,label."
SEEDS = "How often to run it, for policies that draw at random."
SIMULATE = "Draw the labels that the log does not hold, instead of not offering them."


def replay(
    storage: StorageUrl = STORE,
    stream: StreamName = None,
    policy: Annotated[str | None, typer.Option(metavar="TEXT", help=POLICY)] = None,
    learning: Annotated[str | None, typer.Option(metavar="TEXT", help=LEARNING)] = None,
    panel_without: Annotated[list[str] | None, typer.Option(metavar="NAME", help=WITHOUT)] = None,
    budget: Annotated[str | None, typer.Option(metavar="TEXT", help=BUDGET)] = None,
    min_confidence: Annotated[float | None, typer.Option(metavar="P", help=CONFIDENCE)] = None,
    max_labels: Annotated[int | None, typer.Option(metavar="N", help=OVERLAP)] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help=PRICES)] = None,
    truth: Annotated[Path | None, typer.Option(metavar="FILE", help=TRUTH)] = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help=SEEDS)] = 1,
    simulate_missing: Annotated[bool, typer.Option("--simulate-missing", help=SIMULATE)] = False,
    as_json: AsJson = False,
) -> None:
    """Run a recorded stream again by another policy, panel or budget, and compare.

    Items, gold, who comes when and the time that labels took are those of the log; with nothing
    changed, so are the verdicts. A labeler can be asked only for labels that the log holds. It says
    what could not be repeated, and how much that matters. The server may be running.
    """
    from venire.whatif import Plan, what_if

    without = frozenset(panel_without or ())
    plan = Plan(policy, learning, without, _budget(budget), min_confidence, max_labels)
    with open_guest(storage) as opened:
        name = chosen_stream(opened, stream)
        recorded = _recorded(opened, name)
    if prices is not None:
        from venire.files import read_prices

        recorded.prices |= read_prices(prices)
    asked: frozenset[ItemId] = frozenset()
    if gold is not None:
        from venire.labels.sources import COLUMNS

        known = gold_of(gold, recorded.table(), COLUMNS)
        plan, asked = replace(plan, gold=known.labels), known.asked
    with screen.bar(1, unit="event", last="comparing") as progress:
        found = what_if(recorded, plan, seeds, truth, simulate_missing, progress, asked)
    if as_json:
        print(json.dumps({"stream": name, **asdict(found)}, indent=2, allow_nan=False))
    else:
        _print(name, found)


def _budget(text: str | None) -> Budget | None:
    from venire.budget import Budget

    if text is None:
        return None
    what, _, amount = text.partition(":")
    try:
        value = float(amount)
    except ValueError:
        value = -1.0
    if what not in ("money", "labels") or value < 0:
        raise InputError(f"got --budget {text!r}, expected money:50 or labels:3000")
    return Budget(money=value) if what == "money" else Budget(labels=int(value))


def _recorded(storage: Storage, stream: str) -> Recorded:
    from venire.server.reports.replays import recorded_of

    with screen.working(f"reading {stream}") as working, storage.frozen():
        return recorded_of(storage, stream, lambda n: working(f"{n:,} events"))


def _print(name: str, found: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(
        f"{name}: {found.items:,} items, {found.compared:,} of them left both then and now, "
        f"{found.seeds} {'run' if found.seeds == 1 else 'runs'}"
    )
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("per item", no_wrap=True)
    for title in ("was", "would be", "change"):
        table.add_column(title, justify="right", no_wrap=True)
    for key, paired in found.measures.items():
        if key != "money" or paired.was or paired.would_be.value:
            table.add_row(*_row(key, paired, found.measured))
    console.print(table)
    console.print()
    for note in found.notes:
        console.print(note)


def _row(key: str, paired: Paired, measured: bool) -> tuple[str, str, str, str]:
    words = {"right": "right" if measured else "right (expected)", "wait": "slots to the exit"}
    scale, unit = (100, " %") if key == "right" else (1, "")
    change = paired.change
    return (
        words.get(key, key),
        f"{paired.was * scale:.2f}{unit}",
        f"{paired.would_be.value * scale:.2f} ± {paired.would_be.error * scale:.2f}{unit}",
        f"{change.value * scale:+.2f} ± {change.error * scale:.2f}{unit}",
    )
