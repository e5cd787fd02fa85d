"""The comparison on the terminal: regimes by policies, one measure at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from venire.experiments.regimes.comparison import ACCOUNTS, Row
from venire.experiments.regimes.summary import MEASURES, Measure, Table, short_names

if TYPE_CHECKING:
    from rich.table import Table as Drawn

__all__ = ["as_tables"]

#: Room for the names of regimes, and between two columns.
_NAMES = 16
_GAP = 2


class _Line(NamedTuple):
    """A line of the table: what it is called, the text for each policy, and who is best."""

    label: str
    cells: Mapping[str, str]
    best: frozenset[str] = frozenset()


def as_tables(
    rows: Sequence[Row], measure: Measure, width: int = 100, ascii_only: bool = False
) -> Iterator[Drawn]:
    """The measure for every regime, and beneath it mean, worst and ratio to Algorithm 1.

    The best policy on average stands on the left; where all do not fit into `width`, the table
    goes on in another one. The best of a line is bold.
    """
    sign = "+-" if ascii_only else "±"
    table, lead = Table.of(rows, measure), _lead(rows, measure)
    several = any(cell.spread for cell in table.cells.values())
    title = measure.title + (f", {sign} standard deviation over the seeds" if several else "")
    body = [_body(table, regime, sign) for regime in table.regimes]
    foot = list(_foot(rows, lead))
    names = {p: name.replace("-", "-\n") for p, name in short_names(table.policies).items()}
    for some in _fitting(lead.ranked(), [*body, *foot], names, width):
        yield _draw(title, body, foot, {policy: names[policy] for policy in some})


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


def _fitting(
    policies: Sequence[str], lines: Sequence[_Line], names: Mapping[str, str], width: int
) -> Iterator[list[str]]:
    """The policies in as few groups as fit into the width."""
    room, some = width - _NAMES, list[str]()
    for policy in policies:
        texts = [*names[policy].split("\n"), *(line.cells[policy] for line in lines)]
        wide = max(map(len, texts)) + _GAP
        if some and wide > room:
            yield some
            room, some = width - _NAMES, []
        room -= wide
        some.append(policy)
    yield some


def _draw(
    title: str, body: Sequence[_Line], foot: Sequence[_Line], names: Mapping[str, str]
) -> Drawn:
    from rich import box
    from rich.table import Table as Drawn

    drawn = Drawn(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
        show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    drawn.add_column("regime", no_wrap=True)
    for name in names.values():
        drawn.add_column(name, justify="right", no_wrap=True)
    for line in (*body, *foot):
        cells = [f"[bold]{line.cells[p]}[/]" if p in line.best else line.cells[p] for p in names]
        drawn.add_row(line.label, *cells, end_section=line is body[-1])
    return drawn
