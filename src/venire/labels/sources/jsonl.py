"""The columns of a JSON Lines file: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from venire.errors import FileError, InputError
from venire.labels.sources.columns import pick
from venire.tools.addresses import PathOrAddress
from venire.tools.untrusted import parse_json

__all__ = ["is_json_lines", "line_of", "read_json_lines", "read_records"]


def is_json_lines(path: PathOrAddress) -> bool:
    """Whether a file is JSON Lines, by its ending.

    >>> from pathlib import Path
    >>> is_json_lines(Path("labels.jsonl")), is_json_lines(Path("labels.csv"))
    (True, False)
    """
    return path.suffix.lower() in (".jsonl", ".ndjson")


def read_json_lines(path: PathOrAddress, columns: Sequence[str], what: str) -> list[list[Any]]:
    r"""The values of the columns; every line has to have all of them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.jsonl")
    ...     _ = path.write_text('{"task": 1, "label": "ok"}\n{"label": "no", "task": 2}\n')
    ...     read_json_lines(path, ["task", "label"], "labels")
    [[1, 2], ['ok', 'no']]
    """
    found: list[list[Any]] = [[] for _ in columns]
    for line, text in _lines(path):
        record = _record(path, line, text)
        try:
            for values, column in zip(found, columns, strict=True):
                values.append(record[pick(column, list(record), what)])
        except InputError as error:
            raise FileError(path, line, str(error)) from None
    return found


def read_records(path: PathOrAddress) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, each with its line."""
    return ((line, _record(path, line, text)) for line, text in _lines(path))


def line_of(path: PathOrAddress, row: int) -> int:
    """The line on which a row stands; the first row is 0, the first line 1."""
    return next(islice(_lines(path), row, None))[0]


def _record(path: PathOrAddress, line: int, text: str) -> dict[str, Any]:
    try:
        record = parse_json(text)
    except json.JSONDecodeError as error:
        message = f"not JSON ({error.msg.lower()}): write one object a line"
        raise FileError(path, line, message) from None
    if not isinstance(record, dict):
        message = f'a {type(record).__name__}, expected an object such as {{"task": 7, ...}}'
        raise FileError(path, line, message)
    return record


def _lines(path: PathOrAddress) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from ((i, text) for i, text in enumerate(file, start=1) if text.strip())
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None
