"""The columns of a CSV, Parquet or JSON Lines file; labels in what other programs write.

A CSV file is read by pyarrow if that is installed. Files that it cannot read, and quoted or padded
fields, which it parses differently, are read again by the csv module, which names the line of an
error; without pyarrow the csv module reads everything. Both give the same columns.

Exports of Prodigy, Argilla, promptfoo and Inspect are known by their fields. What they say becomes
(task, worker, label) records; what has no single class is left out and counted. Exports that do not
say who gave a label, or are read by a command of their own, are refused with what to do.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

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
        raise FileError.unreadable(path, error) from None


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
        # `to_numpy` would import pandas where it is installed
        numbers = np.asarray(np.from_dlpack(texts.cast(pa.int64()).combine_chunks()), np.int64)
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
        raise FileError.unreadable(path, error) from None
    if not table.num_rows:
        raise NoRowsInFile(path, None, f"the {what} have no rows, expected at least one")
    return [table[name] for name in taken]


Record = Mapping[str, Any]

#: How the column of those who answered a question of Argilla ends.
_USERS: Final = ".responses.users"

#: A task, a worker and a label; None for a label that is left out.
Said = tuple[Any, Any, Any]


class Export(NamedTuple):
    """The labels of an export as records, and what they were taken from."""

    records: list[dict[str, Any]]
    said: str


def export_of(path: PathOrAddress, records: Sequence[Any]) -> Export | None:
    """The labels, if the records are those of a known program; None if they are not.

    >>> from pathlib import Path
    >>> one = {"text": "x", "_input_hash": 7, "_session_id": "t-ann", "answer": "accept"}
    >>> made = export_of(Path("t.jsonl"), [{**one, "accept": ["spam"]}])
    >>> made.records
    [{'task': 7, 'worker': 't-ann', 'label': 'spam'}]
    """
    found = [record for record in records if isinstance(record, Mapping)]
    if not found or len(found) < len(records) or not is_export(path, found[0]):
        return None
    program = _program(found[0])
    try:
        rows = list(_PROGRAMS[program][1](path, found))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        message = f"this is not as {program} writes it ({error!r}): write task,worker,label"
        raise FileError(path, None, message) from None
    kept = [row for row in rows if row[2] is not None]
    if not kept:
        raise FileError(path, None, f"this export of {program} has no label of one class")
    left = len(rows) - len(kept)
    said = f"read {len(kept):,} labels from an export of {program}"
    return Export(
        [dict(zip(("task", "worker", "label"), row, strict=True)) for row in kept],
        said + (f"; left out {left:,} without a single class" if left else ""),
    )


def is_export(path: PathOrAddress, record: Any) -> bool:
    """Whether a record is of a known program; an error if it is one that is not read."""
    if not isinstance(record, Mapping):
        return False
    _refuse(path, record)
    return bool(_program(record))


def _program(record: Record) -> str:
    known = (
        name for name, (fields, _) in _PROGRAMS.items() if all(_has(record, f) for f in fields)
    )
    flat = any(str(name).endswith(_USERS) for name in record)
    return "Argilla on the Hugging Face Hub" if flat else next(known, "")


def _has(record: Record, field: str) -> bool:
    place: Any = record
    for part in field.split("/"):
        if not isinstance(place, Mapping) or part not in place:
            return False
        place = place[part]
    return True


def _refuse(path: PathOrAddress, first: Record) -> None:
    if "annotation_id" in first or "completions" in first or {"data", "annotations"} <= set(first):
        message = "this is an export of Label Studio: run `venire import label-studio {0}`, then"
        message = message.format(path) + " give labels.csv, which it writes"
        raise FileError(path, None, message)
    if {"id", "text", "label"} <= set(first) and isinstance(first["label"], list):
        raise FileError(
            path,
            None,
            "this looks like an export of doccano, which does not say who labelled: it writes a "
            "file for each annotator; add the name to each, as in `jq -c "
            "'{task: .id, worker: \"ann\", label: .label[0]}' ann.jsonl >> labels.jsonl`",
        )


def _one(values: Any) -> Any:
    """The only one of several classes."""
    if isinstance(values, list):
        return values[0] if len(values) == 1 else None
    return None if isinstance(values, dict) else values


def _prodigy(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """A choice is about an input; yes or no about an input with its label, which is the task."""
    for record in records:
        who = record.get("_annotator_id") or record.get("_session_id")
        if who is None:
            raise FileError(
                path,
                None,
                "this export of Prodigy does not say who annotated: open it with ?session=NAME in "
                "the address, or add _annotator_id to each line",
            )
        if record.get("answer") == "ignore":
            yield record["_input_hash"], who, None
        elif "accept" in record:
            wrong = record.get("answer") == "reject"
            yield record["_input_hash"], who, None if wrong else _one(record["accept"])
        else:
            yield record.get("_task_hash", record["_input_hash"]), who, record["answer"]


def _argilla(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """The answers to the only question, each with its user."""
    questions = dict.fromkeys(name for one in records for name in one["responses"] or ())
    if len(questions) != 1:
        raise FileError(
            path,
            None,
            f"this export of Argilla has the questions {', '.join(questions) or '(none)'}: export "
            "one question, or write task,worker,label",
        )
    (question,) = questions
    for number, record in enumerate(records):
        for answer in (record["responses"] or {}).get(question) or ():
            yield record.get("id", number), answer.get("user_id"), _one(answer.get("value"))


def _argilla_flat(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """As Argilla writes to the Hugging Face Hub: lists of answers and of their users."""
    names = [name.removesuffix(_USERS) for name in records[0] if name.endswith(_USERS)]
    if len(names) != 1:
        raise FileError(path, None, f"it has the questions {', '.join(names)}, expected one")
    for number, record in enumerate(records):
        said, users = record.get(f"{names[0]}.responses"), record.get(f"{names[0]}{_USERS}")
        for user, value in zip(users or (), said or (), strict=True):
            yield record.get("id", number), user, _one(value)


def _promptfoo(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    """Each output is an item, each assertion a judge of it."""
    results = records[0]["results"]["results"]
    for number, result in enumerate(results):
        provider = result.get("provider") or {}
        name = provider.get("id", number) if isinstance(provider, Mapping) else provider
        item = f"{result.get('testIdx', number)}/{result.get('promptIdx', 0)}/{name}"
        seen: dict[str, int] = {}
        for part in (result.get("gradingResult") or {}).get("componentResults") or ():
            about = part.get("assertion") or {}
            judge = str(about.get("metric") or about.get("provider") or about.get("type"))
            seen[judge] = seen.get(judge, 0) + 1
            judge = judge if seen[judge] == 1 else f"{judge} {seen[judge]}"
            yield item, judge, "pass" if part.get("pass") else "fail"


def _inspect(path: PathOrAddress, records: Sequence[Record]) -> Iterator[Said]:
    for sample in records[0]["samples"]:
        epoch = sample.get("epoch", 1)
        item = sample["id"] if epoch == 1 else f"{sample['id']}/{epoch}"
        for scorer, score in (sample.get("scores") or {}).items():
            yield str(item), scorer, _one(score.get("value"))


#: The fields by which a program is known, and what reads its records.
_PROGRAMS: Final[dict[str, tuple[tuple[str, ...], Callable[..., Iterator[Said]]]]] = {
    "Prodigy": (("_input_hash", "answer"), _prodigy),
    "Argilla": (("responses", "fields"), _argilla),
    "Argilla on the Hugging Face Hub": ((_USERS,), _argilla_flat),
    "promptfoo": (("results/results",), _promptfoo),
    "Inspect": (("eval", "samples"), _inspect),
}
