"""The columns of a CSV, Parquet or JSON Lines file.

A CSV file is read by pyarrow if that is installed. Files that it cannot read, and quoted or padded
fields, which it parses differently, are read again by the csv module, which names the line of an
error; without pyarrow the csv module reads everything. Both give the same columns.

The columns of a JSON Lines file: one object a line.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError, InputError, MissingExtra
from venire.labels.sources.columns import (
    Coded,
    Fault,
    NoRows,
    as_whole,
    coded,
    first_row,
    missing,
    pick,
)
from venire.tools.addresses import PathOrAddress, readable
from venire.tools.csv_rows import Dialect, dialect_of, read_rows
from venire.tools.untrusted import parse_json

#: A line of a file of labels, as it should be.
ROW: Final = '{"task": 7, ...}'


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
    for line, text in read_lines(path):
        record = _record(path, line, text)
        try:
            for values, column in zip(found, columns, strict=True):
                values.append(record[pick(column, list(record), what)])
        except InputError as error:
            raise FileError(path, line, str(error)) from None
    return found


def read_records(path: PathOrAddress, such_as: str = ROW) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, each with its line."""
    return ((line, _record(path, line, text, such_as)) for line, text in read_lines(path))


def line_of(path: PathOrAddress, row: int) -> int:
    return next(islice(read_lines(path), row, None))[0]


def _record(path: PathOrAddress, line: int, text: str, such_as: str = ROW) -> dict[str, Any]:
    try:
        record = parse_json(text)
    except json.JSONDecodeError as error:
        message = f"not JSON ({error.msg.lower()}): write one object a line"
        raise FileError(path, line, message) from None
    if not isinstance(record, dict):
        got = type(record).__name__
        raise FileError(path, line, f"a {got}, expected an object such as {such_as}")
    return record


def read_lines(path: PathOrAddress) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from ((i, text) for i, text in enumerate(file, start=1) if text.strip())
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None


#: A missing value, as pandas and NumPy write it.
NAN: Final = ("NaN", "nan")

#: Text that readers of CSV may read in different ways.
_ODD: Final = r'["\r\n]|^\s|\s$'


class NoRowsInFile(FileError, NoRows):
    """A file has columns, but no rows."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file, and the error about one of its rows."""

    path: PathOrAddress
    columns: Sequence[str]
    values: list[Any]

    def blame(self, row: int | None, message: str) -> FileError:
        """The error about a row, with its line; None for the file as a whole."""
        if row is None:
            return FileError(self.path, None, message)
        if is_parquet(self.path):
            return FileError(self.path, None, f"row {row + 1}: {message}")
        if is_json_lines(self.path):
            return FileError(self.path, line_of(self.path, row), message)
        line, _ = next(islice(read_rows(self.path, self.columns), row, None))
        return FileError(self.path, line, message)


def is_path(source: Any) -> bool:
    """Whether labels are given by the name of their file."""
    return isinstance(source, str | os.PathLike)


def is_parquet(path: PathOrAddress) -> bool:
    """Whether a file is Parquet, by its ending.

    >>> from pathlib import Path
    >>> is_parquet(Path("labels.parquet")), is_parquet(Path("labels.csv"))
    (True, False)
    """
    return path.suffix.lower() in (".parquet", ".pq")


def read_columns(path: PathOrAddress, columns: Sequence[str], what: str) -> FileColumns:
    """The columns of a file, by its ending: .parquet, .jsonl, or else CSV with a header."""
    if is_parquet(path):
        values = _parquet(path, columns, what)
    elif is_json_lines(path):
        values = read_json_lines(path, columns, what)
        if not values[0]:
            raise NoRowsInFile(path, None, f"the {what} have no rows, expected at least one")
    else:
        columns = [column.strip().lower() for column in columns]  # as headers are read
        values = _csv(path, columns, what)
    return FileColumns(path, columns, values)


def _csv(path: PathOrAddress, columns: Sequence[str], what: str) -> list[Any]:
    if next(read_rows(path, columns), None) is None:
        raise NoRowsInFile(path, 1, f"no {what} below the header: add one line for each")
    return _csv_by_pyarrow(path, columns) or _csv_by_lines(path, columns)


def _csv_by_lines(path: PathOrAddress, columns: Sequence[str]) -> list[Coded]:
    fields = zip(*(row for _, row in read_rows(path, columns)), strict=True)
    try:
        made = [
            _without_nan(coded(texts, column), column)
            for texts, column in zip(fields, columns, strict=True)
        ]
    except Fault as fault:
        raise FileColumns(path, columns, []).blame(fault.row, fault.message) from None
    return [Coded(column.codes, as_whole(column.names) or column.names) for column in made]


def _csv_by_pyarrow(path: PathOrAddress, columns: Sequence[str]) -> list[Coded] | None:
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow
    except ImportError:
        return None
    dialect = dialect_of(path)
    width, places = _places(path, columns, dialect)
    if not places:
        return None
    try:
        with readable(path, whole=True) as file:
            table = arrow.read_csv(
                file,
                arrow.ReadOptions(column_names=[str(i) for i in range(width)], skip_rows=1),
                arrow.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
                arrow.ConvertOptions(
                    column_types={str(i): pa.large_string() for i in places},
                    include_columns=[str(i) for i in places],
                    strings_can_be_null=False,
                ),
            )
        return [_coded_text(table[str(i)], c) for i, c in zip(places, columns, strict=True)]
    except (pa.ArrowException, Fault, OSError):
        return None


def _coded_text(texts: Any, column: str) -> Coded:
    """Whole numbers if all are written as Python writes them, else text.

    Whatever else can be read as a number, such as 007, is longer than the number's own text.
    """
    import pyarrow as pa
    from pyarrow import compute

    try:
        numbers = texts.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        pass
    else:
        length = compute.sum(compute.binary_length(texts)).as_py()
        if np.abs(numbers).max() < 10**18 and length == _width(numbers):
            return coded(numbers, column)
    texts = texts.combine_chunks().dictionary_encode()
    words = texts.dictionary
    if compute.any(compute.match_substring_regex(words, _ODD)).as_py():
        raise Fault(0, "quoted or padded")
    return _without_nan(coded(texts, column), column)


def _without_nan(made: Coded, column: str) -> Coded:
    """Without the text by which programs write a missing value."""
    for code, name in enumerate(made.names):
        if name in NAN:
            raise Fault(first_row(made, code), missing(column, str(name)))
    return made


def _width(numbers: NDArray[np.int64]) -> int:
    """How many characters it takes to write the numbers."""
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    digits = np.searchsorted(powers, np.abs(numbers), side="right")
    return int(digits.sum()) + numbers.size + int((numbers < 0).sum())


def _places(path: PathOrAddress, columns: Sequence[str], dialect: Dialect) -> tuple[int, list[int]]:
    """How many columns there are, and where ours are; none unless the header is line 1."""
    if dialect.encoding != "utf-8-sig" or dialect.skipped:
        return 0, []
    with path.open(encoding=dialect.encoding, newline="") as file:
        reader = csv.reader(file, delimiter=dialect.separator, skipinitialspace=True)
        header = [name.strip().lower() for name in next(reader, [])]
    if reader.line_num != 1 or any(column not in header for column in columns):
        return 0, []
    return len(header), [header.index(column) for column in columns]


def _parquet(path: PathOrAddress, columns: Sequence[str], what: str) -> list[Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "data") from None
    try:
        with readable(path) as file:
            schema = parquet.read_schema(file)
            taken = [pick(column, schema.names, what) for column in columns]
            table = parquet.read_table(file, columns=taken)
    except FileError:
        raise
    except pa.ArrowInvalid as error:
        reason = str(error).partition(".")[0].lower()
        raise FileError(path, None, f"not a Parquet file ({reason}): write it again") from None
    except InputError as error:
        raise FileError(path, None, str(error)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({reason}): check the path") from None
    if not table.num_rows:
        raise NoRowsInFile(path, None, f"the {what} have no rows, expected at least one")
    return [table[name] for name in taken]
