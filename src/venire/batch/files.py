"""The files of a batch: items, the panel, prices, and what a wrong verdict costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from venire.batch.labelers import Caller, NoAnswer
from venire.batch.work import BatchItem, as_items
from venire.errors import FileError, InputError
from venire.files.trees import read_tree
from venire.labels.sources.jsonl import is_json_lines
from venire.tools.csv_rows import number, read_dicts, read_head, shown
from venire.tools.untrusted import parse_json

__all__ = ["read_batch", "read_batch_panel"]

#: What every entry of the panel has, and what one may say.
OWN: Final = ("id", "call", "column")
KEYS: Final = ("id", "price", "call", "column", "parallel", "many", "family", "trusted")


def read_batch(path: str | Path) -> tuple[BatchItem, ...]:
    r"""The items of a .jsonl or .csv file, which have an `id`; also weight, target and eligible.

    Labelers are shown the whole record. Names of eligible labelers are separated by |, in JSON
    they may be a list.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.jsonl")
    ...     _ = path.write_text('{"id": "a", "text": "Buy now!", "target": 0.99}\n')
    ...     read_batch(path)[0].content["text"]
    'Buy now!'
    """
    path = Path(path)
    try:
        records = _json_lines(path) if is_json_lines(path) else _csv(path)
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None
    if not records:
        raise FileError(path, 1, "holds no items: add one line for each")
    seen: dict[str, int] = {}
    for line, record in records:
        name = str(record.get("id") or "")
        if not name:
            raise FileError(path, line, "has no id: give every item one")
        if seen.setdefault(name, line) != line:
            message = f"item {shown(name)} is on line {seen[name]} already: drop or rename one"
            raise FileError(path, line, message)
        try:
            as_items([record])
        except InputError as error:
            raise FileError(path, line, str(error)) from None
    return as_items(record for _, record in records)


def _json_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    records = []
    with open(path, encoding="utf-8-sig") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                record = parse_json(text)
            except json.JSONDecodeError as error:
                message = f"not JSON ({error.msg.lower()}): write one object a line"
                raise FileError(path, line, message) from None
            if not isinstance(record, dict):
                raise FileError(path, line, 'expected an object such as {"id": "post-1", ...}')
            records.append((line, record))
    return records


def _csv(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Records of a CSV file; weight and target are numbers, empty fields are left out."""
    names, _ = read_head(path, 0)
    if "id" not in names:
        raise FileError(path, 1, f"has the columns {names}, expected one called id")
    records = []
    for line, row in read_dicts(path):
        record: dict[str, Any] = {name: value for name, value in row.items() if value}
        for name in ("weight", "target"):
            if name in record:
                record[name] = _number(path, line, name, record[name])
        records.append((line, record))
    return records


def _number(path: Path, line: int, name: str, text: str) -> float:
    value = number(text)
    if value is None:
        raise FileError(path, line, f"{name} is {shown(text)}, expected a number")
    return value


Find = Callable[[str], Callable[[Any], Any]]
Kinds = Mapping[str, Callable[[Mapping[str, Any]], Caller]]


def read_batch_panel(
    path: str | Path, find: Find, kinds: Kinds | None = None
) -> tuple[Caller, ...]:
    r"""The labelers of a .yaml, .toml or .json file; `find` turns `module:function` into one.

    A list, or a list under `labelers`. Each has an `id`, a `price` (0 if it is left out), and
    either `call`, a function of the item, or `column`, a field of the item that holds its label;
    `parallel` calls may run at a time, and with `many` the function takes a list of items. Those of
    one `family` may share errors; one that is `trusted` is an expert. `kinds` are
    other keys than `call` and `column`, such as `onnx`, and what makes a labeler of the entry.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.json")
    ...     _ = path.write_text('[{"id": "old", "column": "by_hand", "price": 0.2}]')
    ...     (caller,) = read_batch_panel(path, {}.get)
    >>> caller.id, caller.price, caller.call({"by_hand": "spam"})
    ('old', 0.2, 'spam')
    """
    path = Path(path)
    content, line_of = read_tree(path)
    root = ("labelers",) if isinstance(content, Mapping) else ()
    entries = content.get("labelers") if isinstance(content, Mapping) else content
    if not isinstance(entries, list) or not entries:
        raise FileError(path, None, "expected a list of labelers: - {id: small, call: mine:judge}")
    callers: list[Caller] = []
    for place, entry in enumerate(entries):
        line = line_of((*root, place))
        try:
            callers.append(_caller(entry, find, kinds or {}))
        except InputError as error:
            raise FileError(path, line, f"labeler {place + 1}: {error}") from None
        if [c.id for c in callers].count(callers[-1].id) > 1:
            raise FileError(path, line, f"labeler {shown(callers[-1].id)} is there twice")
    return tuple(callers)


def _caller(entry: Any, find: Find, kinds: Kinds) -> Caller:
    if not isinstance(entry, Mapping) or not entry.get("id"):
        raise InputError(f"got {entry!r}, expected an id, a price, and call or column")
    named = [key for key in ("call", "column", *kinds) if key in entry]
    if len(named) != 1:
        either = ", ".join(["call: module:function", "column: a field", *kinds])
        raise InputError(f"{entry['id']} needs one of {either}; it has {named or 'none'}")
    if named[0] in kinds:
        return kinds[named[0]](entry)
    unknown = next((key for key in entry if key not in KEYS), None)
    if unknown is not None:
        raise InputError(f"{entry['id']} has the key {unknown!r}, expected {', '.join(KEYS)}")
    call = find(str(entry["call"])) if "call" in entry else _column(str(entry["column"]))
    options = {key: entry[key] for key in KEYS if key in entry and key not in OWN}
    return Caller(str(entry["id"]), call, **options)


def _column(name: str) -> Callable[[Any], Any]:
    def read(item: Any) -> Any:
        said = item.get(name)
        if said in (None, ""):
            raise NoAnswer(f"the item has no {name}")
        return said

    return read
