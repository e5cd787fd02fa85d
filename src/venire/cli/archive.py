"""`venire archive`: move old history into files, look into them, or bring it back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli import screen
from venire.cli.stores import StorageUrl, chosen_stream, open_guest
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.server.store import SegmentRow, Storage
    from venire.server.store.history.finding import ArchivedItem

__all__ = ["archive"]

FOLDER = "The folder of the archive; created if there is none."
STREAM = "Which stream. [default: the only one]"
DAYS = "Archive what happened more than this number of days ago."
ITEMS = "Archive all items except this number of those that left last."
ITEM = "Print this archived item, with its labels, as JSON."
ERASE = "Erase the payload of this archived item for good."
RESTORE = "Bring the last segment back into the store; with --all every one."
DAY = 86_400.0


def archive(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=FOLDER)],
    storage: StorageUrl = "sqlite:///venire.db",
    stream: Annotated[str | None, typer.Option(metavar="NAME", help=STREAM)] = None,
    older_than_days: Annotated[float | None, typer.Option(metavar="DAYS", help=DAYS)] = None,
    keep_items: Annotated[int | None, typer.Option(metavar="N", help=ITEMS)] = None,
    item: Annotated[str | None, typer.Option(metavar="ID", help=ITEM)] = None,
    erase: Annotated[str | None, typer.Option(metavar="ID", help=ERASE)] = None,
    restore: Annotated[bool, typer.Option("--restore", help=RESTORE)] = False,
    every: Annotated[bool, typer.Option("--all", help="With --restore: every segment.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Move old history out of a store into Parquet files, look into them, or bring it back.

    With --older-than-days or --keep-items: events, and items that left with all that was said of
    them, up to a snapshot before which nothing is to be kept. This and --erase and --restore need a
    store that no server uses; a server archives by itself, by the setting retention. Without any of
    these the archive is checked and listed: exit code 1 if anything in it was changed. --item and
    the list work while the server runs.
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
    from venire.server.store.history.moving import archive_stream
    from venire.server.store.history.planning import Keep

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
    from venire.server.store.history.finding import erase_archived

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
    from venire.server.store.history.moving import restore_segment

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
    from venire.server.store.history.finding import find_archived

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
