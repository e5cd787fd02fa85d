"""The output files of an aggregation: the verdict on each task, the skill of each worker."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venire.costs import Costs
from venire.estimators.frames import part_columns, verdict_columns
from venire.files.results import Output
from venire.labels.counts import labels_given
from venire.labels.partitions import Partitions, pieces

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator

__all__ = ["columns_output", "skills_output", "verdicts_output"]


def verdicts_output(
    path: str | Path,
    fitted: BaseEstimator,
    probabilities: bool = False,
    costs: Costs | None = None,
    guaranteed: Collection[str] | None = None,
) -> Output:
    """The verdict on each task: task,label,confidence,entropy; also one column for each class.

    `entropy` is that of the votes, in bits: 0 where all agree. With `guaranteed`, the names of
    some tasks as text, a column says which they are: yes or no.

    >>> from venire import LabelTable, OneCoin
    >>> table = LabelTable.from_matrix([[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    >>> output = verdicts_output("v.csv", OneCoin(prior=(7, 3)).fit(table), probabilities=True)
    >>> output.columns, [row[:2] for row in output.rows]
    (('task', 'label', 'confidence', 'entropy', 'p(0)', 'p(1)'), [(0, 0), (1, 1), (2, 0)])
    """
    if isinstance(fitted.table_, Partitions):
        return _partitions_output(path, fitted, probabilities, costs)
    columns = verdict_columns(fitted, probabilities, costs)
    if guaranteed is not None:
        marks = ["yes" if str(task) in guaranteed else "no" for task in columns["task"]]
        columns["guaranteed"] = marks
    return columns_output(path, columns)._replace(classes=fitted.classes_)


def _partitions_output(
    path: str | Path, fitted: BaseEstimator, probabilities: bool, costs: Costs | None
) -> Output:
    """The same, of one partition after the other: they need not fit in memory together."""
    given = fitted.posterior_rows(), fitted.seed, probabilities, costs
    found = pieces(fitted.table_, part_columns, *given)
    columns = next(found)
    rows = (row for one in chain([columns], found) for row in zip(*one.values(), strict=True))
    return Output(Path(path), tuple(columns), rows, fitted.classes_)


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
    given = labels_given(table).tolist()
    ends = fitted.skill_intervals_.tolist()
    rows = (
        (worker, count, skill, *end)
        for (worker, skill), count, end in zip(fitted.skills_.items(), given, ends, strict=True)
    )
    return Output(Path(path), ("worker", "labels", "skill", "low", "high"), rows)
