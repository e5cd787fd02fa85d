"""The folder of a segment: a Parquet file for each table, and a manifest with their digests.

Payloads, their digests, the texts of notes and the reasons of labels are in a file of their own,
`private.parquet`, which the chain does not cover: so a payload can be erased, and the chain still
holds. A folder appears under its name by one rename, when all of it is on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from venire.errors import FileError, NotFound, StoreError
from venire.server.store import changes as c
from venire.server.store import records as r
from venire.server.store.contents import compact
from venire.server.store.file_lock import open_private
from venire.server.store.record import Record
from venire.server.store.records import (
    ERASED,
    ArchivedRow,
    ItemRow,
    LabelRow,
    NoteRow,
    RevisionRow,
    SegmentRow,
)
from venire.tools.lazy import library
from venire.tools.untrusted import is_file_name, parse_json

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage

MANIFEST: Final = "manifest.json"

FORMAT: Final = 1

#: The rows of a segment's files, in the order in which they are put back.
TABLES: Final[dict[str, type[Record]]] = {
    record.TABLE.name: record
    for record in (
        r.EventRow,
        r.SnapshotRow,
        r.ItemRow,
        r.LabelRow,
        r.LeaseRow,
        r.NoteRow,
        r.RevisionRow,
    )
}

#: Rows in memory before they are written; rows that are read at once.
_GROUP: Final = 10_000

_KINDS: Final = {str: "string", int: "int64", float: "float64", bool: "bool_", bytes: "binary"}


class Secret(Record):
    """What can be erased: payload and digest of an item, the text of note `name`, or a rationale.

    The name of a rationale is item and labeler of the label, as JSON.
    """

    kind: str
    name: str
    digest: str
    text: str


class _Private(NamedTuple):
    """What can be erased of the rows of a table: kind and name of its `Secret`, and the columns.

    `columns` are those that the secret's text and digest are of; `public` what stands there in the
    file of the table, and `erased` in a row whose secret is gone. The column `mark` alone tells
    such a row: whatever else it still holds is not written down again.
    """

    kind: str
    name: Callable[[Any], str]
    columns: dict[str, str]
    public: dict[str, Any]
    erased: dict[str, Any]
    mark: str

    def secret_of(self, row: Any) -> Secret | None:
        """What is to be kept apart, if the row has anything that is not erased."""
        if getattr(row, self.mark) == self.erased[self.mark]:
            return None
        held = {field: getattr(row, column) for field, column in self.columns.items()}
        return Secret(**{"kind": self.kind, "name": self.name(row), "digest": "", **held})

    def whole(self, row: Any, secret: Secret | None) -> Any:
        if secret is None:
            return row._replace(**self.erased)
        return row._replace(**{x: getattr(secret, field) for field, x in self.columns.items()})


PRIVATE: Final[dict[str, _Private]] = {
    "items": _Private(
        "item",
        lambda row: row.id,
        {"text": "payload", "digest": "digest"},
        {"payload": "", "digest": ""},
        {"payload": "null", "digest": ERASED},
        mark="digest",
    ),
    "notes": _Private(
        "note", lambda row: str(row.n), {"text": "text"}, {"text": ""}, {"text": ""}, mark="text"
    ),
    "labels": _Private(
        "label",
        lambda row: compact([row.item, row.labeler]),
        {"text": "rationale"},
        {"rationale": None},
        {"rationale": None},
        mark="rationale",
    ),
}


def folder_of(archive: Path, stream: str, name: str) -> Path:
    """Where a segment is, by the archive's folder, the stream and the segment's name.

    >>> folder_of(Path("old"), "posts", "../../x")
    Traceback (most recent call last):
    venire.errors.StoreError: the store names the segment '../../x' of the stream 'posts', ...
    """
    if not (is_file_name(stream) and is_file_name(name)):
        raise StoreError(
            f"the store names the segment {name!r} of the stream {stream!r}, which is not a file "
            "of an archive: it was forged or is damaged, restore a backup"
        )
    return archive / stream / name


def chained(segment: r.SegmentRow, previous: str, files: Mapping[str, Any]) -> str:
    """The digest of a segment, which depends on that of the one before.

    >>> row = r.SegmentRow.load(["posts", 1, 9.0, 0, 4, 2.0, 6, 1, 0, 3, "000001", ""])
    >>> chained(row, "", {})[:8]
    '0655c86d'
    """
    fields = {name: value for name, value in segment._asdict().items() if name != "digest"}
    text = json.dumps([FORMAT, previous, fields, files], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _arrow() -> tuple[Any, Any]:
    return library("pyarrow", "data"), library("pyarrow.parquet", "data")


def _schema(kind: type[Record]) -> Any:
    arrow, _ = _arrow()
    return arrow.schema([(x.name, getattr(arrow, _KINDS[x.type])()) for x in kind.COLUMNS])


class _TableFile:
    """A Parquet file that rows are added to."""

    def __init__(self, path: Path, kind: type[Record]) -> None:
        arrow, parquet = _arrow()
        self._arrow, self._schema, self._rows = arrow, _schema(kind), list[Any]()
        self._file = open(path, "wb", opener=open_private)  # noqa: SIM115 (closed by close)
        self._writer = parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        self.count, self._path = 0, path

    def add(self, rows: Iterable[Record]) -> None:
        self._rows += rows
        if len(self._rows) >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = list(zip(*self._rows, strict=True))
            arrays = [
                self._arrow.array(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            self._writer.write_table(self._arrow.table(arrays, schema=self._schema))
            self.count += len(self._rows)
            self._rows = []

    def close(self) -> dict[str, Any]:
        """Bring it to the disk; how many rows it has, and its digest."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        if not os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path)):
            raise FileError(self._path, None, "was replaced while it was written: another program "
                            "archives the same stream, let only one of them do it")  # fmt: skip
        self._file.close()
        return {"rows": self.count, "sha256": _sha256(self._path)}

    def abandon(self) -> None:
        with suppress(Exception):  # it would be closed later, when the file is closed already
            self._writer.close()
        self._file.close()


class SegmentWriter:
    """Writes the files of a segment beside their place; `finish` puts them there."""

    def __init__(self, archive: Path, segment: r.SegmentRow) -> None:
        self._target = folder_of(archive, segment.stream, segment.name)
        self._part = self._target.with_name(f"{segment.name}.part")
        self._segment = segment

    def __enter__(self) -> Self:
        try:
            shutil.rmtree(self._part, ignore_errors=True)
            self._part.mkdir(mode=0o700, parents=True)
            kinds: dict[str, type[Record]] = {"private": Secret, **TABLES}
            self._files: dict[str, _TableFile] = {
                name: _TableFile(self._part / f"{name}.parquet", kind)
                for name, kind in kinds.items()
            }
        except OSError as error:
            raise _unwritable(self._part, error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None:
            for file in self._files.values():
                file.abandon()
        if isinstance(error, OSError) and error.errno is not None:
            raise _unwritable(self._part, error) from None

    def add(self, table: str, rows: Sequence[Any]) -> None:
        """Add rows; what is private of items, notes and labels goes into its own file."""
        private = PRIVATE.get(table)
        if private is not None:
            self._files["private"].add(filter(None, map(private.secret_of, rows)))
            rows = [row._replace(**private.public) for row in rows]
        self._files[table].add(rows)

    def finish(self, previous: str) -> r.SegmentRow:
        """Put the folder into its place; the whole segment.

        A folder that is there, which was given up or belongs to another store, is moved aside.
        """
        closed = {name: file.close() for name, file in self._files.items()}
        private = {**closed.pop("private"), "erased": []}
        segment = self._segment._replace(digest=chained(self._segment, previous, closed))
        manifest = {
            "venire": "segment",
            "format": FORMAT,
            "segment": segment._asdict(),
            "previous": previous,
            "files": closed,
            "private": private,
        }
        _write_json(self._part / MANIFEST, manifest)
        if self._target.exists():
            names = (self._target.with_name(f"{self._target.name}.old-{k}") for k in count(1))
            os.replace(self._target, next(name for name in names if not name.exists()))
        os.replace(self._part, self._target)
        for folder in (self._target.parent, self._target.parent.parent):
            _sync(folder)
        return segment


class SegmentFiles:
    """The files of a segment that is in its place."""

    def __init__(self, archive: Path, segment: r.SegmentRow) -> None:
        self.segment, self.folder = segment, folder_of(archive, segment.stream, segment.name)

    def manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            found = parse_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(path, None, f"cannot be read: {error.strerror}: is this the archive of "
                            "the store?") from None  # fmt: skip
        except ValueError as error:
            raise FileError(path, None, f"is damaged: {error}") from None
        if not isinstance(found, dict) or found.get("venire") != "segment":
            raise FileError(path, None, "is not the manifest of a segment of venire")
        if found["format"] != FORMAT:
            raise FileError(path, None, f"is of format {found['format']}, expected {FORMAT}")
        return found

    def faults(self, previous: str) -> list[str]:
        """What is not as it was written: the chain, the files, and the payloads."""
        try:
            manifest = self.manifest()
        except FileError as error:
            return [str(error)]
        found = []
        if chained(self.segment, previous, manifest["files"]) != self.segment.digest:
            found.append(f"{self.folder}: its digest is not the one that the store has")
        for name, told in {**manifest["files"], "private": manifest["private"]}.items():
            path = self.folder / f"{name}.parquet"
            if not path.is_file():
                found.append(f"{path} is missing")
            elif _sha256(path) != told["sha256"]:
                found.append(f"{path} was changed")
        return found

    def rows(self, table: str) -> Iterator[list[Any]]:
        """The rows of a table in pieces, without what is private."""
        yield from self._pieces(f"{table}.parquet", TABLES[table])

    def secrets(self) -> Iterator[list[Secret]]:
        yield from self._pieces("private.parquet", Secret)

    def some(self, table: str, column: str, value: Any) -> list[Any]:
        return self._some(f"{table}.parquet", TABLES[table], [(column, "=", value)])

    def whole(self, table: str, rows: Sequence[Any]) -> list[Any]:
        """Rows of a table with what is private of them and was not erased."""
        private = PRIVATE[table]
        where = [("kind", "=", private.kind), ("name", "in", list(map(private.name, rows)))]
        found = self._some("private.parquet", Secret, where) if rows else []
        kept = {secret.name: secret for secret in found}
        return [private.whole(row, kept.get(private.name(row))) for row in rows]

    def names(self, kind: str) -> set[str]:
        """Of which items, or notes, there is something private."""
        return {row.name for piece in self.secrets() for row in piece if row.kind == kind}

    def erase(self, names: Iterable[tuple[str, str]]) -> None:
        """Erase payloads and texts, by kind and name; the manifest says so."""
        gone, manifest, part = set(names), self.manifest(), self.folder / "private.parquet.part"
        file = _TableFile(part, Secret)
        erased = set(map(tuple, manifest["private"]["erased"]))
        for piece in self.secrets():
            names = {(row.kind, row.name) for row in piece}
            erased |= names & gone
            file.add([row for row in piece if (row.kind, row.name) not in gone])
        manifest["private"] = {**file.close(), "erased": sorted(erased)}
        os.replace(part, self.folder / "private.parquet")
        _write_json(self.folder / MANIFEST, manifest)

    def _pieces(self, name: str, kind: Any) -> Iterator[list[Any]]:
        _, parquet = _arrow()
        path = self.folder / name
        try:
            with open(path, "rb") as file:
                for batch in parquet.ParquetFile(file).iter_batches(_GROUP):
                    yield [kind(**row) for row in batch.to_pylist()]
        except OSError as error:
            raise FileError(path, None, f"cannot be read: {error}") from None

    def _some(self, name: str, kind: Any, where: list[tuple[str, str, Any]]) -> list[Any]:
        _, parquet = _arrow()
        path = self.folder / name
        try:
            found = parquet.read_table(path, filters=where, partitioning=None).to_pylist()
        except OSError as error:
            raise FileError(path, None, f"cannot be read: {error}") from None
        return [kind(**row) for row in found]


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, value: Any) -> None:
    part = path.with_name(f"{path.name}.part")
    with open(part, "w", encoding="utf-8", opener=open_private) as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> FileError:
    return FileError(path, None, f"cannot be written: {error.strerror or error}")


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
    later = [row for row in storage.segments(stream) if row.n >= segment.n and row.name]
    revised = [SegmentFiles(archive, row).some("revisions", "item", item) for row in later]
    labels = {row.labeler: row for row in files.whole("labels", files.some("labels", "item", item))}
    labels.update((row.labeler, row) for row in storage.labels_of(stream, item))
    return ArchivedItem(
        segment.n,
        files.whole("items", rows)[0],
        [labels[name] for name in sorted(labels)],
        [*(row for some in revised for row in some), *storage.revisions_of(stream, item)],
        files.whole("notes", files.some("notes", "item", item))
        + storage.notes(stream, 0, None, item),
    )


def texts_of(files: SegmentFiles, item: str) -> list[tuple[str, str]]:
    """Under which kinds and names there may be texts about an item, beside its payload."""
    return [
        (PRIVATE[table].kind, PRIVATE[table].name(row))
        for table in ("notes", "labels")
        for row in files.some(table, "item", item)
    ]


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
    files.erase([("item", item), *texts_of(files, item)])
    return [c.EraseArchived(stream, item)]
