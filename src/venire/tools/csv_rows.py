"""CSV tables with a header, read record by record.

Columns may be in any order; unknown ones are ignored, unless the name is close to one that is
missing. An invalid file raises a `FileError` with the line on which the record starts (the header
is line 1) and what to do about it.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from venire.errors import FileError
from venire.tools.addresses import PathOrAddress, located

__all__ = ["Row", "number", "read_rows", "shown", "whole"]

#: The line on which a record starts, and its fields; None where the column is not there.
Row: TypeAlias = tuple[int, list[str | None]]

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_rows(
    path: PathOrAddress, required: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Row]:
    r"""The records of a file: the required columns, then the optional ones.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.csv")
    ...     _ = path.write_text("competence,labeler\n0.9,ann\n")
    ...     list(read_rows(path, ["labeler", "competence"], ["capacity"]))
    [(2, ['ann', '0.9', None])]
    """
    try:
        with located(path).open(encoding="utf-8-sig", newline="") as file:
            records = _records(path, csv.reader(file, skipinitialspace=True, strict=True))
            yield from _pick(path, records, required, optional)
    except UnicodeDecodeError:
        message = "this is not UTF-8 text: save the file as CSV in UTF-8"
        raise FileError(path, _undecodable_line(path), message) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None


def _records(path: PathOrAddress, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Records with the line on which they start, without blank lines."""
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader, None)
        except csv.Error as error:
            message = f"not CSV ({error}): close every quote, and double a quote inside quotes"
            raise FileError(path, line, message) from None
        if record is None:
            return
        if len(record) > 1 or (record and record[0].strip()):
            yield line, record


def _pick(
    path: PathOrAddress,
    records: Iterator[tuple[int, list[str]]],
    required: Sequence[str],
    optional: Sequence[str],
) -> Iterator[Row]:
    line, header = next(records, (1, []))
    if not header:
        raise FileError(path, None, f"the file is empty, expected the columns {_list(required)}")
    names = [name.strip().lower() for name in header]
    _check_header(path, line, names, required, optional)
    where = [names.index(c) if c in names else -1 for c in (*required, *optional)]
    width = len(names)
    for line, record in records:
        if len(record) != width:
            message = f"{_fields(len(record))}, expected {width} as in the header ({_list(names)})"
            raise FileError(path, line, f"{message}: quote fields that contain commas")
        yield line, [record[i].strip() if i >= 0 else None for i in where]


def _check_header(
    path: PathOrAddress,
    line: int,
    names: list[str],
    required: Sequence[str],
    optional: Sequence[str],
) -> None:
    strange = [name for name in names if name not in (*required, *optional)]
    missing = [column for column in required if column not in names]
    for column in (*missing, *(c for c in optional if c not in names)):
        near = difflib.get_close_matches(column, strange, n=1, cutoff=0.75)
        if near:
            message = f"there is no column {column!r}: did you mean it by {near[0]!r}? Rename it"
            raise FileError(path, line, message)
    if missing and len(missing) == len(required):
        raise FileError(path, line, _no_header(names, required))
    if missing:
        message = f"there is no column {missing[0]!r}, got {_list(names)}"
        raise FileError(path, line, f"{message}: add it (expected {_list(required)})")
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None and twice not in strange:
        raise FileError(path, line, f"there are two columns {twice!r}: drop one")


def _no_header(names: list[str], required: Sequence[str]) -> str:
    separator = next((s for s in _SEPARATORS if len(names) == 1 and s in names[0]), None)
    if separator is not None:
        return f"fields are separated by {_SEPARATORS[separator]}, expected commas: convert it"
    got = shown(_list(names))
    return f"no header, got {got}: write {','.join(required)} above the first row"


def _undecodable_line(path: PathOrAddress) -> int:
    data = path.read_bytes()
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return 1


def shown(text: str | None, width: int = 60) -> str:
    r"""A field in quotes, on one line and shortened, for a message.

    >>> shown("two\nlines"), shown("x" * 80, width=5)
    ("'two\\nlines'", "'xxxx…'")
    """
    text = text or ""
    return repr(text if len(text) <= width else text[: width - 1] + "…")


def whole(text: str | None) -> int | None:
    """A whole number, None if it is not one; spreadsheets write 3 as 3.0 at times.

    >>> whole("3"), whole("3.0"), whole("3.5"), whole("1_0"), whole("nan")
    (3, 3, None, None, None)
    """
    try:
        if text is not None and "_" not in text:
            return int(text)
    except ValueError:
        pass
    value = number(text)
    return int(value) if value is not None and value.is_integer() else None


def number(text: str | None) -> float | None:
    """A number (it may be nan or infinite), None if it is not one.

    >>> number("0.5"), number(" 1e3"), number("a lot"), number("")
    (0.5, 1000.0, None, None)
    """
    try:
        return float(text) if text is not None and "_" not in text else None
    except ValueError:
        return None


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _fields(count: int) -> str:
    return "the line has 1 field" if count == 1 else f"the line has {count} fields"
