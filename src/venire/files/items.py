"""The item file: item,arrival,weight[,truth][,eligible][,excluded].

It is kept as columns, so that a million items are read in a few seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError
from venire.model import MOST_WEIGHT, Item
from venire.tools.csv_rows import number, read_rows, shown, whole

REQUIRED = ("item", "arrival", "weight")
OPTIONAL = ("truth", "eligible", "excluded")

#: Classes are kept in 16 bits.
MOST_CLASSES = 2**15 - 1

Names = frozenset[str]


@dataclass(frozen=True, eq=False)
class ItemTable:
    """The items of a file, in its order, one entry a column.

    `truth` is None where the file has none; `allowed` names the only labelers who may label an
    item (None: anyone), and is None where the file says nothing about it.
    """

    ids: tuple[str, ...]
    arrival: NDArray[np.int64]
    weight: NDArray[np.float64]
    classes: tuple[str, ...]
    truth: tuple[str, ...] | None = None
    allowed: tuple[Names | None, ...] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def items(self) -> Iterator[Item]:
        """The items one by one, as `Scheduler.arrive` takes them."""
        allowed = self.allowed or (None,) * len(self)
        for row in zip(self.ids, self.weight.tolist(), allowed, strict=True):
            yield Item(*row)


def read_items(
    path: str | Path,
    labelers: Collection[str],
    slots: int | None = None,
    classes: Sequence[str] | None = None,
) -> ItemTable:
    r"""Read which items arrive when, their weights, and (if the file has it) their truth.

    Parameters
    ----------
    path
        A CSV file with the columns `item`, `arrival` (a slot, from 0) and `weight`; optionally
        `truth` (in every row), `eligible` and `excluded` (names of labelers, separated by |; empty
        for no restriction).
    labelers
        The names on the panel.
    slots
        The horizon: every item must arrive before it.
    classes
        What a label may say; by default the distinct truths (see `classes_of`).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("item,arrival,weight,truth\na,0,8,spam\nb,2,3,ok\n")
    ...     table = read_items(path, ["ann", "bob"])
    >>> table.ids, table.arrival.tolist(), table.classes
    (('a', 'b'), [0, 2], ('ok', 'spam'))
    """
    path = Path(path)
    lines: dict[str, int] = {}  # the items, and the line of each
    arrivals, weights, truths = [], [], []
    masks = _Masks(path, labelers)
    for line, row in read_rows(path, REQUIRED, OPTIONAL):
        item, arrival, weight, truth, eligible, excluded = row
        if not item or lines.setdefault(item, line) != line:
            raise _bad_id(path, line, item, lines)
        arrivals.append(_arrival(path, line, arrival))
        weights.append(_weight(path, line, weight))
        truths.append(truth or "")
        masks.add(line, eligible, excluded)
    if not lines:
        raise FileError(path, 1, "no items below the header: add one line for each")
    _check_horizon(path, lines, arrivals, slots)
    known = _check_truth(path, lines, truths, classes)
    return ItemTable(
        tuple(lines),
        np.array(arrivals, np.int64),
        np.array(weights, np.float64),
        tuple(classes or (_classes(path, known) if known else ("1", "2"))),
        known,
        masks.column(),
    )


def classes_of(truth: Iterable[str]) -> tuple[str, ...]:
    """The distinct values in order (numbers by size); a second class is added if there is only one.

    >>> classes_of(["10", "9", "10"]), classes_of(["spam", "spam"])
    (('9', '10'), ('spam', 'not spam'))
    """
    distinct = sorted(set(truth))
    values = {name: number(name) for name in distinct}
    if all(value is not None and value == value for value in values.values()):
        distinct.sort(key=lambda name: values[name] or 0.0)
    return (distinct[0], f"not {distinct[0]}") if len(distinct) == 1 else tuple(distinct)


class _Masks:
    """Who may label what; each pair of fields is parsed once."""

    def __init__(self, path: Path, labelers: Collection[str]) -> None:
        self.path, self.labelers = path, frozenset(labelers)
        self.known: dict[tuple[str | None, str | None], Names | None] = {}
        self.rows: list[Names | None] = []

    def add(self, line: int, eligible: str | None, excluded: str | None) -> None:
        if (eligible, excluded) not in self.known:
            self.known[eligible, excluded] = self._allowed(line, eligible, excluded)
        self.rows.append(self.known[eligible, excluded])

    def column(self) -> tuple[Names | None, ...] | None:
        return tuple(self.rows) if any(names is not None for names in self.rows) else None

    def _allowed(self, line: int, eligible: str | None, excluded: str | None) -> Names | None:
        if not eligible and not excluded:
            return None
        some = self._names(line, "eligible", eligible) if eligible else self.labelers
        return some - self._names(line, "excluded", excluded)

    def _names(self, line: int, column: str, text: str | None) -> Names:
        names = frozenset(name.strip() for name in (text or "").split("|")) - {""}
        unknown = min(names - self.labelers, default=None)
        if unknown is not None:
            message = f"unknown labeler {shown(unknown)} in column {column!r}: add it to the panel"
            raise FileError(self.path, line, f"{message}, or separate names by |")
        return names


def _bad_id(path: Path, line: int, item: str | None, lines: dict[str, int]) -> FileError:
    if not item:
        return FileError(path, line, "item is empty: give every item an id")
    message = f"item {shown(item)} is on line {lines[item]} already: drop or rename one"
    return FileError(path, line, message)


def _arrival(path: Path, line: int, text: str | None) -> int:
    value = whole(text)
    if value is not None and value >= 0:
        return value
    message = f"arrival is {shown(text)}, expected a whole number from 0: give the slot"
    raise FileError(path, line, f"{message} in which the item arrives")


def _weight(path: Path, line: int, text: str | None) -> float:
    value = number(text)
    if value is not None and 0 < value <= MOST_WEIGHT:
        return value
    message = f"weight is {shown(text)}, expected a number above 0 and at most {MOST_WEIGHT:g}"
    raise FileError(path, line, f"{message}: give the slots that a right verdict is worth")


def _check_horizon(
    path: Path, lines: dict[str, int], arrivals: list[int], slots: int | None
) -> None:
    last = max(arrivals)
    if slots is None:
        slots = 2**62
    if last < slots:
        return
    line, arrival = next(
        (n, a) for n, a in zip(lines.values(), arrivals, strict=True) if a >= slots
    )
    message = f"the item arrives in slot {arrival}, past the last slot, {slots - 1}"
    raise FileError(path, line, f"{message}: give --slots {last + 1} or more")


def _check_truth(
    path: Path, lines: dict[str, int], truths: list[str], classes: Sequence[str] | None
) -> tuple[str, ...] | None:
    """The column of truths, None if it is missing or empty."""
    if not any(truths):
        return None
    good = set(truths) - {""} if classes is None else set(classes)
    listed = shown(",".join(classes or ()))
    for line, truth in zip(lines.values(), truths, strict=True):
        if not truth:
            message = "truth is empty and other rows have one: fill it in, or drop the column"
            raise FileError(path, line, message)
        if truth not in good:
            message = f"truth is {shown(truth)}, expected one of the classes {listed}"
            raise FileError(path, line, f"{message}: add it to --classes")
    return tuple(truths)


def _classes(path: Path, truths: tuple[str, ...]) -> tuple[str, ...]:
    classes = classes_of(truths)
    if len(classes) > MOST_CLASSES:
        message = f"truth has {len(classes)} distinct values, expected at most {MOST_CLASSES}"
        raise FileError(path, None, f"{message}: is it the right column?")
    return classes
