"""Classes that have an order, and labels that are numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.labels import LabelTable, Names, Repeats
from venire.labels.sources.build import COLUMNS, Blame, Tell, as_table, coded_sheet, once_each
from venire.labels.sources.coding import Coded, first_row
from venire.tools.csv_rows import number

__all__ = [
    "as_ordered",
    "as_ratings",
    "by_size",
    "coded_numbers",
    "many_numbers",
    "numbers_of",
]

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
        table = as_table(labels, order, repeats, columns, wide=wide, merge=merge, tell=tell)
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
        names = labels.items, labels.labelers, numbers[order]
        return LabelTable(*names, labels.start, labels.labeler, moved)
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
    return LabelTable(
        table.items, table.labelers, order, table.start, table.labeler, codes[table.said]
    )
