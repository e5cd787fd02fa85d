"""The columns of a dataframe, of a dict, of a few arrays or of rows.

**A column of names as whole numbers: 0 for the first name that appears, 1 for the next, ...**

Whole numbers that lie close together are coded by looking them up in an array, everything else
by hashing; nothing is sorted and, where the column is an array, no Python object is made for a
row.

Names as files and command lines write them: text that may be a whole number.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.tools.lazy import library

if TYPE_CHECKING:
    from venire.labels import Codes, Names

#: As Python writes a whole number, within 64 bits.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def as_whole(names: Iterable[Any]) -> tuple[int, ...] | None:
    """The names as whole numbers if every one is written as Python writes it, else None.

    >>> as_whole(["7", "-12", "0"]), as_whole(["007"]), as_whole(["1.0"]), as_whole(["7", "x"])
    ((7, -12, 0), None, None, None)
    """
    listed = list(names)
    if all(isinstance(name, str) and _WHOLE.fullmatch(name) for name in listed):
        return tuple(map(int, listed))
    return None


def as_text(names: Iterable[Any]) -> tuple[Any, ...]:
    """Whole numbers as text, everything else as it is.

    >>> as_text([7, "x", 0.5])
    ('7', 'x', 0.5)
    """
    return tuple(str(name) if _is_whole(name) else name for name in names)


def like(names: Iterable[Any], others: Iterable[Any]) -> tuple[Any, ...]:
    """Names written so that they can be found among others: two files may disagree on a type.

    >>> like([7, 8], ["7", "x"]), like(["7", "x"], [7, 8])
    (('7', '8'), (7, 'x'))
    """
    kinds = {type(name) for name in others}
    if kinds == {str}:
        return as_text(names)
    if kinds == {int}:
        return tuple((as_whole([name]) or (name,))[0] for name in names)
    return tuple(names)


def _is_whole(name: Any) -> bool:
    return isinstance(name, int) and not isinstance(name, bool)


#: Up to this many distinct integers the names are a tuple, beyond it an array.
MANY = 2**20


@dataclass(frozen=True, slots=True)
class Coded:
    """The code of each row, and what the codes stand for."""

    codes: Codes
    names: Names


class Fault(Exception):
    """What is wrong with a row (the first is 0); the caller knows where it came from.

    The row is None where the column as a whole is wrong.
    """

    def __init__(self, row: int | None, message: str) -> None:
        self.row, self.message = row, message
        super().__init__(f"row {row}: {message}")


def coded(values: Any, column: str) -> Coded:
    """Code a column: an array of NumPy or pyarrow, a list or a tuple.

    >>> coded(["b", "a", "b"], "worker").names
    ('b', 'a')
    >>> coded(np.array([30, 10, 30]), "task")
    Coded(codes=array([0, 1, 0], dtype=int32), names=(30, 10))
    """
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _arrow(values, column)
    if not isinstance(values, np.ndarray):
        values = list(values)
        if set(map(type, values)) == {int}:
            made = np.asarray(values)  # beyond 64 bits these are objects, or floats
            values = made if made.dtype.kind in "iu" else values
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iub" and values.ndim == 1:
            return _whole(values)
        if values.dtype.kind == "f":
            return _floats(values, column)
        values = values.tolist() if values.dtype.kind not in "mM" else list(values)
    return _objects(values, column)


def first_row(values: Coded, code: int) -> int:
    return int(np.argmax(values.codes == code))


def _whole(values: NDArray[Any]) -> Coded:
    n = values.size
    low, high = int(values.min()), int(values.max())
    if high - low >= max(2 * n, 2**16) or high >= 2**63:
        return _scattered(values)
    offset = values.astype(np.intp) - low
    size: type[np.integer[Any]] = np.int32 if n < 2**31 else np.int64
    first: NDArray[Any] = np.full(high - low + 1, -1, size)
    first[offset[::-1]] = np.arange(n - 1, -1, -1, dtype=size)  # the last one written stays
    present = np.flatnonzero(first >= 0)
    order = present[np.argsort(first[present], kind="stable")]
    first[order] = np.arange(order.size, dtype=size)
    return Coded(first[offset], _names(order + low, values.dtype.kind == "b"))


def _scattered(values: NDArray[Any]) -> Coded:
    try:
        import pyarrow as pa
    except ImportError:
        distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(order.size, np.int32)
        rank[order] = np.arange(order.size, dtype=np.int32)
        return Coded(rank[codes], _names(distinct[order]))
    made = pa.array(values).dictionary_encode()
    return Coded(
        np.asarray(np.from_dlpack(made.indices), np.int32), _names(made.dictionary.to_numpy())
    )


def _names(distinct: NDArray[Any], truths: bool = False) -> Names:
    if truths:
        return tuple(bool(value) for value in distinct)
    if distinct.dtype.kind in "iu" and distinct.size:
        start, n = int(distinct[0]), distinct.size
        if int(distinct[-1]) == start + n - 1 and bool((np.diff(distinct) == 1).all()):
            return range(start, start + n) if n > 2**10 else tuple(distinct.tolist())
    return tuple(distinct.tolist()) if distinct.size <= MANY else distinct


def _floats(values: NDArray[Any], column: str) -> Coded:
    empty = np.isnan(values)
    if empty.any():
        raise Fault(int(np.argmax(empty)), missing(column, "NaN"))
    return _scattered(values)


def _objects(values: Sequence[Any], column: str) -> Coded:
    kinds = {kind: _kind(kind) for kind in set(map(type, values))}
    if len(set(kinds.values())) > 1:
        _explain_mixture(values, kinds, column)
    try:
        codes = {name: i for i, name in enumerate(dict.fromkeys(values))}
    except TypeError:
        raise _unhashable(values, column) from None
    made = Coded(np.fromiter(map(codes.__getitem__, values), np.int32, len(values)), tuple(codes))
    return _checked(made, column)


def _arrow(values: Any, column: str) -> Coded:
    import pyarrow as pa

    values = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if values.null_count:
        row = values.is_null().index(pa.scalar(True)).as_py()
        raise Fault(row, missing(column, "missing"))
    kind = values.type
    try:
        return _arrow_kind(values, kind, column)
    except pa.ArrowNotImplementedError:
        return _objects(values.to_pylist(), column)  # lists and the like, which have no hash


def _arrow_kind(values: Any, kind: Any, column: str) -> Coded:
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return coded(values.to_numpy(), column)
    if pa.types.is_dictionary(kind) and values.num_chunks > 1:
        values = values.cast(kind.value_type)  # each chunk has a dictionary of its own
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()  # and here all of them have the same
    chunks = values.chunks
    # by neither `to_numpy` nor `pa.array`: both import pandas where it is installed, a second
    made = _whole(np.concatenate([np.from_dlpack(chunk.indices) for chunk in chunks]))
    names = chunks[0].dictionary.to_pylist()
    return _checked(Coded(made.codes, tuple(names[i] for i in made.names)), column)


def _checked(made: Coded, column: str) -> Coded:
    """Without names that are missing or blank."""
    for code, name in enumerate(made.names):
        if name is None or name != name or (isinstance(name, str) and not name.strip()):
            shown = "missing" if name is None else "empty" if isinstance(name, str) else str(name)
            raise Fault(first_row(made, code), missing(column, shown))
    return made


def _kind(cls: type) -> str:
    """What counts as one kind of name: 1 and 2.0 do, 1 and "1" or True do not."""
    if issubclass(cls, bool | np.bool_):
        return "true or false"
    if issubclass(cls, int | float | np.number):
        return "a number"
    return {str: "text", type(None): "nothing"}.get(cls, f"a {cls.__name__}")


def _explain_mixture(values: Sequence[Any], kinds: dict[type, str], column: str) -> None:
    for row, value in enumerate(values):
        if value is None or (isinstance(value, float) and value != value):
            raise Fault(row, missing(column, "missing"))
    first = kinds[type(values[0])]
    row = next(i for i, value in enumerate(values) if kinds[type(value)] != first)
    raise Fault(
        row,
        f"{column} is {values[row]!r}, {kinds[type(values[row])]}, and {values[0]!r} in the first "
        f"row, {first}: mixed types, expected all of one: convert the column",
    )


def _unhashable(values: Sequence[Any], column: str) -> Fault:
    for row, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            message = f"{column} is a {type(value).__name__}, expected a number, text or the like"
            return Fault(row, message)
    raise AssertionError("all of the values can be hashed")  # pragma: no cover


def missing(column: str, shown: str) -> str:
    return (
        f"{column} is {shown}, expected a value in every row: fill it in, or drop the row (in a "
        "dataframe by dropna())"
    )


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
