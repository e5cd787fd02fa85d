"""An item that is in the archive, with all that was said of it."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from venire.errors import NotFound
from venire.server.store import changes as c
from venire.server.store.base import Storage
from venire.server.store.history.files import SegmentFiles, folder_of
from venire.server.store.records import (
    ERASED,
    ArchivedRow,
    ItemRow,
    LabelRow,
    NoteRow,
    RevisionRow,
    SegmentRow,
)


class ArchivedItem(NamedTuple):
    """An item as it left, its labels, what was revised, and what was noted."""

    segment: int
    item: ItemRow
    labels: list[LabelRow]
    revisions: list[RevisionRow]
    notes: list[NoteRow]


def segment_of(storage: Storage, stream: str, item: str) -> tuple[ArchivedRow, SegmentRow]:
    """What the store knows of an archived item, and its segment; `NotFound` if it is not one."""
    found = storage.archived(stream, [item]).get(item)
    segments = [row for row in storage.segments(stream) if found and row.n == found.segment]
    if found is None or not segments:
        raise NotFound("archived item", item)
    return found, segments[0]


def find_archived(storage: Storage, stream: str, item: str, archive: Path) -> ArchivedItem:
    """Read an item from the archive; what came since it was archived is in the store."""
    _, segment = segment_of(storage, stream, item)
    if not segment.name:
        raise NotFound("archived item", item, "it was deleted by the stream's retention")
    files = SegmentFiles(archive, segment)
    rows: list[ItemRow] = files.some("items", "id", item)
    if not rows:
        raise NotFound("archived item", item, f"it is not in {files.folder}, as the store says")
    kept = files.secret("item", item)
    digest, payload = (ERASED, "null") if kept is None else (kept.digest, kept.text)
    later = [row for row in storage.segments(stream) if row.n >= segment.n and row.name]
    revised = [SegmentFiles(archive, row).some("revisions", "item", item) for row in later]
    labels = {row.labeler: row for row in files.some("labels", "item", item)}
    labels.update((row.labeler, row) for row in storage.labels_of(stream, item))
    return ArchivedItem(
        segment.n,
        rows[0]._replace(digest=digest, payload=payload),
        [labels[name] for name in sorted(labels)],
        [*(row for some in revised for row in some), *storage.revisions_of(stream, item)],
        _notes(files, item) + storage.notes(stream, 0, None, item),
    )


def _notes(files: SegmentFiles, item: str) -> list[NoteRow]:
    found = []
    for row in files.some("notes", "item", item):
        kept = files.secret("note", str(row.n))
        found.append(row._replace(text="" if kept is None else kept.text))
    return found


def remove_files(storage: Storage, stream: str, archive: Path) -> None:
    """Remove the segments of a stream that is being deleted; before the store forgets them."""
    for segment in storage.segments(stream):
        if segment.name:
            shutil.rmtree(folder_of(archive, stream, segment.name), ignore_errors=True)
    with suppress(OSError):  # something else is in it
        (archive / stream).rmdir()


def erase_archived(storage: Storage, stream: str, item: str, archive: Path) -> list[c.Change]:
    """Erase an item's payload in the archive; the changes by which the store forgets its digest."""
    found, segment = segment_of(storage, stream, item)
    if found.digest == ERASED or not segment.name:
        return []
    files = SegmentFiles(archive, segment)
    notes = [("note", str(row.n)) for row in files.some("notes", "item", item)]
    files.erase([("item", item), *notes])
    return [c.EraseArchived(stream, item)]
