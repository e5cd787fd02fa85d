"""CSV tables with a header, read record by record.

Fields may be separated by commas, semicolons, tabs or bars, and the text may be UTF-8, UTF-16 or
Windows-1252 (which Latin-1 is nearly always): `dialect_of` finds out. Columns may be in any order;
unknown ones are ignored, unless the name is close to one that is missing. An invalid file raises a
`FileError` with the line on which the record starts (the header is line 1) and what to do about it.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from venire.errors import FileError
from venire.tools.addresses import Address, PathOrAddress, Piped, located

#: The line on which a record starts, and its fields; None where the column is not there.
Row: TypeAlias = tuple[int, list[str | None]]

_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

#: Bytes that are looked at first, and up to how many a file of this machine is checked as a whole.
_FIRST, _MOST = 1 << 16, 1 << 28

#: How files begin that are not text, and what to do with them.
_MAGIC: Final = {
    b"PK\x03\x04": "a spreadsheet or a zip archive: name a spreadsheet .xlsx, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls): save it as CSV",
    b"PAR1": "Parquet: name it .parquet",
    b"\x1f\x8b": "compressed: run gunzip first",
    b"%PDF": "a PDF: save the table as CSV",
    b"\x89PNG": "a picture: expected a table of text",
}

#: The first line by which Excel is told the separator.
_SEP_LINE: Final = re.compile(r"\ufeff?\"?sep=(.)\"?\s*", re.I)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a table is written: its encoding, its separator, and the lines above its header."""

    encoding: str = "utf-8-sig"
    separator: str = ","
    skipped: int = 0

    @property
    def said(self) -> str:
        """What is unusual about it; empty if nothing is.

        >>> Dialect().said, Dialect("cp1252", ";").said
        ('', 'separated by semicolons, in Windows-1252 (Latin-1), as it is not UTF-8')
        """
        by = "" if self.separator == "," else f"separated by {_SEPARATORS[self.separator]}"
        named = {"cp1252": "Windows-1252 (Latin-1), as it is not UTF-8", "latin-1": "Latin-1"}
        written = "" if self.encoding == "utf-8-sig" else self.encoding.upper()
        written = f"in {named.get(self.encoding, written)}" if written else ""
        return ", ".join(filter(None, (by, written)))


def dialect_of(path: PathOrAddress) -> Dialect:
    r"""Find out how a table is written, by its first bytes and its header.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "labels.csv")
    ...     _ = file.write_text("item;annotator;rating\n1;José;5\n", encoding="latin-1")
    ...     dialect_of(file)
    Dialect(encoding='cp1252', separator=';', skipped=0)
    """
    if isinstance(path, Path) and path.exists() and not path.is_file():
        return Dialect()  # a pipe can be read once
    try:
        start = _start(path)
    except OSError as error:
        raise FileError.unreadable(path, error) from None
    refuse_binary(path, start)
    encoding = _encoding(path, start)
    text = start.decode(encoding, errors="ignore")
    told = _SEP_LINE.match(text.partition("\n")[0])
    if told is not None and told[1] in _SEPARATORS:
        return Dialect(encoding, told[1], 1)
    header = text.lstrip("\r\n \ufeff")
    return Dialect(encoding, max(_SEPARATORS, key=lambda s: len(_header(header, s))))


def refuse_binary(path: PathOrAddress, start: bytes) -> None:
    for magic, what in _MAGIC.items():
        if start.startswith(magic):
            raise FileError(path, None, f"this is not text, but {what}")


def _start(path: PathOrAddress) -> bytes:
    if isinstance(path, Address):
        with path.stream() as stream:
            return bytes(stream.read(None if isinstance(path, Piped) else _FIRST))
    with path.open("rb") as file:
        return file.read(_FIRST)


def _encoding(path: PathOrAddress, start: bytes) -> str:
    """UTF-8 if it can be, UTF-16 if it says so or every second byte is 0, else Windows-1252."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = start[::2].count(0), start[1::2].count(0)
    if any(zeros):
        if min(zeros) == 0 and max(zeros) > 0.3 * len(start) / 2:
            return "utf-16-be" if zeros[0] else "utf-16-le"
        raise FileError(path, None, "this is not text: it has zero bytes; save the table as CSV")
    if _is_utf8(path, start):
        return "utf-8-sig"
    data = start if isinstance(path, Address) else path.read_bytes()[:_MOST]
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _is_utf8(path: PathOrAddress, start: bytes) -> bool:
    """Whether the text is UTF-8: all of it, if it is a file of this machine and not huge."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(start)
        if isinstance(path, Path) and len(start) == _FIRST and path.stat().st_size <= _MOST:
            with path.open("rb") as file:
                file.seek(_FIRST)
                while piece := file.read(1 << 20):
                    if not piece.isascii() or decoder.getstate()[0]:
                        decoder.decode(piece)
    except UnicodeDecodeError:
        return False
    return True


def _header(text: str, separator: str) -> list[str]:
    """The fields of the first record."""
    try:
        return next(csv.reader(text.splitlines(keepends=True), delimiter=separator), [])
    except csv.Error:
        return []


def read_head(path: PathOrAddress, most: int = 1000) -> tuple[list[str], list[list[str]]]:
    r"""The names in the header as they are written, and the first records below it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "labels.csv")
    ...     _ = file.write_text("Item;Annotator\n1;ann\n")
    ...     read_head(file)
    (['Item', 'Annotator'], [['1', 'ann']])
    """
    with _opened(path) as records:
        _, header = next(records, (1, []))
        return [name.strip() for name in header], [
            [field.strip() for field in record] for _, record in islice(records, most)
        ]


def read_dicts(path: PathOrAddress) -> Iterator[tuple[int, dict[str, str]]]:
    r"""The records of a file with all their fields, by the names in the header.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "posts.csv")
    ...     _ = file.write_text("Id;text\n1;Buy, now!\n")
    ...     list(read_dicts(file))
    [(2, {'Id': '1', 'text': 'Buy, now!'})]
    """
    for line, record in read_each(path):
        if isinstance(record, str):
            raise FileError(path, line, record)
        yield line, record


def read_each(path: PathOrAddress) -> Iterator[tuple[int, dict[str, str] | str]]:
    with _opened(path) as records:
        _, header = next(records, (1, []))
        if not header:
            raise FileError(path, None, "the file is empty, expected a header and rows below it")
        names = [name.strip() for name in header]
        for line, record in records:
            if len(record) != len(names):
                yield line, _wrong_width(record, names)
            else:
                yield line, {n: x.strip() for n, x in zip(names, record, strict=True)}


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
    with _opened(path) as records:
        yield from _pick(path, records, required, optional)


@contextmanager
def _opened(path: PathOrAddress) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """The records of a file, the header first, with the lines on which they start."""
    place = located(path)
    dialect = dialect_of(place)
    try:
        with place.open(encoding=dialect.encoding, newline="") as file:
            for _ in range(dialect.skipped):
                file.readline()
            reader = csv.reader(
                file, delimiter=dialect.separator, skipinitialspace=True, strict=True
            )
            yield _records(path, reader, dialect.skipped)
    except UnicodeDecodeError:
        message = "this is not UTF-8 text: save the file as CSV in UTF-8"
        raise FileError(path, _undecodable_line(path), message) from None
    except OSError as error:
        raise FileError.unreadable(path, error) from None


def _records(path: PathOrAddress, reader: Any, above: int) -> Iterator[tuple[int, list[str]]]:
    """Records with the line on which they start, without blank lines."""
    while True:
        line = reader.line_num + 1 + above
        try:
            record = next(reader, None)
        except csv.Error as error:
            message = f"not CSV ({error}): close every quote, and double a quote inside quotes"
            raise FileError(path, line, message) from None
        if record is None:
            return
        if any(field.strip() for field in record):  # spreadsheets end with rows of separators
            yield line, record


def _pick(
    path: PathOrAddress,
    records: Iterator[tuple[int, list[str]]],
    required: Sequence[str],
    optional: Sequence[str],
) -> Iterator[Row]:
    line, header = next(records, (1, []))
    if not header:
        raise FileError(
            path, None, f"the file is empty, expected the columns {', '.join(required)}"
        )
    names = [name.strip().lower() for name in header]
    _check_header(path, line, names, required, optional)
    where = [names.index(c) if c in names else -1 for c in (*required, *optional)]
    width = len(names)
    for line, record in records:
        if len(record) != width:
            raise FileError(path, line, _wrong_width(record, names))
        yield line, [record[i].strip() if i >= 0 else None for i in where]


def _wrong_width(record: Sequence[str], names: Sequence[str]) -> str:
    got = "1 field" if len(record) == 1 else f"{len(record)} fields"
    message = f"the line has {got}, expected {len(names)} as in the header ({', '.join(names)})"
    return f"{message}: quote fields that contain the separator"


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
        message = f"there is no column {missing[0]!r}, got {', '.join(names)}"
        raise FileError(path, line, f"{message}: add it (expected {', '.join(required)})")
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None and twice not in strange:
        raise FileError(path, line, f"there are two columns {twice!r}: drop one")


def _no_header(names: list[str], required: Sequence[str]) -> str:
    got = shown(", ".join(names))
    return (
        f"there is no column {required[0]!r}, got {got}: if that is a header, rename its columns; "
        f"if it is the first row, write {','.join(required)} above it"
    )


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
