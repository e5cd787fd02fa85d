"""What is known of the truth for a table of labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable
from venire.labels.partitions import Partitions, Table
from venire.labels.sources.build import Blame, coded_columns
from venire.labels.sources.coding import Coded, first_row
from venire.labels.sources.files import is_path
from venire.labels.sources.ordered import coded_numbers
from venire.labels.sources.sheets import TRUTH_COLUMNS
from venire.labels.sources.text import like

__all__ = ["TRUTH_COLUMNS", "as_true_values", "as_truth", "truth_of"]


def as_truth(truth: Any, table: Table, columns: Sequence[str] = TRUTH_COLUMNS) -> Any:
    """The class of each item of a table, as its index; -1 where the truth is not known.

    Parameters
    ----------
    truth
        A dict from task to class, or a table with the columns task and label in any form that
        `as_table` takes. It may cover only some of the tasks, and also others.
    table : LabelTable or Partitions
        The labels.
    columns
        What the columns of task and label are called.

    Returns
    -------
    array of items, spread over the partitions if there are any
        A class that is not in the table, because nobody ever said it, has the index K.

    Examples
    --------
    >>> table = LabelTable.from_rows([("a", "ann", "yes"), ("b", "ann", "no")])
    >>> as_truth({"b": "no", "z": "yes"}, table).tolist()
    [-1, 0]
    """
    if isinstance(table, Partitions):
        return _spread_truth(truth, table, columns)
    item, label, _ = _read(truth, table, columns)
    names = like(label.names, table.classes) if is_path(truth) else tuple(label.names)
    right = _places(names, table.classes, len(table.classes))[label.codes]
    found = np.full(len(table.items), -1, np.int64)
    found[item[item >= 0]] = right[item >= 0]
    return found


def _spread_truth(truth: Any, table: Partitions, columns: Sequence[str]) -> Any:
    (task, label), blame = _columns(truth, columns)
    some = table.gathered(_one_item).items
    items, names = tuple(task.names), tuple(label.names)
    if is_path(truth):
        items, names = like(items, some), like(names, table.classes)
    right = np.full(len(items), -1, np.int64)
    right[task.codes] = _places(names, table.classes, len(table.classes))[label.codes]
    known = dict(zip(items, right.tolist(), strict=True))
    found = table.each(_looked_up, known)
    if not table.total(_count_known, found):
        raise blame(None, f"none of its tasks is among the labels', such as {some[0]!r}")
    return found


def _one_item(table: LabelTable, first: int) -> LabelTable:
    start = table.start[: 2 if len(table.items) else 1]
    labels = slice(0, int(start[-1]))
    names = table.items[: len(start) - 1], table.labelers, table.classes
    return LabelTable(*names, start, table.labeler[labels], table.said[labels])


def _looked_up(table: LabelTable, known: Mapping[Any, int]) -> NDArray[np.int64]:
    return np.fromiter((known.get(name, -1) for name in table.items), np.int64, len(table.items))


def _count_known(table: LabelTable, codes: NDArray[np.int64]) -> int:
    return int((codes >= 0).sum())


def as_true_values(
    truth: Any, table: LabelTable, columns: Sequence[str] = TRUTH_COLUMNS
) -> NDArray[np.float64]:
    """The true number of each item of a table of ratings, nan where it is not known.

    >>> table = LabelTable.from_rows([("a", "ann", 1.5), ("b", "ann", 2.0)])
    >>> as_true_values({"b": 2.5}, table).tolist()
    [nan, 2.5]
    """
    item, label, blame = _read(truth, table, columns)
    values = coded_numbers(label, columns[1], blame)
    found = np.full(len(table.items), np.nan)
    found[item[item >= 0]] = values[label.codes][item >= 0]
    return found


def _read(
    truth: Any, table: LabelTable, columns: Sequence[str]
) -> tuple[NDArray[np.int64], Coded, Blame]:
    """The item of each row, -1 for others, and what it is said to be."""
    (task, label), blame = _columns(truth, columns)
    names = like(task.names, table.items) if is_path(truth) else tuple(task.names)
    item = _places(names, table.items, -1)[task.codes]
    if not (item >= 0).any():
        raise blame(None, f"none of its tasks is among the labels', such as {table.items[0]!r}")
    return item, label, blame


def _columns(truth: Any, columns: Sequence[str]) -> tuple[list[Coded], Blame]:
    """Tasks and labels, which do not contradict each other."""
    if isinstance(truth, Mapping) and not all(column in truth for column in columns):
        truth = list(truth.items())
    (task, label), blame = coded_columns(truth, columns, "truths")
    row = _contradiction(task, label)
    if row is not None:
        message = f"task {task.names[task.codes[row]]!r} has another label above: keep one of them"
        raise blame(row, message)
    return [task, label], blame


def truth_of(truth: Any, item: Hashable, columns: Sequence[str] = TRUTH_COLUMNS) -> Hashable:
    """The truth of an item in a file, whether it is a class of a table or not."""
    (task, label), _ = coded_columns(truth, columns, "truths")
    code = like(task.names, [item]).index(item)
    said: Hashable = label.names[label.codes[first_row(task, code)]]
    return said


def _places(names: Sequence[Any], among: Any, otherwise: int) -> NDArray[np.int64]:
    """Where each name stands among others."""
    if isinstance(among, np.ndarray):
        among = among.tolist()
    place = {name: i for i, name in enumerate(among)}
    return np.array([place.get(name, otherwise) for name in names], np.int64)


def _contradiction(task: Coded, label: Coded) -> int | None:
    """A row that says something else of a task than the first row about it."""
    if len(task.names) == task.codes.size:
        return None
    first = np.full(len(task.names), -1, np.int64)
    first[task.codes[::-1]] = label.codes[::-1]
    wrong = label.codes != first[task.codes]
    return int(np.argmax(wrong)) if wrong.any() else None
