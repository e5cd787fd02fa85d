"""The columns of a dataframe, of a dict, of a few arrays or of rows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from venire.errors import InputError
from venire.tools.extras import library

__all__ = ["FRAMES", "NoRows", "columns_of", "pick"]

#: The packages whose objects are dataframes.
FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals", "dask", "duckdb")


class NoRows(InputError):
    """There are columns, but no rows."""


def columns_of(source: Any, columns: Sequence[str], what: str) -> list[Any]:
    """The columns by name, or by place where a source has no names; all of one length.

    >>> columns_of({"worker": ["ann"], "task": [1], "label": ["no"]}, ("task", "worker"), "labels")
    [[1], ['ann']]
    >>> columns_of([(1, "ann", "no"), (2, "ann", "yes")], ("task", "worker", "label"), "labels")
    [(1, 2), ('ann', 'ann'), ('no', 'yes')]
    """
    width = len(columns)
    if isinstance(source, Mapping):
        found = [source[pick(column, list(source), what)] for column in columns]
    elif type(source).__module__.partition(".")[0] in FRAMES:
        found = _frame(source, columns, what)
    elif isinstance(source, tuple) and len(source) == width and all(map(_is_array, source)):
        found = list(source)
    elif isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == width:
        found = list(source.T)
    else:
        found = _rows(source, columns, what)
    found = [_series(values) for values in found]
    _check_lengths(found, columns, what)
    return found


def pick(column: str, names: Sequence[Any], what: str) -> str:
    """The column, if it is there.

    >>> pick("worker", ["task", "wroker", "label"], "labels")
    Traceback (most recent call last):
    venire.errors.InputError: the labels have no column 'worker': did you mean it by 'wroker'? ...
    """
    if column in names:
        return column
    known = [str(name) for name in names]
    near = difflib.get_close_matches(column, known, n=1, cutoff=0.6)
    hint = f"did you mean it by {near[0]!r}? Rename it" if near else "add or rename it"
    raise InputError(f"the {what} have no column {column!r}: {hint} (got {', '.join(known)})")


def _is_array(values: Any) -> bool:
    """Whether it is a column, not a row: rows are tuples."""
    return not isinstance(values, str | bytes | tuple) and hasattr(values, "__len__")


def _series(values: Any) -> Any:
    """A Series as an array; arrays and lists as they are."""
    if type(values).__module__.partition(".")[0] in FRAMES[:2]:
        if type(values).__module__.startswith("pandas"):
            import pandas as pd

            values = pd.Series(values)  # an array or an index of pandas, with its missing values
        return _array(library("narwhals", "data").from_native(values, series_only=True))
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"a column has {values.ndim} dimensions, expected 1")
    return values


def _frame(source: Any, columns: Sequence[str], what: str) -> list[Any]:
    nw = library("narwhals", "data")
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise InputError(f"cannot read labels from a {type(source).__name__}") from None
    if isinstance(frame, nw.LazyFrame):
        names = frame.collect_schema().names()
        frame = frame.select([pick(column, names, what) for column in columns]).collect()
    names = frame.columns
    return [_array(frame[pick(column, names, what)]) for column in columns]


def _array(series: Any) -> Any:
    """A column as numbers of NumPy or as an array of pyarrow; else its values as a list."""
    dtype = series.dtype
    if (dtype.is_integer() or dtype.is_float()) and not series.null_count():
        return series.to_numpy()
    try:
        import pyarrow as pa
    except ImportError:
        return series.to_list()
    try:
        return series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return series.to_list()  # objects of more than one type, or of one that pyarrow lacks


def _rows(source: Any, columns: Sequence[str], what: str) -> list[Any]:
    wanted = f"({', '.join(columns)})"
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise InputError(
            f"cannot read {what} from a {type(source).__name__}, expected a dataframe, "
            f"{len(columns)} arrays, {wanted} rows or the path of a CSV, Parquet or JSON Lines file"
        )
    rows = [row if isinstance(row, tuple | list) else _row(row, wanted) for row in source]
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise InputError(
                f"row {i} (the first is 0) has {len(row)} values, expected {wanted}: {row!r}"
            )
    return list(zip(*rows, strict=True)) or [()] * len(columns)


def _row(row: Any, wanted: str) -> tuple[Any, ...]:
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise InputError(f"got {row!r} for a row, expected {wanted}")
    return tuple(row)


def _check_lengths(found: Sequence[Any], columns: Sequence[str], what: str) -> None:
    lengths = {column: len(values) for column, values in zip(columns, found, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns differ in length: {lengths}")
    if not lengths[columns[0]]:
        raise NoRows(f"the {what} have no rows, expected at least one")
