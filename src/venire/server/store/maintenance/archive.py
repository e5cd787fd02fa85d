"""A whole store as lines of JSON, from any kind of store into any other.

The first line says what it is, the last one how many rows of each table there are and what the
SHA-256 of all lines before it is; every other is a table's name and a row of it. Bytes are in
base64. The store's own named values are left out: a new server makes its own. This is how a
store moves from SQLite to PostgreSQL, and how one in PostgreSQL is backed up without its tools.

An archive that is not complete is refused before anything is written. While one is restored, the
store is marked, and nobody may open it until that is done: see `opening`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from venire.errors import FileError, StoreError
from venire.server.store import changes as c
from venire.server.store import records as r
from venire.server.store.maintenance.export import replacing
from venire.server.store.opening import RESTORING
from venire.server.store.record import Record
from venire.tools.untrusted import is_file_name, parse_json

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage

#: The format that is written. Archives of format 1 have no last line with counts and digest.
FORMAT = 2

_CHUNK = 5_000

NAMES = "letters, digits, dots, dashes and underscores"


def write_archive(storage: Storage, target: Path) -> int:
    """Write everything in a store, which may be in use; returns the number of rows."""
    counts: Counter[str] = Counter()
    digest = hashlib.sha256()
    with storage.frozen(), replacing(target) as file:

        def write(value: Any) -> None:
            line = json.dumps(value, ensure_ascii=False) + "\n"
            digest.update(line.encode())
            file.write(line)

        write({"venire": "store", "format": FORMAT})
        for row in _records(storage):
            write([row.TABLE.name, *map(_text, row)])
            counts[row.TABLE.name] += 1
        write({"rows": counts, "sha256": digest.hexdigest()})
    return counts.total()


def _records(storage: Storage) -> Iterator[Any]:
    """Every row, in the order in which they can be inserted."""
    yield from storage.keys()
    yield from storage.all_audit()
    for stream in storage.streams():
        name = stream.name
        yield stream
        yield from storage.settings(name)
        yield from storage.segments(name)  # the log goes on there
        yield from storage.all_archived(name)
        yield from storage.all_events(name)
        yield from storage.engines(name)
        for n in storage.snapshot_numbers(name):
            snapshot = storage.snapshot(name, n)
            yield from [] if snapshot is None else [snapshot]
        yield from storage.all_items(name)
        yield from storage.all_revisions(name)
        yield from storage.checks(name)
        yield from storage.all_gold(name)
        yield from storage.alarms(name)
        yield from storage.follows(name)
        yield from storage.routed(name)
        yield from storage.all_labels(name)
        yield from storage.repeats(name)
        yield from storage.leases(name, None)
        yield from storage.all_notes(name)
        for hook in storage.webhooks(name):
            yield hook
            yield from storage.deliveries(hook.id)


def _text(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def read_archive(storage: Storage, source: Path) -> int:
    """Restore an archive into an empty store; returns the number of rows.

    >>> import tempfile
    >>> from venire.server.store import Insert, StreamRow, open_storage
    >>> one, other = open_storage("memory:"), open_storage("memory:")
    >>> one.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(one, Path(folder, "a.ndjson")), read_archive(
    ...         other, Path(folder, "a.ndjson")
    ...     )
    (1, 1)
    >>> other.streams() == one.streams()
    True
    """
    if storage.streams() or storage.deleted_streams() or storage.keys():
        raise StoreError(f"the store {storage.url} is not empty: restore into a new one")
    if not source.is_fifo():  # which can be read only once
        for line in _lines(source):
            _row(source, *line)
    storage.write([c.SetMeta(RESTORING, source.name)])
    count = 0
    parsed = (_row(source, *line) for line in _lines(source, warn=True))
    for _, group in groupby(parsed, key=lambda pair: pair[0]):
        rows = (row for _, row in group)
        while some := list(islice(rows, _CHUNK)):
            storage.write([c.Insert(some)])
            count += len(some)
    storage.write([c.SetMeta(RESTORING, "")])
    return count


def _lines(source: Path, warn: bool = False) -> Iterator[tuple[int, Any]]:
    """Every row with the number of its line; an error if the archive is not complete."""
    digest, counts, end = hashlib.sha256(), Counter[str](), None
    try:
        with open(source, "rb") as file:
            first = next(file, b"null")
            form = _format(source, first)
            digest.update(first)
            for number, line in enumerate(file, 2):
                if end is not None:
                    raise FileError(
                        source, number, "there are lines after its end: use another copy"
                    )
                value = _value(source, number, line)
                if isinstance(value, dict):
                    end = value
                    continue
                digest.update(line)
                counts[value[0]] += 1
                yield number, value
    except OSError as error:
        raise FileError(source, None, f"cannot be read: {error.strerror}") from None
    if form > 1:
        _check_end(source, end, counts, digest.hexdigest())
    elif warn:
        warnings.warn(
            f"{source} was written by an earlier version, and does not say how many rows it "
            f"should have: compare the {counts.total():,} rows with what you know, and run venire "
            "verify",
            stacklevel=3,
        )


def _value(source: Path, number: int, line: bytes) -> Any:
    """The value of a line: a table's name and a row, or the end with its counts."""
    try:
        value = parse_json(line)
    except ValueError as error:
        raise FileError(source, number, f"it was cut off here, or changed: {error}") from None
    if isinstance(value, dict) or (isinstance(value, list) and value and value[0] in _RECORDS):
        return value
    raise FileError(source, number, f"got {line[:40]!r}, expected a row of a known table")


def _format(source: Path, line: bytes) -> int:
    """The format of an archive by its first line."""
    if line.startswith(b"SQLite format 3\0"):
        raise FileError(
            source,
            None,
            "this is a store itself, not an archive: serve it with --storage "
            f"sqlite:///{source}, or stop the server and copy it over the old one, "
            "whose -wal and -shm files must be removed",
        )
    try:
        head = parse_json(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("venire") != "store":
        raise FileError(source, 1, "this is not an archive of venire: make one with venire backup")
    form = head.get("format")
    if form not in (1, FORMAT):
        raise FileError(source, 1, f"its format is {form}, expected at most {FORMAT}: upgrade")
    return int(form)


def _check_end(source: Path, end: Any, counts: Counter[str], digest: str) -> None:
    if end is None:
        raise FileError(
            source,
            None,
            f"it stops after {counts.total():,} rows without an end: it was cut off, use another "
            "copy",
        )
    expected = end.get("rows")
    if expected != counts:
        raise FileError(source, None, f"it has rows {dict(counts)}, its end says {expected}")
    if end.get("sha256") != digest:
        raise FileError(
            source, None, "its SHA-256 is not what its end says: it was changed, use another copy"
        )


def _row(source: Path, line: int, listed: Any) -> tuple[str, Record]:
    try:
        table, *values = listed
        kind = _RECORDS[table]
        if kind is r.SnapshotRow:
            values[-1] = base64.b64decode(values[-1])
        row = kind.load(values)
        if isinstance(row, r.StreamRow | r.SegmentRow) and row.name and not is_file_name(row.name):
            raise ValueError(f"got the name {row.name!r}, expected {NAMES}")
        return table, row
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(source, line, f"is not a valid row: {error}") from None


#: What an archive has rows of: all but the tallies, which are counted again.
_RECORDS: Final = {x.TABLE.name: x for x in r.RECORDS if x is not r.TallyRow}
