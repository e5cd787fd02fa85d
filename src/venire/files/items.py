"""The item file: item,arrival,weight[,truth][,eligible][,excluded].

It is kept as columns, so that a million items are read in a few seconds.

Files of nested keys: YAML, TOML and JSON, by their suffix. An error names the line.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError
from venire.model import MOST_WEIGHT, Item
from venire.tools.csv_rows import number, read_rows, shown, whole
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json

__all__ = [
    "ItemTable",
    "Tree",
    "classes_of",
    "parse_tree",
    "read_items",
    "read_text",
    "read_toml",
    "read_tree",
]

Keys = tuple[str | int, ...]


class Tree(NamedTuple):
    """The content of a file, and the line of a path of keys: of its last key that is there.

    Only YAML says where a key is; elsewhere the line is None.
    """

    content: Any
    line: Callable[[Keys], int | None]


def read_tree(path: Path) -> Tree:
    r"""Read a .toml or .json file, or any other as YAML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.yaml")
    ...     _ = path.write_text("labelers:\n- id: ann\n  price: 2\n")
    ...     tree = read_tree(path)
    >>> tree.content, tree.line(("labelers", 0, "price"))
    ({'labelers': [{'id': 'ann', 'price': 2}]}, 3)
    """
    return parse_tree(read_text(path), path)


def parse_tree(text: str, path: Path) -> Tree:
    r"""The content of a text, which is or could be a file of this name.

    >>> parse_tree('name = "posts"\nclasses = ["spam", "ok"]', Path("stream.toml")).content
    {'name': 'posts', 'classes': ['spam', 'ok']}
    """
    if path.suffix == ".toml":
        return Tree(_toml(path, text), _unknown)
    return _json(path, text) if path.suffix == ".json" else _yaml(path, text)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({why}): check the path") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, whatever its suffix."""
    return _toml(path, read_text(path))


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(path, None, f"this is not TOML: {error}") from None


def _json(path: Path, text: str) -> Tree:
    try:
        return Tree(parse_json(text), _unknown)
    except json.JSONDecodeError as error:
        raise FileError(path, error.lineno, f"this is not JSON: {error.msg}") from None


def _unknown(where: Keys) -> None:
    return None


def _yaml(path: Path, text: str) -> Tree:
    yaml = library("yaml", "judges")

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc] # it has no types
        """Without aliases: nine lines of them make a gigabyte."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                why = f"*{event.anchor} is an alias, expected what it stands for"
                raise yaml.composer.ComposerError(None, None, why, event.start_mark)
            return super().compose_node(parent, index)

    try:
        nodes = yaml.compose(text, Loader)
        content = yaml.load(text, Loader)
    except RecursionError:
        raise FileError(path, None, "this is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        line = None if mark is None else mark.line + 1
        raise FileError(path, line, f"this is not YAML: {why}") from None
    return Tree(content, lambda where: _line(nodes, where))


def _line(node: Any, where: Keys) -> int | None:
    line = None if node is None else node.start_mark.line + 1
    for part in where:
        inside = getattr(node, "value", None)
        if isinstance(part, int) and isinstance(inside, list) and part < len(inside):
            found = inside[part] if not isinstance(inside[part], tuple) else None
            start = found
        else:
            pairs = [p for p in inside or [] if isinstance(p, tuple) and p[0].value == str(part)]
            start, found = pairs[-1] if pairs else (None, None)
        if found is None or start is None:
            return line
        node, line = found, start.start_mark.line + 1
    return line


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
        """How many items there are."""
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
