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
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from venire.errors import FileError, StoreError
from venire.model import ItemStatus
from venire.server.store import changes as c
from venire.server.store import rows as r
from venire.server.store.base import Storage
from venire.server.store.maintenance.export import replacing
from venire.server.store.opening import RESTORING
from venire.tools.untrusted import is_file_name, parse_json

__all__ = ["read_archive", "write_archive"]

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
        for table, row in _rows(storage):
            write([table, *map(_text, row)])
            counts[table] += 1
        write({"rows": counts, "sha256": digest.hexdigest()})
    return counts.total()


def _rows(storage: Storage) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for key in storage.keys():  # noqa: SIM118 (a store is no dictionary)
        yield "keys", key
    yield from (("audit", row) for row in storage.all_audit())
    for stream in storage.streams():
        name = stream.name
        yield "streams", stream
        yield from (("settings", row) for row in storage.settings(name))
        yield from (("segments", row) for row in storage.segments(name))  # the log goes on there
        yield from (("archived", row) for row in storage.all_archived(name))
        yield from (("events", row) for row in storage.all_events(name))
        yield from (("engines", row) for row in storage.engines(name))
        for n in storage.snapshot_numbers(name):
            snapshot = storage.snapshot(name, n)
            yield from [("snapshots", snapshot)] if snapshot is not None else []
        yield from (("items", row) for row in storage.all_items(name))
        yield from (("revisions", row) for row in storage.all_revisions(name))
        yield from (("checks", row) for row in storage.checks(name))
        yield from (("gold", row) for row in storage.all_gold(name))
        yield from (("alarms", row) for row in storage.alarms(name))
        yield from (("follows", row) for row in storage.follows(name))
        yield from (("labels", row) for row in storage.all_labels(name))
        yield from (("leases", row) for row in storage.leases(name, None))
        yield from (("notes", row) for row in storage.all_notes(name))
        for hook in storage.webhooks(name):
            yield "webhooks", hook
            yield from (("deliveries", row) for row in storage.deliveries(hook.id))


def _text(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def read_archive(storage: Storage, source: Path) -> int:
    """Restore an archive into an empty store; returns the number of rows.

    >>> import tempfile
    >>> from venire.server.store import AddStream, StreamRow, open_storage
    >>> one, other = open_storage("memory:"), open_storage("memory:")
    >>> one.write([AddStream(StreamRow("posts", 0.0))])
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
    if source.is_file():  # not a pipe, which can be read only once
        for line in _lines(source):
            _row(source, *line)
    storage.write([c.SetMeta(RESTORING, source.name)])
    count = 0
    parsed = (_row(source, *line) for line in _lines(source, warn=True))
    for table, group in groupby(parsed, key=lambda pair: pair[0]):
        rows = (row for _, row in group)
        while some := list(islice(rows, _CHUNK)):
            storage.write(_changes(table, some))
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
    if isinstance(value, dict) or (isinstance(value, list) and value and _known(value[0])):
        return value
    raise FileError(source, number, f"got {line[:40]!r}, expected a row of a known table")


def _format(source: Path, line: bytes) -> int:
    """The format of an archive by its first line."""
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


def _row(source: Path, line: int, listed: Any) -> tuple[str, Any]:
    try:
        table, *values = listed
        kind: Any = r.ROWS[table]
        if kind is r.SnapshotRow:
            values[-1] = base64.b64decode(values[-1])
        row = kind(*values)
        if table in ("streams", "segments") and row.name and not is_file_name(row.name):
            raise ValueError(f"got the name {row.name!r}, expected {NAMES}")
        return table, row
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(source, line, f"is not a valid row: {error}") from None


def _known(table: Any) -> bool:
    return isinstance(table, str) and table in {"items", *_ADD_ONE, *_ADD_MANY}


def _changes(table: str, rows: list[Any]) -> list[c.Change]:
    """What adds these rows to a table."""
    if table == "items":
        return _items(rows)
    if table in _ADD_ONE:
        return [_ADD_ONE[table](row) for row in rows]
    return [_ADD_MANY[table](rows)]


def _items(rows: list[r.ItemRow]) -> list[c.Change]:
    """Items are added as open, and leave again."""
    new = [r.ItemRow(*row[:9]) for row in rows]
    new = [
        row._replace(key=old.key, min_confidence=old.min_confidence)
        for row, old in zip(new, rows, strict=True)
    ]
    left = [
        r.ExitRow._make((*row[:2], *row[9:17])) for row in rows if row.status != ItemStatus.OPEN
    ]
    return [c.AddItems(new), c.LeaveItems(left)]


#: The change that adds one row of a table.
_ADD_ONE: dict[str, Callable[[Any], c.Change]] = {
    "streams": c.AddStream,
    "settings": c.AddSettings,
    "engines": c.AddEngine,
    "snapshots": c.SaveSnapshot,
    "keys": c.AddKey,
    "webhooks": c.AddWebhook,
    "segments": c.AddSegment,
}

#: The change that adds many.
_ADD_MANY: dict[str, Callable[[list[Any]], c.Change]] = {
    "events": c.AddEvents,
    "revisions": c.AddRevisions,
    "checks": c.AddChecks,
    "gold": c.AddGold,
    "alarms": c.AddAlarms,
    "follows": c.AddFollows,
    "labels": c.AddLabels,
    "leases": c.AddLeases,
    "notes": c.AddNotes,
    "deliveries": c.AddDeliveries,
    "audit": c.AddAudit,
    "archived": c.AddArchived,
}
