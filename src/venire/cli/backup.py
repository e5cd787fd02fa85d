"""`venire backup`: copy a whole store, or restore it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from venire.cli import screen
from venire.cli.stores import StorageUrl, open_guest
from venire.errors import InputError

__all__ = ["backup"]

TO = "The file to write: .ndjson for an archive, any other for a copy of the SQLite file."
RESTORE = "Restore this archive into the store, which must be new or empty."


def backup(
    storage: StorageUrl = "sqlite:///venire.db",
    to: Annotated[Path | None, typer.Option(metavar="FILE", help=TO)] = None,
    restore: Annotated[Path | None, typer.Option(metavar="FILE", help=RESTORE)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy a whole store while the server runs, or restore an archive into a new one.

    A copy of a SQLite file is a store itself: to restore it, stop the server, replace the file with
    it, and delete the old -wal and -shm files. An archive (.ndjson) can be restored into any kind
    of store, for example to move from SQLite to PostgreSQL.
    """
    if (to is None) == (restore is None):
        raise InputError("give either --to FILE or --restore FILE")
    done: dict[str, object]
    if restore is not None:
        with screen.working(f"restoring {restore.name}"):
            done = _restore(storage, restore)
    elif to is not None:
        with screen.working(f"writing {to.name}"):
            done = _write(storage, to)
    if as_json:
        print(json.dumps(done))
    elif restore is not None:
        print(f"restored {done['rows']:,} rows from {restore} into {done['storage']}")
    else:
        print(f"copied {done['storage']} to {to}")


def _restore(url: str, source: Path) -> dict[str, object]:
    from venire.server.store import open_storage
    from venire.server.store.maintenance.archive import read_archive

    with open_storage(url) as storage:
        return {"storage": storage.url, "path": str(source), "rows": read_archive(storage, source)}


def _write(url: str, target: Path) -> dict[str, object]:
    from venire.server.store.maintenance.archive import write_archive

    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}: create it first")
    with open_guest(url) as storage:
        done: dict[str, object] = {"storage": storage.url, "path": str(target)}
        if target.suffix == ".ndjson":
            return {**done, "rows": write_archive(storage, target)}
        from venire.server.store.sql.sqlite import SqliteStorage

        if not isinstance(storage, SqliteStorage):
            raise InputError(f"got --to {target}, expected a name that ends with .ndjson")
        if target.exists() and target.samefile(storage.path):
            raise InputError(f"got --to {target}, which is the store itself")
        storage.copy_to(target)
        return {**done, "bytes": target.stat().st_size}
