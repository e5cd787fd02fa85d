"""Checks that what the audit trail says was erased or deleted is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from venire.server.store.base import Storage
from venire.server.store.records import ERASED

_CHUNK = 1 << 24


@dataclass(frozen=True)
class Deletion:
    """A stream that was deleted, when and by whom, and whether nothing of it is left."""

    stream: str
    at: float
    actor: str
    ok: bool


def deletions(storage: Storage) -> list[Deletion]:
    """The streams that were deleted and not created again, in that order.

    >>> from venire.server.store import AuditRow, Insert, open_storage
    >>> storage = open_storage("memory:")
    >>> entry = AuditRow.load([0, 5.0, "me", None, "stream.delete", "posts"])
    >>> storage.write([Insert([entry])])
    >>> deletions(storage)
    [Deletion(stream='posts', at=5.0, actor='me', ok=True)]
    """
    found: dict[str, tuple[float, str]] = {}
    for row in storage.all_audit():
        if row.stream is not None and row.action == "stream.create":
            found.pop(row.stream, None)
        elif row.stream is not None and row.action == "stream.delete":
            found[row.stream] = row.at, row.actor
    there = {row.name for row in (*storage.streams(), *storage.deleted_streams())}
    return [
        Deletion(name, at, actor, name not in there and not storage.remains(name))
        for name, (at, actor) in found.items()
    ]


def not_erased(storage: Storage, stream: str) -> list[str]:
    """What is left of a stream although the audit trail says that it was erased.

    >>> from venire.server.store import open_storage
    >>> not_erased(open_storage("memory:"), "posts")
    []
    """
    erased: dict[str, None] = {}
    for row in storage.all_audit(stream):
        if row.action == "item.erase" and row.subject is not None:
            erased[row.subject] = None
        elif row.action == "stream.create":  # one of the same name was deleted before
            erased.clear()
    left = []
    for item in erased:
        kept = storage.item(stream, item)
        if kept is not None and (kept.digest != ERASED or kept.payload != "null"):
            left.append(f"the payload of item {item!r} is there, though it was erased")
        if any(label.rationale is not None for label in storage.labels_of(stream, item)):
            left.append(f"the reasons of labels of item {item!r} are there, though it was erased")
    return left


def found_in(store: Path, text: str) -> list[Path]:
    """The files of a SQLite store in which a text is found: the file, its logs, its old versions.

    Call it in a process that has not opened the store: closing a file that SQLite has open lets go
    of the locks on it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "venire.db")
    ...     _ = path.write_text("what somebody said")
    ...     len(found_in(path, "somebody")), len(found_in(path, "nobody"))
    (1, 0)
    """
    beside = sorted(store.parent.glob(f"{store.name}?*"))
    return [path for path in (store, *beside) if path.is_file() and _holds(path, _forms(text))]


def _forms(text: str) -> Sequence[bytes]:
    """A text as it is, and as it stands in JSON."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    return sorted({text.encode(), inside.encode()})


def _holds(path: Path, forms: Sequence[bytes]) -> bool:
    longest = max(map(len, forms))
    return any(any(form in part for form in forms) for part in _parts(path, longest))


def _parts(path: Path, overlap: int) -> Iterator[bytes]:
    """A file in pieces that overlap, so that nothing is missed in between."""
    with open(path, "rb") as file:
        tail = b""
        while chunk := file.read(_CHUNK):
            yield tail + chunk
            tail = (tail + chunk)[-overlap:]
