"""The comparison on the terminal: regimes by policies, one measure at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from venire.experiments.regimes.summary import Table, short_names

if TYPE_CHECKING:
    from rich.table import Table as Drawn

__all__ = ["as_tables"]

#: Room for the names of regimes, and between two columns.
_NAMES = 16
_GAP = 2


def as_tables(
    table: Table, others: Sequence[Table] = (), width: int = 100, ascii_only: bool = False
) -> Iterator[Drawn]:
    """The measure with its mean and worst, and the means of other measures beneath.

    The best policy on average stands on the left; where all do not fit into `width`, the table
    goes on in another one. The best of a row is bold.
    """
    sign = "+-" if ascii_only else "±"
    names = short_names(table.policies)
    columns = {policy: _column(table, others, policy, sign) for policy in table.ranked()}
    room, some = width - _NAMES, list[str]()
    for policy, cells in columns.items():
        wide = max(len(part) for text in cells for part in text.split("\n"))
        wide = max(wide, *(len(part) for part in names[policy].split("-"))) + _GAP
        if some and wide > room:
            yield _draw(table, others, some, columns, names, sign)
            room, some = width - _NAMES, []
        room -= wide
        some.append(policy)
    yield _draw(table, others, some, columns, names, sign)


def _draw(
    table: Table,
    others: Sequence[Table],
    policies: Sequence[str],
    columns: dict[str, list[str]],
    names: dict[str, str],
    sign: str,
) -> Drawn:
    from rich import box
    from rich.table import Table as Drawn

    spread = f", {sign} standard deviation over the seeds" if _several(table) else ""
    drawn = Drawn(
        title=f"{table.measure.title}{spread}", title_justify="left", title_style="bold",
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    drawn.add_column("regime", no_wrap=True)
    for policy in policies:
        drawn.add_column(names[policy].replace("-", "-\n"), justify="right", no_wrap=True)
    for k, label in enumerate(_labels(table, others)):
        cells = [columns[policy][k] for policy in policies]
        if k < len(table.regimes):
            best = table.best(label)
            cells = [f"[bold]{c}[/]" if p in best else c
                     for p, c in zip(policies, cells, strict=True)]  # fmt: skip
        last = k == len(table.regimes) - 1
        drawn.add_row(label, *cells, end_section=last)
    return drawn


def _labels(table: Table, others: Sequence[Table]) -> list[str]:
    worst = ["worst", ""] if table.measure.better else []
    return [*table.regimes, "mean", *worst, *(f"{other.measure.name}" for other in others)]


def _column(table: Table, others: Sequence[Table], policy: str, sign: str) -> list[str]:
    measure, several = table.measure, _several(table)
    cells = []
    for regime in table.regimes:
        mean, spread = table.cells[regime, policy]
        words = measure.write(mean)
        cells.append(f"{words} {sign}{measure.write(spread)}" if several and spread else words)
    cells.append(measure.write(table.mean(policy)))
    if measure.better:
        worst = table.worst(policy)
        cells += [measure.write(worst[0]), worst[1]] if worst else ["-", ""]
    return cells + [other.measure.write(other.mean(policy)) for other in others]


def _several(table: Table) -> bool:
    return any(cell.spread for cell in table.cells.values())
