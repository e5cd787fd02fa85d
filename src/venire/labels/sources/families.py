"""The family of each labeler, where a table of labels says it: a column beside the others."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

from venire.errors import FileError, InputError
from venire.labels.partitions import Table
from venire.labels.sources.columns import columns_of, like
from venire.labels.sources.files import is_json_lines, is_parquet, is_path, read_columns
from venire.labels.sources.headers import LABELER, role_names
from venire.labels.sources.sheets import file_head, has_header, listed
from venire.tools.addresses import PathOrAddress, located, readable
from venire.tools.csv_rows import read_rows

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
