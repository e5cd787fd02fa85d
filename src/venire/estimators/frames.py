"""Results as dataframes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from venire.costs import Costs
from venire.errors import InputError, MissingExtra, UnknownName
from venire.labels.entropy import vote_entropies

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator

__all__ = ["Backend", "frame_of", "skill_columns", "verdict_columns"]

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


def skill_columns(fitted: BaseEstimator, intervals: bool) -> dict[str, list[Any]]:
    """The skill of each labeler: worker, labels, skill and, if asked for, low and high.

    >>> from venire import OneCoin
    >>> rows = [("a", "ann", "no"), ("a", "bob", "no"), ("b", "ann", "yes"), ("b", "bob", "yes")]
    >>> list(skill_columns(OneCoin().fit(rows), intervals=False))
    ['worker', 'labels', 'skill']
    """
    table = fitted.table_
    columns: dict[str, list[Any]] = {
        "worker": list(fitted.skills_),
        "labels": np.bincount(table.labeler, minlength=len(table.labelers)).tolist(),
        "skill": fitted.competences_.tolist(),
    }
    if intervals:
        columns["low"], columns["high"] = fitted.skill_intervals_.T.tolist()
    return columns
