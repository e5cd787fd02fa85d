"""The output files of an aggregation: the verdict on each task, the skill of each worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.costs import Costs
from venire.estimators.frames import verdict_columns
from venire.files.results import Output

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator

__all__ = ["columns_output", "skills_output", "verdicts_output"]


def verdicts_output(
    path: str | Path,
    fitted: BaseEstimator,
    probabilities: bool = False,
    costs: Costs | None = None,
) -> Output:
    """The verdict on each task: task,label,confidence,entropy; also one column for each class.

    `entropy` is that of the votes, in bits: 0 where all agree.

    >>> from venire import LabelTable, OneCoin
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> output = verdicts_output("v.csv", OneCoin(prior=(7, 3)).fit(table), probabilities=True)
    >>> output.columns, [row[:2] for row in output.rows]
    (('task', 'label', 'confidence', 'entropy', 'p(0)', 'p(1)'), [(0, 0), (1, 1), (2, 0)])
    """
    columns = verdict_columns(fitted, probabilities, costs)
    return columns_output(path, columns)._replace(classes=fitted.classes_)


def columns_output(path: str | Path, columns: dict[str, list[Any]]) -> Output:
    """A file of these columns.

    >>> output = columns_output("v.csv", {"task": ["a", "b"], "value": [1.5, 2.0]})
    >>> output.columns, list(output.rows)
    (('task', 'value'), [('a', 1.5), ('b', 2.0)])
    """
    return Output(Path(path), tuple(columns), zip(*columns.values(), strict=True))


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
