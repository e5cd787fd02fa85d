"""The comparison on the terminal: regimes by policies, one measure at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from venire_research.common.sheets import Sheet
from venire_research.regimes.comparison import ACCOUNTS, Row
from venire_research.regimes.summary import MEASURES, Measure, Table, short_names

if TYPE_CHECKING:
    from rich.table import Table as Drawn

__all__ = ["as_tables"]


class _Line(NamedTuple):
    """A line of the table: what it is called, the text for each policy, and who is best."""

    label: str
    cells: Mapping[str, str]
    best: frozenset[str] = frozenset()


def as_tables(
    rows: Sequence[Row], measure: Measure, width: int = 100, ascii_only: bool = False
) -> list[Drawn]:
    """The measure for every regime, and beneath it mean, worst and ratio to Algorithm 1.

    The best policy on average is on the left; if not all policies fit into `width`, there are
    several tables. The best of a line is bold.
    """
    sign = "+-" if ascii_only else "±"
    table, lead = Table.of(rows, measure), _lead(rows, measure)
    several = any(cell.spread for cell in table.cells.values())
    title = measure.title + (f", {sign} standard deviation over the seeds" if several else "")
    body = [_body(table, regime, sign) for regime in table.regimes]
    foot = list(_foot(rows, lead))
    names, ranked = short_names(table.policies), lead.ranked()
    lines = [*body, *foot]
    sheet = Sheet(
        title,
        ["regime", *(names[p].replace("-", "-\n") for p in ranked)],
        [[line.label, *(line.cells[p] for p in ranked)] for line in lines],
        frozenset((r, ranked.index(p) + 1) for r, line in enumerate(lines) for p in line.best),
        len(body),
    )
    return [piece.drawn() for piece in sheet.fitting(width)]


def _lead(rows: Sequence[Row], measure: Measure) -> Table:
    """By what the policies are ranked: sums of utility depend on the size of a regime."""
    table = Table.of(rows, measure)
    if measure.name not in ACCOUNTS:
        return table
    share, ratio = (Table.of(rows, MEASURES[name]) for name in ACCOUNTS[measure.name])
    return ratio if share.empty() else share


def _body(table: Table, regime: str, sign: str) -> _Line:
    write, cells = table.measure.write, {}
    for policy in table.policies:
        mean, spread = table.cells[regime, policy]
        cells[policy] = f"{write(mean)} {sign}{write(spread)}" if spread else write(mean)
    return _Line(regime, cells, table.best(regime))


def _foot(rows: Sequence[Row], lead: Table) -> Iterator[_Line]:
    policies, write, name = lead.policies, lead.measure.write, lead.measure.name
    what = {"share": "share", "realised_share": "share", "true_share": "share"}.get(name, "")
    yield _Line(f"mean {what}".strip(), {p: write(lead.mean(p)) for p in policies})
    if lead.measure.better:
        worst = {p: lead.worst(p) for p in policies}
        yield _Line(
            f"worst {what}".strip(), {p: write(w[0]) if w else "-" for p, w in worst.items()}
        )
        yield _Line("... in", {p: w[1] if w else "" for p, w in worst.items()})
    for share, ratio in ACCOUNTS.values():
        if name == share:
            other = Table.of(rows, MEASURES[ratio])
            yield _Line(
                "ratio to greedy", {p: other.measure.write(other.mean(p)) for p in policies}
            )
