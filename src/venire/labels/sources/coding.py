"""A column of names as whole numbers: 0 for the first name that appears, 1 for the next, ...

Whole numbers that lie close together are coded by looking them up in an array, everything else
by hashing; nothing is sorted and, where the column is an array, no Python object is made for a
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.labels import Codes, Names

__all__ = ["Coded", "Fault", "coded", "first_row", "missing"]

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
    """The first row with a code."""
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
    """What to say of a missing value."""
    return f"{column} is {shown}, expected a value in every row: fill it in, or drop the row"
