"""What an aggregation leaves behind: the verdict on each task, the skill of each worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.datasets.results import Output

if TYPE_CHECKING:
    from venire.competence.base import BaseEstimator

__all__ = ["skills_output", "verdicts_output"]


def verdicts_output(path: str | Path, fitted: BaseEstimator, probabilities: bool = False) -> Output:
    """The verdict on each task: task,label,confidence; also one column for each class.

    >>> from venire import LabelTable, OneCoin
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> output = verdicts_output("v.csv", OneCoin(prior=(7, 3)).fit(table), probabilities=True)
    >>> output.columns, [row[:2] for row in output.rows]
    (('task', 'label', 'confidence', 'p(0)', 'p(1)'), [(0, 0), (1, 1), (2, 0)])
    """
    more = [f"p({name})" for name in fitted.table_.classes] if probabilities else []
    columns = ("task", "label", "confidence", *more)
    return Output(Path(path), columns, _verdicts(fitted, probabilities))


def _verdicts(fitted: BaseEstimator, probabilities: bool) -> Iterator[tuple[Any, ...]]:
    rows = zip(fitted.labels_.items(), fitted.posteriors_.tolist(), strict=True)
    for (task, label), q in rows:
        yield (task, label, max(q), *(q if probabilities else ()))


def skills_output(path: str | Path, fitted: BaseEstimator) -> Output:
    """The skill of each worker: worker,labels,skill,low,high.

    `skill` is the probability that a label of theirs is right, `low` and `high` its 90 %
    interval.

    >>> from venire import LabelTable, OneCoin
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> [row[:2] for row in skills_output("s.csv", OneCoin(prior=(7, 3)).fit(table)).rows]
    [(0, 3), (1, 3), (2, 3)]
    """
    table = fitted.table_
    given = np.bincount(table.labeler, minlength=len(table.labelers)).tolist()
    ends = fitted.skill_intervals_.tolist()
    rows = (
        (worker, count, skill, *end)
        for (worker, skill), count, end in zip(fitted.skills_.items(), given, ends, strict=True)
    )
    return Output(Path(path), ("worker", "labels", "skill", "low", "high"), rows)
