"""`venire panel`: who earns their place on the panel, and who can go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import (
    Blank,
    Columns,
    FamiliesFile,
    Labels,
    Merge,
    Repeats,
    Wide,
    blank_of,
    columns_of,
    families_of,
    gold_of,
    prices_of,
    related_lines,
    repeats_of,
)
from venire.tools.addresses import located

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rich.table import Table

    from venire.panels import Estimate, PanelMember, PanelReport


PRICES = "What one label of each labeler costs: a file with labeler,price. [default: 1 for all]"
TRUTH = "Known true labels, to measure and to choose by: a file with task,label."
WANT = "The accuracy that the cheapest panel must have. [default: that of all, less --lose]"
MOST = "In place of --want: the most that its labels may cost; the best panel at that price."
LOSE = "The expected accuracy that may be lost without --want. [default: 0.005]"
SEED = "Seed of the fits."

#: The most names in a row of copies or relatives.
NAMED = 2


def panel(
    labels: Labels,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help=PRICES)] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", "--gold", metavar="FILE", help=TRUTH)
    ] = None,
    families: FamiliesFile = None,
    want: Annotated[float | None, typer.Option(metavar="X", help=WANT)] = None,
    most: Annotated[float | None, typer.Option(metavar="X", help=MOST)] = None,
    lose: Annotated[float | None, typer.Option(metavar="X", help=LOSE)] = None,
    columns: Columns = None,
    wide: Wide = False,
    merge: Merge = False,
    blank: Blank = None,
    repeats: Repeats = "error",
    seed: Annotated[int, typer.Option(metavar="N", help=SEED)] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure what each labeler brings and costs, and find the cheapest panel that is good enough.

    The labels are replayed without each labeler, and without more and more of them. The truth, if
    given, decides who can go, and measures what that changes on tasks that had no part in it.
    """
    from venire.labels.sources import COLUMNS, as_table
    from venire.panels import panel_report
    from venire.panels.report import LOSE

    called, kept = columns_of(columns, COLUMNS, wide), repeats_of(repeats)
    source = located(labels)
    with screen.working(f"reading {source.name}") as working:
        form: dict[str, Any] = {"wide": wide, "merge": merge, "blank": blank_of(blank)}
        table = as_table(source, None, kept, called, tell=screen.say, **form)
        called = COLUMNS if wide else called  # the truth has no columns of judges
        priced = None if prices is None else prices_of(prices, table)
        known = None if truth is None else gold_of(truth, table, called, others=True)
        report = panel_report(
            table,
            priced,
            None if known is None else known.labels,
            want,
            lose=LOSE if lose is None else lose,
            seed=seed,
            progress=lambda fits: working(f"{fits:,} replays"),
            families=families_of(families, source, table, called),
            most=most,
            asked=() if known is None else known.asked,
        )
    if as_json:
        print(json.dumps(report.record(), indent=2, allow_nan=False, default=str))
    else:
        _print(report, prices is not None, most)


def _print(report: PanelReport, priced: bool, most: float | None) -> None:
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True, width=1000)
    by = "by the truth" if report.measured else "expected, by the calibrated posteriors"
    console.print(
        f"{len(report.members):,} labelers, {report.items:,} tasks, {report.labels:,} labels, "
        f"cost {report.cost:,.6g}{'' if priced else ' (1 a label)'}; "
        f"accuracy {_percent(report.accuracy)} ({by})"
    )
    console.print()
    console.print(_table(report))
    console.print()
    against = () if report.against is None else (report.against.words,)
    for line in (
        *_asked(report),
        *against,
        *related_lines(report.relations),
        *_advice(report, most),
    ):
        console.print(line)


def _table(report: PanelReport) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    heads = ["labeler", "skill", "price", "share", "cost", "without it", "second label"]
    told = any(m.known for m in report.members)
    heads[2:2] = ["right on gold"] if told else []
    kappa = None if report.against is None else report.against.kappa
    for name in (*heads, *(() if kappa is None else ("kappa", "leans to")), ""):
        words = name in ("labeler", "")
        table.add_column(name, justify="left" if words else "right", no_wrap=True)
    for m in sorted(report.members, key=lambda m: (not m.stays, -m.skill)):
        notes = [] if m.stays else ["can go"]
        notes += _relatives(m)
        table.add_row(
            str(m.labeler),
            f"{m.skill:.2f} ({m.low:.2f} to {m.high:.2f})",
            *([f"{m.right:,} of {m.known:,}"] if told else []),
            f"{m.price:.4g}",
            f"{m.share * 100:.1f} %",
            f"{m.cost:,.6g}",
            _percent(m.without, signed=True),
            _percent(m.second, signed=True),
            *_against(report, m.labeler),
            ", ".join(notes),
        )
    return table


def _asked(report: PanelReport) -> list[str]:
    """That known labels which were asked for measure nothing."""
    if not report.asked:
        return []
    all_of_them = "" if report.measured else ", so accuracy is what is expected"
    return [
        f"{report.asked:,} of the known labels were asked for (drawn is asked): they teach the "
        f"skills, and as no random sample measure nothing{all_of_them}; venire audit draw draws at "
        "random"
    ]


def _against(report: PanelReport, labeler: Hashable) -> tuple[str, ...]:
    """Kappa with the truth, and the class that a labeler says most too often."""
    if report.against is None:
        return ()
    kappa, lean = report.against.kappa.get(labeler), report.against.leaning.get(labeler, {})
    most = max(lean, key=lambda k: lean[k], default=None)
    leans = "-" if most is None or lean[most] <= 0 else f"{most} {100 * lean[most]:+.1f} %"
    return "-" if kappa is None else f"{kappa:.2f}", leans


def _relatives(member: PanelMember) -> list[str]:
    """With whom a labeler shares errors, by the closest relation."""
    named = {"copy of": member.copies, "family of": member.family, "like": member.similar}
    return [f"{how} {_named(names)}" for how, names in named.items() if names][:1]


def _named(names: tuple[Hashable, ...]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(str(name) for name in names[:NAMED]) + more


def _advice(report: PanelReport, most: float | None) -> list[str]:
    stay = len(report.members) - len(report.can_go)
    asked = f"accuracy {100 * report.want:.2f} %" if most is None else f"at most {most:,.6g}"
    if not report.reached:
        none = "by any panel found" if report.measured else "even by all of them"
        return [f"{asked} is not reached, {none}"]
    saved = 1 - report.cheapest / report.cost if report.cost else 0.0
    lines = [
        f"{asked}: {stay} labelers for {report.cheapest:,.6g}, {saved * 100:.0f} % less; "
        f"expected change {_percent(report.expected, signed=True)}"
        + (_elsewhere(report) if report.measured else "")
    ]
    best = report.best_again
    if best.second.value > 0:
        lines.append(
            f"a second label of {best.labeler} for every task would bring up to "
            f"{_percent(best.second, signed=True)}, if its errors were independent of the first"
        )
    return lines


def _elsewhere(report: PanelReport) -> str:
    """What the advice changes on tasks that had no part in it."""
    if report.change.value or report.change.error or not report.expected.value:
        return f", on other tasks {_percent(report.change, signed=True)}"
    return ", on other tasks not known: by half of the known labels no verdict would change"


def _percent(estimate: Estimate, signed: bool = False) -> str:
    """A share as a percentage, with its standard error.

    >>> from venire.panels import Estimate
    >>> _percent(Estimate(-0.0123, 0.004), signed=True)
    '-1.23 ± 0.40 %'
    """
    sign = "+" if signed else ""
    return f"{estimate.value * 100:{sign}.2f} ± {estimate.error * 100:.2f} %"
