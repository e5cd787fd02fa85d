"""Results of a fitted estimator as dataframes, tables for a notebook, and a plot of the skills."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import replace
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from venire.costs import Costs
from venire.display import COLOURS, axes_for, block, table
from venire.errors import InputError, MissingExtra, UnknownName
from venire.estimators.base import Parameters, verdicts_of
from venire.labels import LabelTable
from venire.labels.partitions import labels_given, vote_entropies
from venire.tools.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.estimators.base import BaseEstimator


Backend = Literal["pandas", "polars", "pyarrow"]

Columns = dict[str, list[Any]]

_MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame_of(columns: dict[str, Any], backend: Backend | None = None) -> Any:
    """Columns as a dataframe: of pandas, polars or pyarrow, or the first that is installed."""
    if backend is not None and backend not in _MAKERS:
        raise UnknownName("backend", backend, _MAKERS)
    wanted: str = backend or next(filter(find_spec, _MAKERS), "pyarrow")
    try:
        module = import_module(wanted)
    except ImportError:
        if wanted == "pyarrow":
            raise MissingExtra(wanted, "data") from None
        raise InputError(
            f"{wanted} is not installed: pip install {wanted}, or take another backend"
        ) from None
    return getattr(module, _MAKERS[wanted])(columns)


def verdict_columns(
    fitted: BaseEstimator, probabilities: bool = True, costs: Costs | None = None
) -> Columns:
    """The verdict on each item: task, label, confidence, entropy of the votes, p(class).

    With `costs`, the verdict of least expected cost; its confidence is its probability.

    """
    said = fitted.verdicts(costs) if costs else fitted.labels_
    return _verdict_columns(fitted.table_, fitted.posteriors_, said, probabilities, bool(costs))


def part_columns(
    table: LabelTable,
    posteriors: Floats,
    seed: int = 0,
    probabilities: bool = True,
    costs: Costs | None = None,
) -> Columns:
    """The same for a part of the items, by their posteriors."""
    if isinstance(table.items, np.ndarray):
        table = replace(table, items=table.items.tolist())
    said = verdicts_of(table, posteriors, seed, costs)
    return _verdict_columns(table, posteriors, said, probabilities, bool(costs))


def _verdict_columns(
    table: LabelTable,
    posteriors: Floats,
    said: dict[Hashable, Hashable],
    probabilities: bool,
    costly: bool,
) -> Columns:
    sure = posteriors.max(axis=1)
    if costly:
        code = {name: k for k, name in enumerate(table.classes)}
        chosen = np.array([-1 if name is None else code[name] for name in said.values()])
        sure = np.where(chosen < 0, sure, posteriors[np.arange(len(sure)), chosen])
    columns: Columns = {
        "task": list(said),
        "label": list(said.values()),
        "confidence": sure.tolist(),
        "entropy": vote_entropies(table).tolist(),
    }
    if probabilities:
        named = zip(table.classes, posteriors.T.tolist(), strict=True)
        columns |= {f"p({name})": values for name, values in named}
    return columns


def skill_columns(fitted: BaseEstimator, intervals: bool) -> Columns:
    """The skill of each labeler: worker, labels, skill and, if asked for, low and high.

    Where gold was learned from, also how many labels were on gold items, and how many are right.
    """
    table = fitted.table_
    columns: Columns = {
        "worker": list(fitted.skills_),
        "labels": labels_given(table).tolist(),
        "skill": fitted.competences_.tolist(),
    }
    if intervals:
        columns["low"], columns["high"] = fitted.skill_intervals_.T.tolist()
    told: Any = getattr(fitted, "told_skills_", None)
    if told is not None:
        columns["gold"], columns["right"] = told.known.tolist(), told.right.tolist()
    return columns


class Valued(Parameters):
    """What estimators of values or scores share: the items and the labelers as dataframes."""

    @abstractmethod
    def value_columns(self) -> Columns:
        """The columns of `to_frame`."""

    @abstractmethod
    def labeler_columns(self) -> Columns:
        """The columns of `skills_frame`."""

    @abstractmethod
    def _size(self) -> str | None:
        """To how much it was fitted, in words; None before `fit`."""

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The values as a dataframe, with the columns of `value_columns`."""
        return frame_of(self.value_columns(), backend)

    def skills_frame(self, backend: Backend | None = None) -> Any:
        """The labelers as a dataframe, with the columns of `labeler_columns`."""
        return frame_of(self.labeler_columns(), backend)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first values and labelers."""
        size = self._size()
        if size is None:
            return shown_tables(self)
        return shown_tables(self, size, self.value_columns(), self.labeler_columns())


#: With more labelers than this, they have no names on the plot.
NAMED: Final = 40


def shown(fitted: BaseEstimator) -> str:
    """The first verdicts and skills as tables; before `fit`, the parameters alone."""
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
