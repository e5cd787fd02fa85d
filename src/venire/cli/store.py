"""`venire archive`, `backup`, `verify` and `keys`: what is done to the store of a server."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.stores import (
    STORE,
    StorageUrl,
    StreamName,
    chosen_stream,
    open_store,
    open_stream,
)
from venire.errors import InputError, UnknownName
from venire.model import Role

if TYPE_CHECKING:
    from venire.server.store import Insert, KeyRow, SegmentRow, Storage
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
    from venire.server.store import open_storage
    from venire.server.store.maintenance.archive import read_archive

    if restore is not None:
        with screen.working(f"restoring {restore.name}"), open_storage(storage) as opened:
            rows = read_archive(opened, restore)
            done: dict[str, object] = {"storage": opened.url, "path": str(restore), "rows": rows}
        line = f"restored {rows:,} rows from {restore} into {done['storage']}"
    elif to is not None:
        with screen.working(f"writing {to.name}"):
            done = _write(storage, to)
        line = f"copied {done['storage']} to {to}"
    print(json.dumps(done) if as_json else line)


def _write(url: str, target: Path) -> dict[str, object]:
    from venire.server.store.maintenance.archive import write_archive
    from venire.server.store.sql.sqlite import SqliteStorage

    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}: create it first")
    with open_store(url) as storage:
        done: dict[str, object] = {"storage": storage.url, "path": str(target)}
        if target.suffix == ".ndjson":
            return {**done, "rows": write_archive(storage, target)}
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
    from venire.server.store.maintenance.verify import deletions

    traces = [] if absent is None else _search(storage, absent)
    with open_store(storage) as opened:
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
            when = _when(deletion.at)
            left = "nothing of it is left" if deletion.ok else "SOMETHING OF IT IS LEFT"
            print(f"{deletion.stream}: deleted {when} by {deletion.actor}: {left}")
        if absent is not None:
            print(f"the text is in {', '.join(traces) if traces else 'no file of the store'}")
    if traces or not all([*(each.ok for each in found), *(each.ok for each in gone)]):
        raise typer.Exit(1)


def _checked(storage: Storage, stream: str, full: bool) -> Verification:
    """Check a stream against its log, and that erased payloads are gone."""
    from venire.server.store.maintenance.verify import not_erased, read_marks, save_marks
    from venire.server.store.maintenance.verify import verify as check

    with screen.working(f"replaying {stream}"):
        found = check(storage, stream, () if full else read_marks(storage, stream))
        save_marks(storage, stream, found.marks)
        return replace(found, differences=(*found.differences, *not_erased(storage, stream)))


def _search(url: str, text: str) -> list[str]:
    """The files of a SQLite store that contain a text; before the store is opened."""
    from venire.server.store.maintenance.verify import found_in

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
    from venire.server.store.history.files import find_archived

    asked = [older_than_days is not None or keep_items is not None, item, erase, restore]
    if sum(map(bool, asked)) > 1:
        raise InputError("got several of archiving, --item, --erase and --restore: give one")
    if every and not restore:
        raise InputError("--all is for --restore: give both")
    if min(older_than_days or 0, keep_items or 0) < 0:
        raise InputError("got a negative --older-than-days or --keep-items, expected 0 or more")
    owner = bool(asked[0] or erase is not None or restore)
    with open_stream(storage, stream, owner=owner) as (opened, name):
        if asked[0]:
            return _archive(opened, name, folder, older_than_days, keep_items, as_json)
        if erase is not None:
            return _erase(opened, name, folder, erase, as_json)
        if restore:
            return _restore(opened, name, folder, every, as_json)
        found = None if item is None else find_archived(opened, name, item, folder)
        rows = opened.segments(name)
    if found is not None:
        return _show(found)
    _list(rows, folder, as_json)


def _archive(
    storage: Storage,
    name: str,
    folder: Path,
    days: float | None,
    items: int | None,
    as_json: bool,
) -> None:
    from venire.server.store.history.segments import Keep, archive_stream

    now = time.time()
    keep = Keep(None if days is None else now - DAY * days, items)
    with screen.working("archiving") as working:
        made = archive_stream(storage, name, folder, keep, now, tell=working)
    nothing = f"{name}: nothing to archive: no snapshot before which all may go"
    _print_segments(made, as_json, nothing)


def _print_segments(
    rows: Sequence[SegmentRow], as_json: bool, nothing: str, done: str = ""
) -> None:
    if as_json:
        print(json.dumps([row._asdict() for row in rows]))
    else:
        print("\n".join(_line(row) + done for row in rows) or nothing)


def _line(row: SegmentRow) -> str:
    events = row.next_event - row.first_event
    what = f"{events:,} events up to {row.next_event:,}, exits up to {row.exits:,}"
    return f"{row.stream}: segment {row.n}: {what}" + ("" if row.name else " (deleted)")


def _erase(storage: Storage, name: str, folder: Path, item: str, as_json: bool) -> None:
    from venire.server.actors import audit_row
    from venire.server.store import Insert
    from venire.server.store.history.files import erase_archived

    changes = erase_archived(storage, name, item, folder)
    if changes:
        entry = audit_row("venire archive", time.time(), "item.erase", name, item)
        changes = [*changes, Insert([entry])]
    storage.write(changes)
    storage.scrub()
    if as_json:
        print(json.dumps({"stream": name, "item": item, "erased": bool(changes)}))
    else:
        print(f"{name}: the payload of {item} " + ("is erased" if changes else "was erased before"))


def _restore(storage: Storage, name: str, folder: Path, every: bool, as_json: bool) -> None:
    from venire.server.store.history.segments import restore_segment

    back: list[SegmentRow] = []
    with screen.working("restoring") as working:
        while row := restore_segment(storage, name, folder, working):
            back.append(row)
            if not every:
                break
    _print_segments(back, as_json, f"{name}: nothing is archived", ": restored")


def _show(found: ArchivedItem) -> None:
    parts = {
        part: [row._asdict() for row in getattr(found, part)]
        for part in ("labels", "revisions", "notes")
    }
    shown = {"segment": found.segment, **found.item._asdict()}
    shown |= {"payload": json.loads(found.item.payload), "said": parts}
    print(json.dumps(shown, indent=2, ensure_ascii=False))


def _list(rows: Sequence[SegmentRow], folder: Path, as_json: bool) -> None:
    """Check the files, which takes no store: it is closed by now."""
    from venire.server.store.history.files import SegmentFiles

    previous = ["", *(row.digest for row in rows)]
    faults = [
        SegmentFiles(folder, row).faults(before) if row.name else []
        for row, before in zip(rows, previous, strict=False)
    ]
    checked = list(zip(rows, faults, strict=True))
    if as_json:
        found = [{**row._asdict(), "ok": not wrong, "faults": wrong} for row, wrong in checked]
        print(json.dumps(found, indent=2))
    else:
        for row, wrong in checked:
            print(f"{_line(row)}: {'CHANGED' if wrong else 'ok'}", *wrong, sep="\n  ")
        if not rows:
            print("nothing is archived")
    if any(faults):
        raise typer.Exit(1)


ACTIONS = ("list", "create", "rotate", "revoke")
ROLES = tuple(Role)

ACTION = "list, create, rotate or revoke."
ID = "With rotate and revoke: the id of the key, as in the list."
ROLE = f"With create: {', '.join(ROLES[:-1])} or {ROLES[-1]}."
LABELER = "With create --role labeler: the labeler who uses this key."
PURPOSE = "With create: what the key is for."
VALID = "With create: days until the key expires. [default: never]"
OVERLAP = "With rotate: hours for which the old key stays valid. [default: 24]"


def keys(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTION)],
    id: Annotated[str | None, typer.Argument(metavar="ID", help=ID)] = None,
    storage: StorageUrl = STORE,
    role: Annotated[str | None, typer.Option(metavar="ROLE", help=ROLE)] = None,
    labeler: Annotated[str | None, typer.Option(metavar="NAME", help=LABELER)] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help=PURPOSE)] = None,
    days: Annotated[float | None, typer.Option(metavar="DAYS", help=VALID)] = None,
    overlap: Annotated[float | None, typer.Option(metavar="HOURS", help=OVERLAP)] = None,
    as_json: AsJson = False,
) -> None:
    """List the API keys of a server, or create, rotate or revoke one.

    The store keeps only a hash: a new key is printed once and cannot be shown again. A running
    server picks up changes within seconds.
    """
    _check(action, id, role, labeler, name)
    _check_times(action, days, overlap)
    with open_store(storage) as opened:
        known = opened.keys()
        if action == "list":
            listed = [_shown(row) for row in known]
            if as_json:
                print(json.dumps(listed, indent=2))
            else:
                _print_table(listed)
            return
        if action == "create":
            done = _create(opened, role or "", labeler, name or "", days)
        elif action == "rotate":
            done = _rotate(opened, _known(known, id), 24.0 if overlap is None else overlap)
        else:
            done = _revoke(opened, _known(known, id))
    line = f"{done['id']} is revoked" if action == "revoke" else done["key"]
    print(json.dumps(done, indent=2) if as_json else line)


def _check(
    action: str, id: str | None, role: str | None, labeler: str | None, name: str | None
) -> None:
    if action not in ACTIONS:
        raise UnknownName("action", action, ACTIONS)
    if (id is not None) != (action in ("rotate", "revoke")):
        raise InputError(
            "rotate and revoke need the id of a key, other actions do not: see venire keys list"
        )
    if action != "create":
        if role is not None or labeler is not None or name is not None:
            raise InputError(f"--role, --labeler and --name are options of create, not of {action}")
        return
    if role is None:
        raise InputError(f"create needs --role: {', '.join(ROLES)}")
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    if (role == Role.LABELER) != bool(labeler):
        raise InputError("--labeler NAME is required for the role labeler, and only for that role")


def _check_times(action: str, days: float | None, overlap: float | None) -> None:
    if days is not None and action != "create":
        raise InputError(f"--days is an option of create, not of {action}")
    if overlap is not None and action != "rotate":
        raise InputError(f"--overlap is an option of rotate, not of {action}")
    if days is not None and not 0 < days <= 36_500:
        raise InputError(f"got --days {days:g}, expected more than 0, at most 36,500")
    if overlap is not None and not 0 <= overlap <= 8_760:
        raise InputError(f"got --overlap {overlap:g}, expected hours from 0 to 8,760")


def _known(known: list[KeyRow], id: str | None) -> KeyRow:
    row = next((row for row in known if row.id == id), None)
    if row is None:
        raise InputError(f"there is no key {id!r}: see venire keys list")
    return row


def _create(
    storage: Storage, role: str, labeler: str | None, name: str, days: float | None
) -> dict[str, Any]:
    from venire.server.keys.keyring import new_row
    from venire.server.store import Insert

    token, row = new_row(name, role, labeler, time.time(), days)
    storage.write([Insert([row]), _audit("key.create", row.id, role=role, labeler=labeler)])
    return {**_shown(row), "key": token}


def _rotate(storage: Storage, old: KeyRow, hours: float) -> dict[str, Any]:
    from venire.server.keys.keyring import DAY, new_row
    from venire.server.store import ExpireKey, Insert

    now = time.time()
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
        raise InputError(f"key {old.id!r} is no longer valid: create one with venire keys create")
    days = None if old.expires_at is None else (old.expires_at - old.created_at) / DAY
    token, row = new_row(old.name, old.role, old.labeler, now, days)
    entry = _audit("key.rotate", old.id, new=row.id)
    storage.write([Insert([row]), ExpireKey(old.id, now + hours * 3600), entry])
    return {**_shown(row), "key": token}


def _revoke(storage: Storage, row: KeyRow) -> dict[str, Any]:
    from venire.server.store import RevokeKey

    now = time.time()
    storage.write([RevokeKey(row.id, now), _audit("key.revoke", row.id)])
    return _shown(row._replace(revoked_at=row.revoked_at or now))


def _audit(action: str, key: str, **details: Any) -> Insert:
    """An audit entry without a key: the actor has direct access to the store."""
    from venire.server.actors import audit_row
    from venire.server.store import Insert

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for the user
        user = "somebody"
    return Insert([audit_row(f"{user}, by venire keys", time.time(), action, None, key, **details)])


def _shown(row: KeyRow) -> dict[str, Any]:
    shown = row._asdict()
    del shown["hash"]
    times = {name: _when(value) if name.endswith("_at") else value for name, value in shown.items()}
    return {**times, "state": _state(row, time.time())}


def _state(row: KeyRow, now: float) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now else "valid"


def _when(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _print_table(found: list[dict[str, Any]]) -> None:
    print(
        f"{'id':21}{'state':9}{'role':9}{'labeler':16}{'created':26}{'last used':26}{'revoked':26}"
        f"{'expires':26}name"
    )
    for key in found:
        times = (key["created_at"], key["last_used_at"], key["revoked_at"], key["expires_at"])
        shown = "".join(f"{when or '-':26}" for when in times)
        who = f"{key['id']:21}{key['state']:9}{key['role']:9}{key['labeler'] or '-':16}"
        print(f"{who}{shown}{key['name']}")
