"""`venire verify`: check a store against its log."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli import screen
from venire.cli.stores import StorageUrl, chosen_stream, open_guest
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.server.store import Storage
    from venire.server.store.maintenance.verify import Verification

__all__ = ["verify"]

STREAM = "Only this stream. [default: all]"
FULL = "Also what was checked before, and found right. [default: go on from there]"
ABSENT = "Also check that this text is not in the files of a SQLite store."
#: How many differences are printed; with --json all of them are.
SHOWN = 20
#: A shorter text may occur by chance.
MIN_TEXT = 8


def verify(
    storage: StorageUrl = "sqlite:///venire.db",
    stream: Annotated[str | None, typer.Option(metavar="NAME", help=STREAM)] = None,
    full: Annotated[bool, typer.Option("--full", help=FULL)] = False,
    absent: Annotated[str | None, typer.Option(metavar="TEXT", help=ABSENT)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recompute everything from the log of a store, and compare.

    What is in the store and was not checked before: its log is replayed from the last snapshot up
    to which an earlier run found nothing, or from its start with --full. What is archived is left
    out: see venire archive. What was erased or deleted according to the audit trail must be gone.
    The server may be running.
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
