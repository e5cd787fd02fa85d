"""The report of a simulated run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from venire.simulation import Run

__all__ = ["print_report"]


def print_report(run: Run, seconds: float, certified: bool = False) -> None:
    """Print the report of a run; `certified` adds its share of the certificate."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    for line in _heading(run):
        console.print(line)
    console.print(_utilities(run))
    for line in [*(_certificate(run) if certified else []), *_comparison(run, seconds)]:
        console.print(line)


def _heading(run: Run) -> list[str]:
    learning = f"learning {run.learning.describe()}" if run.learning else "competences known"
    lines = [
        f"{run.policy.describe()}, {learning}: {_count(run.slots, 'slot')}, "
        f"{_count(len(run.world.panel), 'labeler')}, seed {run.world.seed}",
        "",
        f"items    {len(run.rows):,} arrived{_unfinished(run)}",
        f"labels   {len(run.touches):,}, {run.labels_per_item:.2f} per item",
        f"delay    {run.mean_delay:.2f} slots to the last label, "
        f"{run.mean_response:.2f} to the exit",
    ]
    if run.money:
        lines.append(f"money    {run.money:,.6g} spent on labels")
    if run.accuracy is not None:
        lines.append(f"verdicts {run.accuracy:.1%} right")
    if run.learning and run.learning.counts_from():
        lines.append(
            f"(delay, verdicts and utility count items from slot {run.learning.counts_from()} on)"
        )
    return [*lines, ""]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _unfinished(run: Run) -> str:
    from venire.scheduling.kernel.desk import HORIZON

    count = int((run.rows["reason"] == HORIZON).sum())
    return f", {count:,} still waiting at the end" if count else ""


def _utilities(run: Run) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("utility", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("per item", justify="right", no_wrap=True)
    table.add_column("")
    rows = [
        ("paper's", run, run.utility, "with the delay to the last label"),
        ("realised", run, run.realised_utility, "with the delay to the exit"),
        ("true", run, run.true_utility, "by right verdicts, with the delay to the exit"),
        ("genie's", run.genie, run.genie.utility, "paper's, greedy with competences known"),
    ]
    for name, whose, value, meaning in rows:
        if value is not None:
            each = value / max(1, int(whose.ledger.counts.sum()))
            table.add_row(name, f"{value:,.1f}", f"{each:.3f}", meaning)
    return table


def _certificate(run: Run) -> list[str]:
    certificate = run.certificate()
    share, realised = certificate.share(run.utility), certificate.share(run.realised_utility)
    if not certificate.items:
        return ["", "no item counts, so there is nothing to certify"]
    if share is None or realised is None:
        return ["", "nobody could have earned anything on this stream"]
    sure = (
        "the exact optimum"
        if certificate.method == "exact"
        else f"which is too high by {certificate.gap:.2%} at most"
    )
    return [
        "",
        f"at least {_down(share)} of what anyone could have earned, knowing the future "
        f"(realised: {_down(realised)})",
        f"nobody could have earned more than {certificate.bound:,.1f}, {sure}",
    ]


def _down(share: float) -> str:
    """A share rounded down, so that "at least" is true."""
    return f"{math.floor(share * 1000) / 10:.1f} %"


def _comparison(run: Run, seconds: float) -> list[str]:
    lines = ["", f"simulated in {seconds:.2f} s"]
    if run.genie is run:
        return lines
    share = "" if run.ratio is None else f", {run.ratio:.2%} of the genie's utility"
    words = f"regret   {run.regret:,.1f} (normalised {run.normalised_regret:.2f}){share}"
    return ["", words, *lines]
