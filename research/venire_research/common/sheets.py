"""A table of text that can be shown on a terminal and pasted into a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Sheet", "mean", "percent", "points", "spread"]

#: Room between two columns on the terminal.
GAP: Final = 2


@dataclass(frozen=True)
class Sheet:
    """A title, a heading and rows of text; the first column is the name of a row.

    On the terminal, cells in `bold` (row, column) are bold, and a line follows the first `body`
    rows. A heading may have several lines there.

    >>> print(Sheet("Two", ("a", "b"), [["x", "1"]]).markdown())
    **Two**
    <BLANKLINE>
    | a | b |
    |-|-:|
    | x | 1 |
    <BLANKLINE>
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    bold: frozenset[tuple[int, int]] = frozenset()
    body: int | None = None

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"| {' | '.join(row)} |" for row in (self.columns, *self.rows)]
        lines.insert(1, "|-|" + "-:|" * (len(self.columns) - 1))
        return "\n".join([f"**{self.title}**", "", *lines, ""])

    def fitting(self, width: int) -> Iterator[Sheet]:
        """The table in as many pieces as it takes to fit into the width.

        >>> sheet = Sheet("Two", ("a", "bbbb", "cccc"), [["x", "1", "2"]])
        >>> [piece.columns for piece in sheet.fitting(10)]
        [['a', 'bbbb'], ['a', 'cccc']]
        """
        lines = (self.columns, *self.rows)
        wide = [max(map(_width, column)) + GAP for column in zip(*lines, strict=True)]
        room, some = width - wide[0], list[int]()
        for i in range(1, len(wide)):
            if some and wide[i] > room:
                yield self._part(some)
                room, some = width - wide[0], []
            room -= wide[i]
            some.append(i)
        yield self._part(some)

    def _part(self, some: Sequence[int]) -> Sheet:
        kept = [0, *some]
        rows = [[row[i] for i in kept] for row in self.rows]
        bold = frozenset((r, kept.index(i)) for r, i in self.bold if i in kept)
        return Sheet(self.title, [self.columns[i] for i in kept], rows, bold, self.body)

    def drawn(self) -> Table:
        """The table for the terminal."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(self.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
            show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        )  # fmt: skip
        for i, name in enumerate(self.columns):
            table.add_column(name, justify="right" if i else "left", no_wrap=True)
        for r, row in enumerate(self.rows):
            cells = [Text(x, "bold" if (r, i) in self.bold else "") for i, x in enumerate(row)]
            table.add_row(*cells, end_section=r + 1 == self.body)
        return table


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def spread(values: Sequence[float]) -> float:
    """The standard deviation; 0 for one value."""
    return stdev(values) if len(values) > 1 else 0.0


def percent(share: float | None, decimals: int = 1) -> str:
    """A share as a percentage; "-" for none.

    >>> percent(0.9034), percent(None)
    ('90.3', '-')
    """
    return "-" if share is None else f"{100 * share:.{decimals}f}"


def points(difference: float | None) -> str:
    """A difference of two shares in points, with its sign.

    >>> points(-0.0312), points(0.0)
    ('-3.1', '+0.0')
    """
    return "-" if difference is None else f"{100 * difference:+.1f}"
