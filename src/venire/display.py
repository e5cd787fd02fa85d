"""How results look in a notebook: tables in HTML, for `_repr_html_`, and what plots share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from venire.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "SHOWN", "axes_for", "block", "cell", "facts", "require_matplotlib", "table"]


#: How many rows of a table are shown.
SHOWN: Final = 10


def cell(value: Any) -> str:
    """A value as a cell of a table: numbers on the right, nothing for None.

    >>> cell(0.123456), cell("<b>")
    ('<td style="text-align:right">0.123</td>', '<td style="text-align:left">&lt;b&gt;</td>')
    """
    side = "right" if isinstance(value, int | float) else "left"
    return f'<td style="text-align:{side}">{escape(_text(value))}</td>'


def _text(value: Any) -> str:
    """A value in a few characters.

    >>> [_text(x) for x in (1234567.8, 12.3456, 1.0, 3e-6, 20_000, None, "yes")]
    ['1,234,568', '12.35', '1', '0.000', '20,000', '', 'yes']
    """
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if 0 < abs(value) < 1:
        return f"{value:.3f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def table(columns: Mapping[str, Sequence[Any]], shown: int = SHOWN) -> str:
    """Columns of the same length as a table of their first rows.

    >>> table({"item": ["a", "b", "c"]}, shown=2)
    '<table><thead><tr><th>item</th></tr></thead><tbody>...</tbody></table><p>... and 1 more</p>'
    """
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    lists = list(columns.values())
    length = len(lists[0]) if lists else 0
    rows = ("".join(cell(column[i]) for column in lists) for i in range(min(length, shown)))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    more = f"<p>... and {length - shown:,} more</p>" if length > shown else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def facts(pairs: Mapping[str, Any]) -> str:
    """Names and values, one pair a row.

    >>> facts({"items": 3})
    '<table><tbody><tr><th style="text-align:left">items</th><td ...>3</td></tr></tbody></table>'
    """
    rows = (
        f'<tr><th style="text-align:left">{escape(name)}</th>{cell(value)}</tr>'
        for name, value in pairs.items()
    )
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def block(title: str, parts: Iterable[str]) -> str:
    """A title over some tables.

    >>> block("A & B", [])
    '<div><p><strong>A &amp; B</strong></p></div>'
    """
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


#: Okabe and Ito's colours, which colour-blind eyes tell apart.
COLOURS: Final = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "red": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#7F7F7F",
}


def require_matplotlib(extra: str = "plot") -> None:
    """Raise an error that says which extra to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", extra) from None


def axes_for(axes: Axes | None, width: float = 6.4, height: float = 3.6) -> Axes:
    """These axes; without any, new ones of this size in inches, which a notebook shows.

    >>> axes_for(None).get_figure().get_size_inches().tolist()
    [6.4, 3.6]
    """
    require_matplotlib()
    if axes is None:
        from matplotlib import pyplot

        drawn: Any = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
        axes = drawn
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
