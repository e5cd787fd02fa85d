"""What a fitted estimator looks like in a notebook: tables, and a plot of the skills."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from venire.display.drawing import COLOURS, axes_for
from venire.display.html import block, table
from venire.estimators.frames import skill_columns, verdict_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.estimators.base import BaseEstimator

__all__ = ["plot_skills", "shown", "shown_tables"]

Columns = dict[str, list[Any]]

#: With more labelers than this, they have no names on the plot.
NAMED: Final = 40


def shown(fitted: BaseEstimator) -> str:
    """The first verdicts and skills as tables; before `fit`, the parameters alone.

    >>> from venire import MajorityVote
    >>> text = shown(MajorityVote().fit([("a", "ann", "yes"), ("b", "ann", "no")]))
    >>> "2 labels of 2 items by 1 labelers" in text, "<th>worker</th>" in text
    (True, True)
    >>> shown(MajorityVote())
    '<div><p><strong>MajorityVote()</strong></p><p>not fitted yet</p></div>'
    """
    if "table_" not in fitted.__dict__:
        return shown_tables(fitted)
    table_ = fitted.table_
    size = (
        f"{len(table_.said):,} labels of {len(table_.items):,} items by "
        f"{len(table_.labelers):,} labelers, {len(table_.classes)} classes"
    )
    return shown_tables(fitted, size, verdict_columns(fitted), skill_columns(fitted, False))


def shown_tables(fitted: object, size: str = "not fitted yet", *tables: Columns) -> str:
    """What was fitted to how much, and the first rows of some tables."""
    return block(repr(fitted), [f"<p>{escape(size)}</p>", *map(table, tables)])


def plot_skills(fitted: BaseEstimator, axes: Axes | None = None) -> Axes:
    """The skill of each labeler with its interval, the best at the top."""
    names = [str(name) for name in fitted.table_.labelers]
    order = np.argsort(fitted.competences_, kind="stable")
    skill, (low, high) = fitted.competences_[order], fitted.skill_intervals_[order].T
    few = len(names) <= NAMED
    axes = axes_for(axes, height=max(2.0, 0.9 + 0.22 * len(names)) if few else 5.0)
    y = np.arange(len(names))
    axes.hlines(y, low, high, color=COLOURS["sky"], linewidth=2 if few else 1)
    axes.plot(skill, y, "o", color=COLOURS["blue"], markersize=4 if few else 2)
    axes.axvline(1 / len(fitted.classes_), color=COLOURS["grey"], linestyle=":", linewidth=1)
    if few:
        axes.set_yticks(y, [names[m] for m in order])
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{len(names):,} labelers")
    axes.set_xlabel("skill")
    axes.set_title(f"{type(fitted).__name__}: skills with 90 % intervals; dotted: chance")
    return axes
