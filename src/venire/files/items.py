"""The files of a stream: its items, the panel, prices.

The item file of a simulation is item,arrival,weight[,truth][,eligible][,excluded], kept as columns,
so that a million items are read in a few seconds; that of its panel is
labeler,competence[,capacity][,price]; of prices alone, labeler,price.

Items for a server are CSV or JSON Lines, a row for each. An object with a `payload` is an item as
the API describes it. Otherwise the fields that are not of the API are the payload: what labelers
are shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError, InputError
from venire.labels.sources.files import is_json_lines, read_lines
from venire.labels.sources.headers import ITEM, role_names
from venire.model import MOST_PRICE, MOST_WEIGHT, Item, Labeler
from venire.tools.addresses import PathOrAddress
from venire.tools.csv_rows import number, read_each, read_rows, shown, whole
from venire.tools.untrusted import parse_json

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


PANEL_REQUIRED = ("labeler", "competence")
PANEL_OPTIONAL = ("capacity", "price")

#: Capacities are kept in 32 bits.
LARGEST = 2**31 - 1


def read_panel(path: str | Path) -> tuple[Labeler, ...]:
    r"""Read who is on the panel, in the order of the file.

    `competence` is the probability that a label of theirs is right, strictly between 0 and 1;
    `capacity` how many labels they give in a slot, 1 without the column; `price` what one label
    of theirs costs, 0 without the column.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.csv")
    ...     _ = path.write_text("labeler,competence,capacity,price\nann,.9,1,.05\nllama,.7,20,\n")
    ...     read_panel(path)[1]
    Labeler(id='llama', competence=0.7, capacity=20, price=0.0)
    """
    path = Path(path)
    return tuple(
        Labeler(
            name,
            _competence(path, line, competence),
            _capacity(path, line, capacity),
            _price(path, line, price),
        )
        for line, (name, competence, capacity, price) in _labelers(
            path, PANEL_REQUIRED, PANEL_OPTIONAL
        )
    )


def read_prices(path: str | Path) -> dict[str, float]:
    r"""Read what one label of each labeler costs: a file with labeler,price, or a panel file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "prices.csv")
    ...     _ = path.write_text("labeler,price\nann,.05\nllama,\n")
    ...     read_prices(path)
    {'ann': 0.05, 'llama': 0.0}
    """
    path = Path(path)
    rows = _labelers(path, ("labeler", "price"), twice="is there twice: drop one of them")
    return {name: _price(path, line, price) for line, (name, price) in rows}


def _labelers(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    twice: str = "is on line {first} already: drop or rename one",
) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a file that has one for each labeler, whose name comes first.

    `twice` says what is wrong with a second row of a labeler, whose `first` line is known.
    """
    seen: dict[str, int] = {}
    for line, row in read_rows(path, required, optional):
        name = row[0]
        if not name:
            raise FileError(path, line, "labeler is empty: give every labeler a name")
        if seen.setdefault(name, line) != line:
            wrong = twice.format(first=seen[name])
            raise FileError(path, line, f"labeler {shown(name)} {wrong}")
        yield line, row
    if not seen:
        raise FileError(path, 1, "no labelers below the header: add one line for each")


def _competence(path: Path, line: int, text: str | None) -> float:
    value = number(text)
    if value is not None and 0 < value < 1:
        return value
    remedy = "give the probability that a label of theirs is right"
    if value is not None and 1 < value <= 100:
        remedy = f"write {value / 100:g} for {value:g} percent"
    elif value == 1:
        remedy = "write 0.999999 for someone who is never wrong"
    message = f"competence is {shown(text)}, expected a number strictly between 0 and 1: {remedy}"
    raise FileError(path, line, message)


def _capacity(path: Path, line: int, text: str | None) -> int:
    if text is None:
        return 1
    value = whole(text)
    if value is not None and 1 <= value <= LARGEST:
        return value
    message = f"capacity is {shown(text)}, expected a whole number from 1 to {LARGEST}"
    raise FileError(path, line, f"{message}: give how many labels they can give in a slot")


def _price(path: Path, line: int, text: str | None) -> float:
    if not text:
        return 0.0
    value = number(text)
    if value is not None and 0 <= value <= MOST_PRICE:
        return value
    message = f"price is {shown(text)}, expected a number from 0 to {MOST_PRICE:g}"
    raise FileError(path, line, f"{message}: give what one label of theirs costs")


#: The fields of an item beside its id and payload.
FIELDS: Final = ("weight", "min_confidence", "eligible", "excluded")

#: Items that are sent together.
TOGETHER: Final = 500

#: Sends items, and says how many are new and how many were there; `InputError` if one is refused,
#: and then none is taken.
Post = Callable[[Sequence[dict[str, Any]]], Mapping[str, Any]]

_NUMBERS, _NAMES = FIELDS[:2], FIELDS[2:]


class Sent(NamedTuple):
    """A row of a file: its line, and the item, or why it is none."""

    line: int
    item: dict[str, Any] | None
    why: str = ""


def read_sent(path: PathOrAddress, id: str | None = None, hashed: bool = False) -> Iterator[Sent]:
    r"""The items of a file, in order; a row that is not an item says why.

    `id` names the column of the ids, by default `id`, or else the one that looks like it. With
    `hashed` an id is made of the payload, so that the same payload is the same item.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "posts.csv")
    ...     _ = path.write_text("post_id;text;weight\n7;Buy!;20\n;See you;\n")
    ...     for row in read_sent(path):
    ...         print(row)
    Sent(line=2, item={'id': '7', 'payload': {'text': 'Buy!'}, 'weight': 20.0}, why='')
    Sent(line=3, item=None, why="'post_id' is empty, expected an id in every row")
    """
    named = id
    for line, row in _records(path):
        if isinstance(row, str):
            yield Sent(line, None, row)
            continue
        if named is None and not hashed:
            named = _id_column(path, list(row))
        if named is not None and named not in row and id is not None:
            raise FileError(path, line, f"there is no {named!r}, got {', '.join(map(str, row))}")
        yield _sent(line, row, "" if named is None else named, hashed)


def _records(path: PathOrAddress) -> Iterator[tuple[int, dict[str, Any] | str]]:
    if not is_json_lines(path):
        for line, row in read_each(path):
            named = row if isinstance(row, str) else {k: v for k, v in row.items() if k}
            yield line, named
        return
    for line, text in read_lines(path):
        yield line, _object(text)


def _object(text: str) -> dict[str, Any] | str:
    try:
        found = parse_json(text)
    except json.JSONDecodeError as error:
        return f"not JSON ({error.msg.lower()}), expected an object a line"
    return found if isinstance(found, dict) else f"a {type(found).__name__}, expected an object"


def _id_column(path: PathOrAddress, names: list[str]) -> str:
    found = ["id"] if "id" in names else role_names(names, ITEM)
    if not found:
        raise FileError(
            path,
            1,
            f"no column of ids among {', '.join(map(str, names))}: name it (--id), or let ids "
            "be made of the content (--hash-ids)",
        )
    return found[0]


def _sent(line: int, row: Mapping[str, Any], named: str, hashed: bool) -> Sent:
    ready = "payload" in row
    more = {name: row[name] for name in FIELDS if row.get(name) not in (None, "")}
    for name in _NUMBERS:
        if isinstance(more.get(name), str):
            value = number(more[name])
            if value is None:
                return Sent(line, None, f"{name} is {more[name]!r}, expected a number")
            more[name] = value
    for name in _NAMES:
        if isinstance(more.get(name), str):
            more[name] = [part.strip() for part in more[name].split("|")]
    rest = {k: v for k, v in row.items() if k not in (named, *FIELDS)}
    payload = row["payload"] if ready else rest
    if hashed:
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        return Sent(
            line, {"id": hashlib.sha256(text.encode()).hexdigest()[:24], "payload": payload} | more
        )
    if row.get(named) in (None, ""):
        return Sent(line, None, f"{named!r} is empty, expected an id in every row")
    return Sent(line, {"id": str(row[named]), "payload": payload} | more)


def send_all(
    rows: Iterator[Sent], post: Post, progress: Callable[[str], object] = str
) -> dict[str, Any]:
    """Send rows some hundred at a time; how many are new, how many were there, which are refused.

    >>> seen = []
    >>> def post(items):
    ...     seen.extend(item["id"] for item in items)
    ...     return {"created": len(items), "exists": 0}
    >>> send_all(iter([Sent(2, {"id": "a"}), Sent(3, None, "no id")]), post)
    {'created': 1, 'exists': 0, 'refused': [{'line': 3, 'id': None, 'why': 'no id'}]}
    """
    done: dict[str, Any] = {"created": 0, "exists": 0, "refused": []}
    while part := list(islice(rows, TOGETHER)):
        done["refused"] += [
            {"line": row.line, "id": None, "why": row.why} for row in part if row.item is None
        ]
        _post([row for row in part if row.item is not None], post, done)
        progress(f"{done['created'] + done['exists']:,} items sent")
    done["refused"].sort(key=lambda row: row["line"])
    return done


def _post(part: Sequence[Sent], post: Post, done: dict[str, Any]) -> None:
    """Send rows together; if they are refused, in halves, until it is known which one it is."""
    if not part:
        return
    try:
        counts = post([row.item for row in part if row.item is not None])
    except InputError as fault:
        if len(part) == 1:
            id = (part[0].item or {}).get("id")
            done["refused"].append({"line": part[0].line, "id": id, "why": str(fault)})
            return
        half = len(part) // 2
        _post(part[:half], post, done)
        _post(part[half:], post, done)
        return
    done["created"] += counts["created"]
    done["exists"] += counts["exists"]
