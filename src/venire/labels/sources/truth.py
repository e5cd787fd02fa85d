"""Of any form: the truth, classes in order, numbers, comparisons, and the families of labelers."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError, InputError
from venire.labels import LabelTable, Names, Repeats
from venire.labels.partitions import Partitions, Table
from venire.labels.sources.build import (
    Tell,
    as_table,
    coded_columns,
    coded_sheet,
    once_each,
)
from venire.labels.sources.columns import Coded, columns_of, first_row, like
from venire.labels.sources.files import is_json_lines, is_parquet, is_path, read_columns
from venire.labels.sources.headers import LABELER, role_names
from venire.labels.sources.sheets import (
    COLUMNS,
    COMPARISON_COLUMNS,
    TRUTH_COLUMNS,
    Blame,
    file_head,
    has_header,
    listed,
)
from venire.labels.table import slice_items
from venire.tools.addresses import PathOrAddress, located, readable
from venire.tools.arrays import Ints
from venire.tools.csv_rows import number, read_rows

#: What a winner is called where neither side won, here and in the tables of Chatbot Arena.
TIES: Final = ("tie", "draw", "tie (bothbad)", "both_bad", "tie (inconsistent)")

_TIE, _NOBODY = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Who was compared with whom, by whom; `won_left` is 1, 0, or 1/2 for a tie."""

    things: Names
    labelers: Names
    left: Ints
    right: Ints
    labeler: Ints
    won_left: NDArray[np.float64]

    def met_and_won(self) -> tuple[Ints, NDArray[np.float64]]:
        """How often each thing was compared, and how often it won; a tie is half a win."""
        n = len(self.things)
        met = np.bincount(self.left, minlength=n) + np.bincount(self.right, minlength=n)
        won = np.bincount(self.left, self.won_left, minlength=n)
        won = won + np.bincount(self.right, 1 - self.won_left, minlength=n)
        return met.astype(np.int64), np.asarray(won, np.float64)


def as_comparisons(source: Any, columns: Sequence[str] = COMPARISON_COLUMNS) -> Comparisons:
    """Rows of (left, right, labeler, winner), in any form that `as_table` takes.

    The winner is the name of one of the two, or of its column (`left`, `model_a`; also `a`), or
    "tie" or "draw". A labeler may compare the same two more than once.

    >>> data = as_comparisons([("a", "b", "ann", "a"), ("c", "a", "bob", "tie")])
    >>> data.things, data.won_left.tolist()
    (('a', 'c', 'b'), [1.0, 0.5])
    >>> arena = {"model_a": ["x", "y"], "model_b": ["y", "x"], "judge": [1, 1], "winner": "ab"}
    >>> as_comparisons(arena).won_left.tolist()
    [1.0, 0.0]
    >>> as_comparisons([("a", "b", "ann", "c")])
    Traceback (most recent call last):
    venire.errors.InputError: row 0 (the first is 0): winner is 'c', expected 'a', 'b' or 'tie': ...
    """
    if isinstance(source, Comparisons):
        return source
    (left, right, worker, winner), called, blame = coded_sheet(source, columns, "comparisons")
    things: dict[str, Any] = {}  # by their text: a column with a "tie" in it is text
    for name in (*left.names, *right.names):
        things.setdefault(str(name), name)
    place = {text: i for i, text in enumerate(things)}
    first, second = _placed(left, place), _placed(right, place)
    same = np.flatnonzero(first == second)
    if same.size:
        what = left.names[left.codes[same[0]]]
        raise blame(int(same[0]), f"{what!r} is compared with itself, expected two: drop the row")
    names = tuple(things.values())
    who = _placed(winner, place)
    for column, side in zip(called[:2], (first, second), strict=True):
        sides = column.strip().lower(), column.strip().lower().rpartition("_")[2]
        named = np.array([str(name).lower() in sides for name in winner.names])
        who = np.where((who == _NOBODY) & named[winner.codes], side, who)
    wrong = np.flatnonzero((who != first) & (who != second) & (who != _TIE))
    if wrong.size:
        row = int(wrong[0])
        expected = f"{names[first[row]]!r}, {names[second[row]]!r} or 'tie'"
        got = winner.names[winner.codes[row]]
        raise blame(row, f"{called[3]} is {got!r}, expected {expected}: correct or drop the row")
    won_left = np.where(who == _TIE, 0.5, (who == first).astype(np.float64))
    labeler = worker.codes.astype(np.int64)
    return Comparisons(names, worker.names, first, second, labeler, won_left)


def _placed(column: Coded, place: dict[str, int]) -> Ints:
    texts = [str(name) for name in column.names]
    moved = [place.get(text, _TIE if text.lower() in TIES else _NOBODY) for text in texts]
    return np.array(moved, np.int64)[column.codes]


#: More distinct whole numbers than this are hardly classes; of others, half as many.
_MANY = 12


def as_ordered(
    labels: Any,
    order: Sequence[Hashable] | None = None,
    repeats: Repeats = "error",
    columns: Sequence[str] = COLUMNS,
    *,
    wide: bool = False,
    merge: bool = False,
    tell: Tell | None = None,
    blank: Collection[Hashable] = (),
) -> LabelTable:
    """A table with ordered classes: in the order given, or else by their size.

    >>> rows = [("a", "ann", "ok"), ("b", "ann", "bad"), ("b", "bob", "good")]
    >>> as_ordered(rows, ["bad", "ok", "good"]).classes
    ('bad', 'ok', 'good')
    >>> as_ordered([("a", "ann", "10"), ("b", "ann", "9.5")]).classes
    ('9.5', '10')
    >>> as_ordered(rows)
    Traceback (most recent call last):
    venire.errors.InputError: the classes 'bad', 'good', 'ok' are not numbers, so their order is ...
    """
    if not isinstance(labels, LabelTable):
        form: dict[str, Any] = {"wide": wide, "merge": merge, "tell": tell, "blank": blank}
        table = as_table(labels, order, repeats, columns, **form)
        if order is not None:
            return table
        labels = table
    return _moved(labels, by_size(labels.classes) if order is None else tuple(order))


def as_ratings(
    labels: Any,
    repeats: Repeats = "error",
    columns: Sequence[str] = COLUMNS,
    *,
    wide: bool = False,
    tell: Tell | None = None,
) -> LabelTable:
    """A table whose classes are the numbers that occur, by size.

    >>> table = as_ratings([("a", "ann", "4.5"), ("b", "ann", "10"), ("b", "bob", "4.50")])
    >>> table.classes.tolist(), table.said.tolist()
    ([4.5, 10.0], [0, 1, 0])
    >>> as_ratings([("a", "ann", 4.5), ("b", "ann", "much")])
    Traceback (most recent call last):
    venire.errors.InputError: row 1 (the first is 0): label is 'much', ...
    """
    if isinstance(labels, LabelTable):
        numbers = numbers_of(labels.classes)
        if numbers is None:
            raise InputError(f"got the classes {list(labels.classes)[:5]}, expected numbers")
        order = np.argsort(numbers, kind="stable")
        moved = np.argsort(order)[labels.said].astype(np.int32)
        return replace(labels, classes=numbers[order], said=moved)
    made = coded_sheet(labels, columns, "labels", wide, False, tell)
    (task, worker, label), columns, blame = made
    values, codes = np.unique(coded_numbers(label, columns[2], blame), return_inverse=True)
    said = codes[label.codes].astype(np.int32)
    return once_each(task, worker, said, values, repeats, columns, blame, fewest=1)


def numbers_of(names: Iterable[Any]) -> NDArray[np.float64] | None:
    """Names as numbers, None unless every one is a finite number or the text of one.

    >>> numbers_of(["4.5", 3]), numbers_of(["4.5", "many"]), numbers_of([True, False])
    (array([4.5, 3. ]), None, None)
    """
    found = [_number(name) for name in names]
    if not found or any(x is None for x in found):
        return None
    values = np.array(found, np.float64)
    return values if np.isfinite(values).all() else None


def coded_numbers(column: Coded, name: str, blame: Blame) -> NDArray[np.float64]:
    """What the codes of a column stand for, as numbers; else the error about the first row."""
    found = numbers_of(column.names)
    if found is not None:
        return found
    code = next(i for i, x in enumerate(column.names) if numbers_of([x]) is None)
    message = f"{name} is {column.names[code]!r}, expected a finite number: correct or drop the row"
    raise blame(first_row(column, code), message)


def many_numbers(classes: Names) -> bool:
    """Whether classes look like measurements: many numbers, or several that are not whole.

    >>> many_numbers(range(1, 11)), many_numbers(range(30)), many_numbers(["1.5", "2", "3.25"])
    (False, True, False)
    """
    numbers = numbers_of(classes)
    if numbers is None:
        return False
    return numbers.size > (_MANY if (numbers == np.round(numbers)).all() else _MANY // 2)


def _number(name: Any) -> float | None:
    if isinstance(name, str):
        return number(name)
    numeric = isinstance(name, int | float | np.number) and not isinstance(name, bool | np.bool_)
    return float(name) if numeric else None


def by_size(classes: Sequence[Any]) -> tuple[Hashable, ...]:
    """Classes that are numbers, or text of numbers, from the smallest to the largest.

    >>> by_size(["10", "9.5"])
    ('9.5', '10')
    """
    sizes = numbers_of(classes)
    if sizes is None:
        named = [repr(name) for name in classes]
        shown = ", ".join(named[:5] + ["..."] * (len(named) > 5))
        raise InputError(
            f"the classes {shown} are not numbers, so their order is not known: give it, from the "
            "lowest to the highest (order=[...], --classes low,medium,high)"
        )
    return tuple(classes[i] for i in np.argsort(sizes, kind="stable"))


def _moved(table: LabelTable, order: tuple[Hashable, ...]) -> LabelTable:
    """The same table with its classes in another order."""
    if order == tuple(table.classes):
        return table
    place = {name: i for i, name in enumerate(order)}
    if len(place) < len(order) or any(name not in place for name in table.classes):
        raise InputError(
            f"got the order {list(order)}, expected each of the classes {list(table.classes)} once"
        )
    codes = np.array([place[name] for name in table.classes], table.said.dtype)
    return replace(table, classes=order, said=codes[table.said])


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
    return replace(slice_items(table, 0, 1), items=table.items[:1])


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


#: What the columns are called in a table of labels.
FAMILY_COLUMNS: Final = ("worker", "family")

#: Where a row is, for an error, its labeler and its family.
Row = tuple[int | None, Any, Any]


def as_families(
    labels: Any, table: Table, columns: Sequence[str] = FAMILY_COLUMNS
) -> dict[Hashable, Hashable] | None:
    """The family of each labeler of a table; None if the source has no such column.

    Parameters
    ----------
    labels
        A dataframe, a dict of columns, or the path or address of a CSV, Parquet or JSON Lines file:
        the labels themselves, or a table of labelers and their families. An empty value is none.
    table : LabelTable or Partitions
        The labels as a table, whose labelers' names are used.
    columns
        What the columns of worker and family are called.

    Examples
    --------
    >>> from venire.labels import LabelTable
    >>> table = LabelTable.from_rows([("a", "x", "yes"), ("a", "y", "no"), ("a", "ann", "no")])
    >>> as_families({"worker": ["x", "y", "ann"], "family": ["llama", "llama", None]}, table)
    {'x': 'llama', 'y': 'llama'}
    """
    path = located(labels) if is_path(labels) else None
    if path is not None:
        columns = _called(path, columns)
        if not columns:
            return None
    rows = _frame(labels, columns) if path is None else _file(path, columns)
    if rows is None:
        return None
    found: dict[Any, Any] = {}
    for line, name, family in rows:
        family = None if family != family or family == "" else family  # nan
        if found.setdefault(name, family) != family:
            message = (
                f"{columns[0]} {name!r} is of {columns[1]} {family!r}, and of {found[name]!r} in "
                "a row above: expected one family for each, correct one of the rows"
            )
            raise InputError(message) if path is None else FileError(path, line, message)
    names = found if path is None else like(found, table.labelers)
    known, labelers = dict(zip(names, found.values(), strict=True)), set(table.labelers)
    stranger = next((name for name in known if name not in labelers), None)
    if stranger is not None:
        message = (
            f"got a family of {stranger!r}, who gave none of the labels, expected labelers such as "
            f"{table.labelers[0]!r}: correct the name, or drop it"
        )
        raise InputError(message) if path is None else FileError(path, None, message)
    return {name: family for name, family in known.items() if family is not None}


def _called(path: PathOrAddress, columns: Sequence[str]) -> Sequence[str]:
    """What the two columns are called; none if there is no column of families."""
    if not has_header(path):
        return ()
    names, _ = file_head(path)
    if columns[1].strip().lower() not in (str(name).strip().lower() for name in names):
        return ()
    if columns[0] != FAMILY_COLUMNS[0] or columns[0] in map(str.lower, names):
        return columns
    return (next(iter(role_names(names, LABELER)), columns[0]), columns[1])


def _frame(source: Any, columns: Sequence[str]) -> Iterable[Row] | None:
    if isinstance(source, Mapping):
        names = list(source)
    else:
        names = list(getattr(source, "columns", ())) or []
    if columns[1] not in map(str, names):
        return None
    pair = [listed(values) for values in columns_of(source, columns, "families")]
    return zip(repeat(None), *pair, strict=False)


def _file(path: PathOrAddress, columns: Sequence[str]) -> Iterator[Row] | None:
    if is_parquet(path):
        return _parquet(path, columns)
    if is_json_lines(path):
        return _json_lines(path, columns)
    lower = [column.strip().lower() for column in columns]  # as headers are read
    return ((line, row[0], row[1]) for line, row in read_rows(path, lower))


def _parquet(path: PathOrAddress, columns: Sequence[str]) -> Iterator[Row] | None:
    from pyarrow import parquet, table

    with readable(path) as file:
        if columns[1] not in parquet.read_schema(file).names:
            return None
    names = ["worker", "family"]
    said = table(read_columns(path, columns, "labels").values, names=names)
    pairs = said.group_by(names, use_threads=False).aggregate([]).to_pylist()
    return ((None, *row.values()) for row in pairs)


def _json_lines(path: PathOrAddress, columns: Sequence[str]) -> Iterator[Row] | None:
    with path.open(encoding="utf-8-sig") as file:
        if not any(columns[1] in text for text in file):  # quickly: most tables have no families
            return None
        file.seek(0)
        records = [(n, json.loads(text)) for n, text in enumerate(file, 1) if text.strip()]
    if not any(columns[1] in record for _, record in records):
        return None
    return ((n, one.get(columns[0]), one.get(columns[1])) for n, one in records)
