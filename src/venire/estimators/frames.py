"""Results of a fitted estimator as dataframes, tables for a notebook, and a plot of the skills."""

from __future__ import annotations

from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from venire.costs import Costs
from venire.display import COLOURS, axes_for, block, table
from venire.errors import InputError, MissingExtra, UnknownName
from venire.labels import LabelTable
from venire.labels.partitions import labels_given, vote_entropies

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.estimators.base import BaseEstimator


Backend = Literal["pandas", "polars", "pyarrow"]

_MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


def frame_of(columns: dict[str, Any], backend: Backend | None = None) -> Any:
    """Columns as a dataframe: of pandas, polars or pyarrow, or the first of them that is installed.

    >>> frame_of({"task": ["a", "b"], "label": [1, 0]}, "pandas").shape
    (2, 2)
    >>> frame_of({"task": ["a"]}, "pandsa")
    Traceback (most recent call last):
    venire.errors.UnknownName: unknown backend 'pandsa': did you mean 'pandas'? Known: ...
    """
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
) -> dict[str, list[Any]]:
    """The verdict on each item: task, label, confidence, entropy of the votes, p(class).

    With `costs`, the verdict of least expected cost; its confidence is its probability.

    >>> from venire import MajorityVote
    >>> rows = [("a", "ann", "no"), ("a", "bob", "no"), ("b", "ann", "no"), ("b", "bob", "yes")]
    >>> verdict_columns(MajorityVote().fit(rows))["entropy"]
    [0.0, 1.0]
    """
    q, said, sure = fitted.posteriors_, fitted.labels_, fitted.posteriors_.max(axis=1)
    if costs:
        said = fitted.verdicts(costs)
        code = {name: k for k, name in enumerate(fitted.classes_)}
        chosen = np.array([-1 if name is None else code[name] for name in said.values()])
        sure = np.where(chosen < 0, sure, q[np.arange(len(q)), chosen])
    columns: dict[str, list[Any]] = {
        "task": list(said),
        "label": list(said.values()),
        "confidence": sure.tolist(),
        "entropy": vote_entropies(fitted.table_).tolist(),
    }
    if probabilities:
        named = zip(fitted.classes_, q.T.tolist(), strict=True)
        columns |= {f"p({name})": values for name, values in named}
    return columns


def part_columns(
    table: LabelTable,
    posteriors: NDArray[np.float64],
    seed: int = 0,
    probabilities: bool = True,
    costs: Costs | None = None,
) -> dict[str, list[Any]]:
    """The same for a part of the items, by their posteriors.

    >>> table = LabelTable.from_matrix([[0, 0], [1, 1]])
    >>> part_columns(table, np.array([[0.75, 0.25], [0.4, 0.6]]), probabilities=False)["label"]
    [0, 1]
    """
    from venire.estimators.genie import Known

    items = table.items.tolist() if isinstance(table.items, np.ndarray) else table.items
    names = items, table.labelers, table.classes
    own = LabelTable(*names, table.start, table.labeler, table.said)
    part = Known({}, seed=seed).hold(own, posteriors)
    return verdict_columns(part, probabilities, costs)


def skill_columns(fitted: BaseEstimator, intervals: bool) -> dict[str, list[Any]]:
    """The skill of each labeler: worker, labels, skill and, if asked for, low and high.

    Where gold was learned from, also how many labels were on gold items, and how many are right.

    >>> from venire import OneCoin
    >>> rows = [("a", "ann", "no"), ("a", "bob", "no"), ("b", "ann", "yes"), ("b", "bob", "yes")]
    >>> list(skill_columns(OneCoin().fit(rows), intervals=False))
    ['worker', 'labels', 'skill']
    """
    table = fitted.table_
    columns: dict[str, list[Any]] = {
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
