"""`venire panel`: who earns their place on the panel, and who can go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import (
    FamiliesFile,
    Labels,
    Reading,
    families_of,
    gold_of,
    prices_of,
    related_lines,
)
from venire.tools.addresses import located

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rich.table import Table

    from venire.panels import Estimate, PanelMember, PanelReport


PRICES = "What one label of each labeler costs: a file with labeler,price. [default: 1 for all]"
TRUTH = "Known true labels, to measure and to choose by: a file with task,label."
WANT = "The accuracy that the cheapest panel must have. [default: that of all, less --lose]"
MOST = "In place of --want: find the best panel whose labels cost at most this."
LOSE = "Without --want: how much expected accuracy may be lost. [default: 0.005]"
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
    *,
    reading: Reading,
    seed: Annotated[int, typer.Option(metavar="N", help=SEED)] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure what each labeler brings and costs, and find the cheapest panel that is good enough.

    The labels are replayed without each labeler in turn, and with ever fewer of them. The truth, if
    given, decides who can go, and measures what that changes on tasks that had no part in it.
    """
    from venire.files.audits import KnownLabels
    from venire.panels import panel_report
    from venire.panels.report import LOSE

    reading.check()
    source = located(labels)
    with screen.working(f"reading {source.name}") as working:
        table = reading.table(source)
        priced = None if prices is None else prices_of(prices, table)
        known = KnownLabels({})
        if truth is not None:
            known = gold_of(truth, table, reading.beside, others=True)
        report = panel_report(
            table,
            priced,
            None if truth is None else known.labels,
            want,
            lose=LOSE if lose is None else lose,
            seed=seed,
            progress=lambda fits: working(f"{fits:,} replays"),
            families=families_of(families, source, table, reading.beside),
            most=most,
            asked=known.asked,
        )
    lines = _lines(report, prices is not None, most)
    screen.show(report.record, lines, as_json, width=1000, default=str)


def _lines(report: PanelReport, priced: bool, most: float | None) -> Iterator[str | Table]:
    by = "by the truth" if report.measured else "expected, by the calibrated posteriors"
    yield (
        f"{len(report.members):,} labelers, {report.items:,} tasks, {report.labels:,} labels, "
        f"cost {report.cost:,.6g}{'' if priced else ' (1 a label)'}; "
        f"accuracy {_percent(report.accuracy)} ({by})"
    )
    yield ""
    yield _table(report)
    yield ""
    yield from _asked(report)
    if report.against is not None:
        yield report.against.words
    yield from related_lines(report.relations)
    yield from _advice(report, most)


def _table(report: PanelReport) -> Table:
    on_gold = any(m.known for m in report.members)
    heads = ["labeler", "skill", *(["right on gold"] if on_gold else []), "price", "share", "cost"]
    heads += ["without it", "second label", *(["kappa", "leans to"] if report.against else []), ""]
    rows = (
        (
            str(m.labeler),
            f"{m.skill:.2f} ({m.low:.2f} to {m.high:.2f})",
            *([f"{m.right:,} of {m.known:,}"] if on_gold else []),
            f"{m.price:.4g}",
            f"{m.share * 100:.1f} %",
            f"{m.cost:,.6g}",
            _percent(m.without, signed=True),
            _percent(m.second, signed=True),
            *_against(report, m.labeler),
            ", ".join([*([] if m.stays else ["can go"]), *_relatives(m)]),
        )
        for m in sorted(report.members, key=lambda m: (not m.stays, -m.skill))
    )
    return screen.table(heads, rows, words=("",))


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
