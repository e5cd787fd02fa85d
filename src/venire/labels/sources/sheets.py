"""Any table with names, as the columns that are looked for: files, dataframes, records.

A table that has the columns is read by them. In others they are recognised (`headers`), and a table
with a column for each judge becomes a row for each label.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from venire.errors import FileError, InputError, MissingExtra, VenireError
from venire.labels.sources.columns import FRAMES, Coded, Fault, as_whole, coded, columns_of
from venire.labels.sources.files import (
    NAN,
    FileColumns,
    NoRowsInFile,
    export_of,
    is_export,
    is_json_lines,
    is_parquet,
    read_columns,
    read_records,
)
from venire.labels.sources.headers import (
    ITEM,
    LABEL,
    TRUTH,
    Layout,
    layout_of,
    layout_of_pairs,
    role_names,
)
from venire.tools.addresses import PathOrAddress, readable
from venire.tools.csv_rows import dialect_of, read_head, read_rows
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json

#: What the columns of a table of labels, of truths and of comparisons are called unless one says
#: otherwise.
COLUMNS: Final = ("task", "worker", "label")
TRUTH_COLUMNS: Final = ("task", "label")
COMPARISON_COLUMNS: Final = ("left", "right", "worker", "winner")

#: Rows by which columns are recognised.
_SAMPLE: Final = 1000

#: Makes the error about a row.
Blame = Callable[[int | None, str], VenireError]


@dataclass(slots=True)
class Sheet:
    """The values of the columns, what these are called, and what is to be said of the table."""

    values: list[Any]
    columns: tuple[str, ...]
    blame: Blame
    said: list[str] = field(default_factory=list)


def read_sheet(source: Any, columns: Sequence[str], what: str, wide: bool = False) -> Sheet:
    """The columns of a table: by their names, or by those that are recognised.

    >>> rows = [{"id": 1, "gpt": "no", "llama": "yes"}, {"id": 2, "gpt": "no", "llama": "no"}]
    >>> sheet = read_sheet(rows, COLUMNS, "labels")
    >>> sheet.said, sheet.values[1].names
    (['read 2 items (id) in rows, 2 judges in columns gpt and llama'], ('gpt', 'llama'))
    """
    if isinstance(source, PathOrAddress):
        return _file(source, columns, what, wide)
    source = list(source) if isinstance(source, Iterator) else source
    table = _named(source)
    if table is None:
        if wide:
            raise InputError(
                f"got a {type(source).__name__} without names of columns, so judges cannot be "
                f"told apart: give a dataframe or a file with a header"
            )
        return Sheet(columns_of(source, columns, what), tuple(columns), _blame_row)
    layout = _layout(*_head(table), columns, what, wide)
    if layout is None:
        return Sheet(columns_of(table, columns, what), tuple(columns), _blame_row)
    if layout.judges:
        wanted = [n for n in (layout.item, *layout.judges) if n is not None]
        values = [listed(v) for v in columns_of(table, wanted, what)]
        return _melted(layout, values, columns, _blame_row)
    values = columns_of(table, layout.columns, what)
    return Sheet(values, layout.columns, _blame_row, [layout.said(len(values[0]))])


def resolved(path: PathOrAddress, columns: Sequence[str], what: str) -> tuple[str, ...]:
    r"""What the columns of a long table of a file are called; as given, if there are such.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "verdicts.csv")
    ...     _ = file.write_text("question;verdict\n1;ok\n2;ok\n")
    ...     resolved(file, TRUTH_COLUMNS, "verdicts")
    ('question', 'verdict')
    """
    with _in_file(path, 1 if is_text(path) else None):
        layout = _layout(*file_head(path), columns, what, False)
    return tuple(columns) if layout is None or layout.judges else layout.columns


def truth_columns(path: PathOrAddress, columns: Sequence[str]) -> tuple[str, str]:
    r"""What a file of known labels calls tasks and labels, beside labels with these columns.

    As the labels do, or else as lists of `venire ask` and others usually do.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "ask.csv")
    ...     _ = file.write_text("task,label\n1,ok\n")
    ...     truth_columns(file, ("pair", "judge", "winner"))
    ('task', 'label')
    """
    mine = columns[0], columns[2]
    if mine == TRUTH_COLUMNS or (isinstance(path, Path) and not path.is_file()):
        return mine  # a pipe can be read once
    records = _whole(path)
    names = file_head(path)[0] if records is None else list(_of_records(records[0]))
    here = {str(name).strip().lower() for name in names}
    item, label = (name.strip().lower() in here for name in mine)
    if item == label:
        return mine if item else TRUTH_COLUMNS
    found = role_names(names, ITEM) if label else _of_roles(names, (TRUTH, LABEL))
    other = found[0] if found else TRUTH_COLUMNS[item]
    return (mine[0], other) if item else (other, mine[1])


def _of_roles(names: Sequence[str], roles: Sequence[str]) -> list[str]:
    return [name for role in roles for name in role_names(names, role)]


def _layout(
    names: list[str], sample: dict[str, list[Any]], columns: Sequence[str], what: str, wide: bool
) -> Layout | None:
    usual = tuple(columns) in (COLUMNS, TRUTH_COLUMNS, COMPARISON_COLUMNS)
    if wide and not usual:
        known = {str(name).strip().lower(): name for name in names}
        absent = next((c for c in columns if c.strip().lower() not in known), None)
        if absent is not None:
            raise InputError(f"there is no column {absent!r}, got {', '.join(map(str, names))}")
        item, *judges = (known[c.strip().lower()] for c in columns)
        return Layout(item=item, judges=tuple(judges))
    here = {str(name).strip().lower() for name in names}
    if not here:
        return None  # whoever reads it says that it is empty
    if not wide and (not usual or all(column in here for column in columns)):
        return None
    if len(columns) == len(COMPARISON_COLUMNS):
        return layout_of_pairs(list(dict.fromkeys(names)))
    return layout_of(list(dict.fromkeys(names)), sample, columns, what, wide)


def _named(source: Any) -> Any:
    """A source that has names of columns, as a dict of columns or a dataframe; None if it has none.

    Rows of an iterator would be lost: a list of dicts becomes columns, other rows have no names.
    """
    kind = type(source).__module__.partition(".")[0]
    if kind == "datasets":
        return _hugging_face(source)
    if kind == "pandas":
        return _with_index(source)
    if isinstance(source, Mapping) or kind in FRAMES:
        return source
    if isinstance(source, list | tuple) and source and all(isinstance(r, Mapping) for r in source):
        return _of_records(source)
    return None


def _with_index(frame: Any) -> Any:
    """A dataframe (or a Series) whose items are in an index that has a name, as in a pivot."""
    names = list(getattr(getattr(frame, "index", None), "names", (None,)))
    columns = frame.columns.tolist() if hasattr(frame, "columns") else [frame.name]
    named = all(isinstance(name, str) and name not in columns for name in names)
    flat = not any(name is None or isinstance(name, tuple) for name in columns)
    lacking = not role_names([str(name) for name in columns], ITEM)
    return frame.reset_index() if named and flat and lacking else frame


def _hugging_face(source: Any) -> Any:
    if isinstance(source, Mapping):
        splits = ", ".join(map(str, source))
        raise InputError(f"got a dataset with the splits {splits}: choose one, as in data['train']")
    if hasattr(source, "with_format") and hasattr(source, "__len__"):
        return source.with_format("arrow")[:]
    return _of_records(list(source))


def _of_records(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def _head(table: Any) -> tuple[list[str], dict[str, list[Any]]]:
    """The names of a table in memory, and its first values."""
    if isinstance(table, Mapping):
        return list(table), {n: _some(values) for n, values in table.items()}
    nw = library("narwhals", "data")
    try:
        frame = nw.from_native(table)
    except TypeError:
        raise InputError(f"cannot read labels from a {type(table).__name__}") from None
    frame = frame.head(_SAMPLE)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return list(frame.columns), {name: frame[name].to_list() for name in frame.columns}


def _some(values: Any) -> list[Any]:
    try:
        return listed(values[:_SAMPLE])
    except (TypeError, KeyError, IndexError):
        return []


def listed(values: Any) -> list[Any]:
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            found: list[Any] = getattr(values, method)()
            return found
    return list(values)


def _blame_row(row: int | None, message: str) -> VenireError:
    return InputError(message if row is None else f"row {row} (the first is 0): {message}")


def _file(path: PathOrAddress, columns: Sequence[str], what: str, wide: bool) -> Sheet:
    records = _whole(path)
    said: list[str] = []
    if records is not None:
        kept, said = records
        if not kept:
            raise NoRowsInFile(path, None, f"the {what} have no rows, expected at least one")
        with _in_file(path):
            sheet = read_sheet(kept, columns, what, wide)
        first = 2 if is_workbook(path) else 1

        def blame(row: int | None, message: str) -> VenireError:
            return FileError(
                path, None, message if row is None else f"row {row + first}: {message}"
            )

        return Sheet(sheet.values, sheet.columns, blame, [*said, *sheet.said])
    if is_text(path):
        told = dialect_of(path).said
        said += [f"{path} is {told}"] if told else []
    with _in_file(path, 1 if is_text(path) else None):
        layout = _layout(*file_head(path), columns, what, wide)
    if layout is not None and layout.judges:
        sheet = _melted(layout, _judged(path, layout, what), columns, _blame_in(path, layout))
        return Sheet(sheet.values, sheet.columns, sheet.blame, [*said, *sheet.said])
    called = tuple(columns) if layout is None else layout.columns
    file: FileColumns = read_columns(path, called, what)
    if layout is not None:
        first_column = file.values[0]
        rows = len(first_column.codes if isinstance(first_column, Coded) else first_column)
        said.append(layout.said(rows))
    return Sheet(file.values, called, file.blame, said)


@contextmanager
def _in_file(path: PathOrAddress, line: int | None = None) -> Iterator[None]:
    """Errors about a table as errors about its file."""
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise FileError(path, line, str(error)) from None


def _blame_in(path: PathOrAddress, layout: Layout) -> Blame:
    names = [name for name in (layout.item, *layout.judges) if name is not None]
    return FileColumns(path, [n.lower() for n in names] if is_text(path) else names, []).blame


def is_workbook(path: PathOrAddress) -> bool:
    """Whether a file is a spreadsheet, by its ending."""
    return path.suffix.lower() in (".xlsx", ".xlsm")


def is_text(path: PathOrAddress) -> bool:
    """Whether a file is CSV: whatever has no other ending."""
    return not (is_parquet(path) or is_json_lines(path))


def has_header(path: PathOrAddress) -> bool:
    """Whether a file is a table of its own, and no spreadsheet or export that is read as one."""
    return _whole(path) is None


def _whole(path: PathOrAddress) -> tuple[Any, list[str]] | None:
    """The records of a file that is read as a whole, and what to say of it; None for others."""
    suffix = path.suffix.lower()
    if suffix in _REFUSED:
        raise FileError(path, None, _REFUSED[suffix].format(path))
    if is_workbook(path):
        return _workbook(path), []
    if suffix == ".json":
        return _exported(path, _json(path))
    if is_json_lines(path):
        first = next(read_records(path), None)
        if first is not None and is_export(path, first[1]):
            return _exported(path, [record for _, record in read_records(path)])
    return None


#: Files that are not read, by their endings, and what to do.
_REFUSED: Final = {
    ".xls": "an old Excel file: save it as CSV or .xlsx",
    ".ods": "a spreadsheet of LibreOffice: save it as CSV",
    ".numbers": "a spreadsheet of Numbers: export it as CSV",
    ".xml": (
        "XML, such as CVAT exports, does not say who labelled: write a table with the line "
        "task,worker,label above a row for each image, annotator and tag"
    ),
    ".eval": "a log of Inspect: run `inspect log dump {0} > log.json`, then give log.json",
    ".zip": "an archive: unpack it first",
    ".gz": "compressed: run gunzip first, or pipe it in: `zcat {0} | venire aggregate -`",
}


def _exported(path: PathOrAddress, content: Any) -> tuple[Any, list[str]]:
    records = content if isinstance(content, list) else [content]
    export = export_of(path, records)
    if export is not None:
        return export.records, [export.said]
    if isinstance(content, Mapping):
        inner = [
            v for v in content.values() if isinstance(v, list) and v and isinstance(v[0], dict)
        ]
        if all(isinstance(v, list) for v in content.values()) and not inner:
            return _rows_of(content), []  # an object of columns
        if len(inner) == 1:
            records = inner[0]
    if not all(isinstance(record, Mapping) for record in records):
        raise FileError(
            path,
            None,
            'expected a list of objects such as {"task": 7, "worker": "ann", "label": "ok"}',
        )
    return records, []


def _rows_of(columns: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=False)]


def _json(path: PathOrAddress) -> Any:
    try:
        return parse_json(path.read_bytes())
    except json.JSONDecodeError as error:
        message = f"not JSON ({error.msg.lower()}): one object a line is called .jsonl"
        raise FileError(path, None, message) from None
    except OSError as error:
        raise FileError.unreadable(path, error) from None


def _workbook(path: PathOrAddress) -> list[dict[str, Any]]:
    """The rows of the first sheet of a spreadsheet that has any."""
    try:
        openpyxl: Any = import_module("openpyxl")
    except ImportError:
        raise FileError(
            path,
            None,
            "this spreadsheet is read with openpyxl, which is not installed: save it as CSV, or "
            "run pip install 'venire[data]'",
        ) from None
    try:
        with readable(path) as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets = [
                [
                    row
                    for row in sheet.iter_rows(values_only=True)
                    if any(cell is not None for cell in row)
                ]
                for sheet in book.worksheets
            ]
            book.close()
    except OSError as error:
        raise FileError.unreadable(path, error) from None
    except Exception as error:  # openpyxl's own errors have no common base
        message = f"not a spreadsheet that can be read ({error}): save it as CSV"
        raise FileError(path, None, message) from None
    rows = next((sheet for sheet in sheets if sheet), [])
    if not rows:
        return []
    names = ["" if name is None else str(name).strip() for name in rows[0]]
    return [dict(zip(names, map(_cell, row), strict=False)) for row in rows[1:]]


def _cell(value: Any) -> Any:
    """A cell; spreadsheets keep whole numbers as 3.0."""
    if isinstance(value, str):
        return value.strip()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def file_head(path: PathOrAddress) -> tuple[list[str], dict[str, list[Any]]]:
    """The header of a file, and its first values."""
    if is_parquet(path):
        return _parquet_head(path)
    if is_json_lines(path):
        table = _of_records([record for _, record in islice(read_records(path), _SAMPLE)])
        return list(table), table
    names, rows = read_head(path, _SAMPLE)
    if not names:
        raise FileError(path, None, "the file is empty, expected a header and rows below it")
    columns = [[row[n] if n < len(row) else "" for row in rows] for n in range(len(names))]
    return names, dict(reversed(list(zip(names, columns, strict=True))))


def _parquet_head(path: PathOrAddress) -> tuple[list[str], dict[str, list[Any]]]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise MissingExtra("pyarrow", "data") from None
    try:
        with readable(path) as file:
            reader = parquet.ParquetFile(file)
            batch = next(reader.iter_batches(_SAMPLE), None)
            names = list(reader.schema_arrow.names)
    except (ArrowInvalid, OSError):
        return [*COLUMNS], {}  # whoever reads it says what is wrong
    return names, {name: [] if batch is None else batch[name].to_pylist() for name in names}


def _judged(path: PathOrAddress, layout: Layout, what: str) -> list[list[Any]]:
    """The column of the items, if there is one, and those of the judges."""
    wanted = [name for name in (layout.item, *layout.judges) if name is not None]
    if is_parquet(path):
        return [listed(values) for values in read_columns(path, wanted, what).values]
    if is_json_lines(path):
        records = [record for _, record in read_records(path)]
        return [[record.get(name) for record in records] for name in wanted]
    lower = [name.strip().lower() for name in wanted]
    rows = [[None if x in NAN else x for x in row] for _, row in read_rows(path, lower)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in wanted]
    if layout.item is not None:
        columns[0] = list(as_whole(columns[0]) or columns[0])
    said = [x for column in columns[layout.item is not None :] for x in column if x]
    if as_whole(said):
        for n in range(layout.item is not None, len(columns)):
            columns[n] = [int(x) if x else None for x in columns[n]]
    return columns


def _melted(layout: Layout, values: list[list[Any]], columns: Sequence[str], blame: Blame) -> Sheet:
    """A row for each label that is there, in the order of the items, then of the judges."""
    rows = len(values[0])
    items = list(range(1, rows + 1)) if layout.item is None else values[0]
    judged = values[layout.item is not None :]
    places = [
        (row, judge)
        for row in range(rows)
        for judge in range(len(judged))
        if _is_said(judged[judge][row])
    ]
    if not places:
        raise blame(None, "no judge says anything: expected labels in the columns of the judges")
    row, judge = (np.array(x, np.int64) for x in zip(*places, strict=True))
    labels = _whole_numbers([judged[j][i] for i, j in places])
    try:
        item = coded(items, layout.item or columns[0])
    except Fault as fault:
        raise blame(fault.row, fault.message) from None
    if len(item.names) < rows:
        first: dict[Any, int] = {}
        again = next(n for n, name in enumerate(items) if first.setdefault(name, n) != n)
        message = f"{layout.item} {items[again]!r} is there already, expected a row for each item"
        raise blame(
            again,
            f"{message}: drop one of the rows, or name another column of items with --columns",
        )
    made = [Coded(item.codes[row], item.names), Coded(judge, layout.judges)]
    called = layout.item or columns[0], "judge", "label"

    def blame_cell(place: int | None, message: str) -> VenireError:
        if place is None:
            return blame(None, message)
        return blame(int(row[place]), f"{layout.judges[judge[place]]}: {message}")

    return Sheet([*made, labels], called, blame_cell, [layout.said(rows)])


def _is_said(value: Any) -> bool:
    return (
        value is not None and value == value and (not isinstance(value, str) or value.strip() != "")
    )


def _whole_numbers(values: list[Any]) -> list[Any]:
    """Numbers that dataframes made floats of, because cells were empty, as they were."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers and all(float(v).is_integer() for v in values):
        return [int(v) for v in values]
    return values
