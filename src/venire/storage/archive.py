"""A whole store as lines of JSON, from any kind of store into any other.

The first line says what it is; every other is a table's name and a row of it. Bytes are in
base64. Left out are the store's own named values, which a new server makes anew. This is how a
store moves from SQLite to PostgreSQL, and how one in PostgreSQL is backed up without its tools.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from venire.errors import FileError, StoreError
from venire.storage import changes as c
from venire.storage import rows as r
from venire.storage.base import Storage
from venire.storage.exporting import replacing

__all__ = ["read_archive", "write_archive"]

FORMAT = 1
_CHUNK = 5_000


def write_archive(storage: Storage, target: Path) -> int:
    """Write all that a store has; how many rows that is. The store may be in use."""
    count = 0
    with storage.frozen(), replacing(target) as file:
        file.write(json.dumps({"venire": "store", "format": FORMAT}) + "\n")
        for table, row in _rows(storage):
            file.write(json.dumps([table, *map(_text, row)], ensure_ascii=False) + "\n")
            count += 1
    return count


def _rows(storage: Storage) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for key in storage.keys():  # noqa: SIM118 (a store is no dictionary)
        yield "keys", key
    for stream in storage.streams():
        name = stream.name
        yield "streams", stream
        yield from (("settings", row) for row in storage.settings(name))
        yield from (("events", row) for row in storage.all_events(name))
        yield from (("engines", row) for row in storage.engines(name))
        for n in storage.snapshot_numbers(name):
            snapshot = storage.snapshot(name, n)
            yield from [("snapshots", snapshot)] if snapshot is not None else []
        yield from (("items", row) for row in storage.all_items(name))
        yield from (("labels", row) for row in storage.all_labels(name))
        yield from (("leases", row) for row in storage.leases(name, None))
        for hook in storage.webhooks(name):
            yield "webhooks", hook
            yield from (("deliveries", row) for row in storage.deliveries(hook.id))


def _text(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def read_archive(storage: Storage, source: Path) -> int:
    """Put all of an archive into an empty store; how many rows that is.

    >>> import tempfile
    >>> from venire.storage import AddStream, MemoryStorage, StreamRow
    >>> one, other = MemoryStorage(), MemoryStorage()
    >>> one.write([AddStream(StreamRow("posts", 0.0))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(one, Path(folder, "a.ndjson")), read_archive(
    ...         other, Path(folder, "a.ndjson")
    ...     )
    (1, 1)
    >>> other.streams() == one.streams()
    True
    """
    if storage.streams() or storage.keys():
        raise StoreError(f"the store {storage.url} is not empty: restore into a new one")
    count = 0
    for table, group in groupby(_parsed(source), key=lambda pair: pair[0]):
        rows = (row for _, row in group)
        while some := list(islice(rows, _CHUNK)):
            storage.write(_CHANGES[table](some))
            count += len(some)
    return count


def _parsed(source: Path) -> Iterator[tuple[str, Any]]:
    try:
        with open(source, encoding="utf-8") as file:
            head = json.loads(next(file, "null"))
            if not isinstance(head, dict) or head.get("venire") != "store":
                raise FileError(source, 1, "this is no archive of venire's: see venire backup")
            if head.get("format") != FORMAT:
                raise FileError(source, 1, f"its format is {head.get('format')}, not {FORMAT}")
            for line, text in enumerate(file, 2):
                yield _row(source, line, text)
    except OSError as error:
        raise FileError(source, None, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FileError(source, None, f"this is no archive of venire's: {error}") from None


def _row(source: Path, line: int, text: str) -> tuple[str, Any]:
    try:
        table, *values = json.loads(text)
        kind = _KINDS[table]
        if kind is r.SnapshotRow:
            values[-1] = base64.b64decode(values[-1])
        return table, kind(*values)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(source, line, f"cannot be understood: {error}") from None


def _items(rows: list[r.ItemRow]) -> list[c.Change]:
    """Items enter open, and leave again."""
    new = [r.ItemRow(*row[:9]) for row in rows]
    left = [r.ExitRow._make((*row[:2], *row[9:])) for row in rows if row.status != "open"]
    return [c.AddItems(new), c.LeaveItems(left)]


_KINDS: dict[str, Callable[..., Any]] = {
    "streams": r.StreamRow,
    "settings": r.SettingsRow,
    "events": r.EventRow,
    "engines": r.EngineRow,
    "snapshots": r.SnapshotRow,
    "items": r.ItemRow,
    "labels": r.LabelRow,
    "leases": r.LeaseRow,
    "keys": r.KeyRow,
    "webhooks": r.WebhookRow,
    "deliveries": r.DeliveryRow,
}

_CHANGES: dict[str, Callable[[list[Any]], list[c.Change]]] = {
    "streams": lambda rows: [c.AddStream(row) for row in rows],
    "settings": lambda rows: [c.AddSettings(row) for row in rows],
    "events": lambda rows: [c.AddEvents(rows)],
    "engines": lambda rows: [c.AddEngine(row) for row in rows],
    "snapshots": lambda rows: [c.SaveSnapshot(row) for row in rows],
    "items": _items,
    "labels": lambda rows: [c.AddLabels(rows)],
    "leases": lambda rows: [c.AddLeases(rows)],
    "keys": lambda rows: [c.AddKey(row) for row in rows],
    "webhooks": lambda rows: [c.AddWebhook(row) for row in rows],
    "deliveries": lambda rows: [c.AddDeliveries(rows)],
}
