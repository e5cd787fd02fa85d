"""`venire archive`, `verify`, `backup`: old history in files, a check of a store, a copy of it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.stores import STORE, StorageUrl, StreamName, chosen_stream, open_guest
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.server.store import SegmentRow, Storage
    from venire.server.store.history.files import ArchivedItem
    from venire.server.store.maintenance.verify import Verification


TO = "The file to write: .ndjson for an archive, any other for a copy of the SQLite file."
RESTORE_BACKUP = "Restore this archive into the store, which must be new or empty."


def backup(
    storage: StorageUrl = STORE,
    to: Annotated[Path | None, typer.Option(metavar="FILE", help=TO)] = None,
    restore: Annotated[Path | None, typer.Option(metavar="FILE", help=RESTORE_BACKUP)] = None,
    as_json: AsJson = False,
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
            done = _restore_backup(storage, restore)
    elif to is not None:
        with screen.working(f"writing {to.name}"):
            done = _write(storage, to)
    if as_json:
        print(json.dumps(done))
    elif restore is not None:
        print(f"restored {done['rows']:,} rows from {restore} into {done['storage']}")
    else:
        print(f"copied {done['storage']} to {to}")


def _restore_backup(url: str, source: Path) -> dict[str, object]:
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


VERIFIED = "Only this stream. [default: all]"
FULL = "Check again what an earlier run found right. [default: go on from there]"
ABSENT = "Also check that this text is not in the files of a SQLite store."
#: How many differences are printed; with --json all of them are.
SHOWN = 20
#: A shorter text may occur by chance.
MIN_TEXT = 8


def verify(
    storage: StorageUrl = STORE,
    stream: Annotated[str | None, typer.Option(metavar="NAME", help=VERIFIED)] = None,
    full: Annotated[bool, typer.Option("--full", help=FULL)] = False,
    absent: Annotated[str | None, typer.Option(metavar="TEXT", help=ABSENT)] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute everything from the log of a store, and compare.

    The log is replayed from the last snapshot up to which an earlier run found all in order; with
    --full, from its start. What is archived is left out: see venire archive. What was erased or
    deleted according to the audit trail must be gone. The server may be running.
    Exit code 1 if anything differs.
    """
    from venire.server.store.maintenance.erasure import deletions

    traces = [] if absent is None else _search(storage, absent)
    with open_guest(storage) as opened:
        names = [chosen_stream(opened, stream)] if stream else [s.name for s in opened.streams()]
        found = [_checked(opened, name, full) for name in names]
        gone = [] if stream else deletions(opened)
    if as_json:
        results = [{**asdict(replace(each, marks=())), "ok": each.ok} for each in found]
        for result in results:
            del result["marks"]
        results += [{"stream": each.stream, "deleted_at": each.at, "ok": each.ok} for each in gone]
        results += [{"found_in": path, "ok": False} for path in traces]
        print(json.dumps(results, indent=2))
    else:
        for verification in found:
            _print(verification)
        for deletion in gone:
            when = datetime.fromtimestamp(deletion.at, UTC).isoformat(timespec="seconds")
            left = "nothing of it is left" if deletion.ok else "SOMETHING OF IT IS LEFT"
            print(f"{deletion.stream}: deleted {when} by {deletion.actor}: {left}")
        if absent is not None:
            print(f"the text is in {', '.join(traces) if traces else 'no file of the store'}")
    if traces or not all([*(each.ok for each in found), *(each.ok for each in gone)]):
        raise typer.Exit(1)


def _checked(storage: Storage, stream: str, full: bool) -> Verification:
    """Check a stream against its log, and that erased payloads are gone."""
    from venire.server.store.maintenance.erasure import not_erased
    from venire.server.store.maintenance.marks import read_marks, save_marks
    from venire.server.store.maintenance.verify import verify as check

    with screen.working(f"replaying {stream}"):
        found = check(storage, stream, () if full else read_marks(storage, stream))
        save_marks(storage, stream, found.marks)
        return replace(found, differences=(*found.differences, *not_erased(storage, stream)))


def _search(url: str, text: str) -> list[str]:
    """The files of a SQLite store that contain a text; before the store is opened."""
    from venire.server.store.maintenance.erasure import found_in

    path = url.partition(":///")[2]
    if not url.startswith("sqlite") or not Path(path).is_file():
        raise InputError(f"got --absent and the store {url}, expected one in a SQLite file")
    if len(text) < MIN_TEXT:
        raise InputError(f"got --absent {text!r}, expected {MIN_TEXT} characters or more")
    return [str(found) for found in found_in(Path(path), text)]


def _print(each: Verification) -> None:
    print(
        f"{each.stream}: {each.events:,} events, {each.items:,} items, "
        f"{each.labels:,} labels, {each.exits:,} exits, {each.revisions:,} revisions, "
        f"{each.gold:,} gold, {each.leases:,} leases, {each.snapshots} snapshots: "
        f"{'ok' if each.ok else 'DIFFERENT'}"
    )
    if each.archived:
        print(f"  the first {each.archived:,} events are archived: see venire archive")
    if each.start > each.archived:
        print(f"  from event {each.start:,} on: what was before was right earlier (see --full)")
    if each.taken:
        print(
            f"  another version of the engine wrote {each.taken:,} of the events and decided "
            "differently: its decisions are taken from the log"
        )
    for difference in each.differences[:SHOWN]:
        print(f"  {difference}")
    if len(each.differences) > SHOWN:
        print(f"  and {len(each.differences) - SHOWN:,} more: see --json")


FOLDER = "The folder of the archive; created if there is none."
DAYS = "Archive what happened more than this number of days ago."
ITEMS = "Archive all items except this number of those that left last."
ITEM = "Print this archived item, with its labels, as JSON."
ERASE = "Erase the payload of this archived item for good."
RESTORE = "Bring the last segment back into the store; with --all every one."
DAY = 86_400.0


def archive(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=FOLDER)],
    storage: StorageUrl = STORE,
    stream: StreamName = None,
    older_than_days: Annotated[float | None, typer.Option(metavar="DAYS", help=DAYS)] = None,
    keep_items: Annotated[int | None, typer.Option(metavar="N", help=ITEMS)] = None,
    item: Annotated[str | None, typer.Option(metavar="ID", help=ITEM)] = None,
    erase: Annotated[str | None, typer.Option(metavar="ID", help=ERASE)] = None,
    restore: Annotated[bool, typer.Option("--restore", help=RESTORE)] = False,
    every: Annotated[bool, typer.Option("--all", help="With --restore: every segment.")] = False,
    as_json: AsJson = False,
) -> None:
    """Move old history out of a store into Parquet files, look into them, or bring it back.

    With --older-than-days or --keep-items: events, and items that left with all that was said of
    them, up to a snapshot before which nothing is to be kept. This, --erase and --restore need a
    store that no server uses; a server archives by itself: see its setting retention. Without any
    of these the archive is checked and listed: exit code 1 if anything in it was changed. --item
    and the list work while the server runs.
    """
    asked = [older_than_days is not None or keep_items is not None, item, erase, restore]
    if sum(map(bool, asked)) > 1:
        raise InputError("got several of archiving, --item, --erase and --restore: give one")
    if every and not restore:
        raise InputError("--all is for --restore: give both")
    if asked[0]:
        _archive(storage, stream, folder, older_than_days, keep_items, as_json)
    elif erase is not None:
        _erase(storage, stream, folder, erase, as_json)
    elif restore:
        _restore(storage, stream, folder, every, as_json)
    elif item is not None:
        _show(storage, stream, folder, item)
    else:
        _list(storage, stream, folder, as_json)


def _owned(url: str) -> Storage:
    from venire.server.store import open_storage

    if url.startswith("memory:"):
        raise InputError("got memory:, which is always empty when opened: give a file's URL")
    return open_storage(url)


def _archive(
    url: str,
    stream: str | None,
    folder: Path,
    days: float | None,
    items: int | None,
    as_json: bool,
) -> None:
    from venire.server.store.history.segments import Keep, archive_stream

    if (days is not None and days < 0) or (items is not None and items < 0):
        raise InputError("got a negative --older-than-days or --keep-items, expected 0 or more")
    now = time.time()
    keep = Keep(None if days is None else now - DAY * days, items)
    with _owned(url) as storage, screen.working("archiving") as working:
        name = chosen_stream(storage, stream)
        made = archive_stream(storage, name, folder, keep, now, tell=working)
    if as_json:
        print(json.dumps([row._asdict() for row in made]))
    elif not made:
        print(f"{name}: nothing to archive: no snapshot before which all may go")
    for row in [] if as_json else made:
        print(_line(row))


def _line(row: SegmentRow) -> str:
    events = row.next_event - row.first_event
    what = f"{events:,} events up to {row.next_event:,}, exits up to {row.exits:,}"
    return f"{row.stream}: segment {row.n}: {what}" + ("" if row.name else " (deleted)")


def _erase(url: str, stream: str | None, folder: Path, item: str, as_json: bool) -> None:
    from venire.server.store import AuditRow, Insert
    from venire.server.store.history.files import erase_archived

    with _owned(url) as storage:
        name = chosen_stream(storage, stream)
        changes = erase_archived(storage, name, item, folder)
        entry = AuditRow(
            n=0,
            at=time.time(),
            actor="venire archive",
            key=None,
            action="item.erase",
            stream=name,
            subject=item,
        )
        storage.write([*changes, *([Insert([entry])] if changes else [])])
        storage.scrub()
    if as_json:
        print(json.dumps({"stream": name, "item": item, "erased": bool(changes)}))
    else:
        print(f"{name}: the payload of {item} " + ("is erased" if changes else "was erased before"))


def _restore(url: str, stream: str | None, folder: Path, every: bool, as_json: bool) -> None:
    from venire.server.store.history.segments import restore_segment

    back: list[SegmentRow] = []
    with _owned(url) as storage, screen.working("restoring") as working:
        name = chosen_stream(storage, stream)
        while row := restore_segment(storage, name, folder, working):
            back.append(row)
            if not every:
                break
    if as_json:
        print(json.dumps([row._asdict() for row in back]))
    elif not back:
        print(f"{name}: nothing is archived")
    for row in [] if as_json else back:
        print(f"{_line(row)}: restored")


def _show(url: str, stream: str | None, folder: Path, item: str) -> None:
    from venire.server.store.history.files import find_archived

    with open_guest(url) as storage:
        found = find_archived(storage, chosen_stream(storage, stream), item, folder)
    print(json.dumps(_plain(found), indent=2, ensure_ascii=False))


def _plain(found: ArchivedItem) -> dict[str, Any]:
    parts: dict[str, list[Any]] = {
        "labels": found.labels,
        "revisions": found.revisions,
        "notes": found.notes,
    }
    listed = {name: [row._asdict() for row in rows] for name, rows in parts.items()}
    payload = json.loads(found.item.payload)
    return {"segment": found.segment, **found.item._asdict(), "payload": payload, "said": listed}


def _list(url: str, stream: str | None, folder: Path, as_json: bool) -> None:
    from venire.server.store.history.files import SegmentFiles

    with open_guest(url) as storage:
        rows = storage.segments(chosen_stream(storage, stream))
    found: list[dict[str, Any]] = []
    previous = ""
    for row in rows:
        faults = SegmentFiles(folder, row).faults(previous) if row.name else []
        found.append({**row._asdict(), "ok": not faults, "faults": faults})
        previous = row.digest
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        for row, told in zip(rows, found, strict=True):
            print(f"{_line(row)}: {'ok' if told['ok'] else 'CHANGED'}")
            for fault in told["faults"]:
                print(f"  {fault}")
        if not rows:
            print("nothing is archived")
    if not all(told["ok"] for told in found):
        raise typer.Exit(1)
