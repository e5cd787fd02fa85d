"""`venire verify`: whether a store is what its log says."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from venire.cli import screen
from venire.cli.stores import StorageUrl, chosen_stream, open_guest

__all__ = ["verify"]

STREAM = "Only this stream. [default: all]"
#: How many differences are printed; with --json all of them are.
SHOWN = 20


def verify(
    storage: StorageUrl = "sqlite:///venire.db",
    stream: Annotated[str | None, typer.Option(metavar="NAME", help=STREAM)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute everything again from the log of a store, and compare.

    The server may be running. Exit code 1 if anything differs.
    """
    from venire.storage.verifying import verify as check

    with open_guest(storage) as opened:
        names = [chosen_stream(opened, stream)] if stream else [s.name for s in opened.streams()]
        found = []
        for name in names:
            with screen.working(f"replaying {name}"):
                found.append(check(opened, name))
    if as_json:
        print(json.dumps([{**asdict(each), "ok": each.ok} for each in found], indent=2))
    else:
        for each in found:
            print(
                f"{each.stream}: {each.events:,} events, {each.items:,} items, "
                f"{each.labels:,} labels, {each.exits:,} exits, {each.leases:,} leases, "
                f"{each.snapshots} snapshots: {'ok' if each.ok else 'DIFFERENT'}"
            )
            if each.taken:
                print(
                    f"  another version of the engine wrote {each.taken:,} of the events, and "
                    "decided otherwise: its decisions are taken from the log"
                )
            for difference in each.differences[:SHOWN]:
                print(f"  {difference}")
            if len(each.differences) > SHOWN:
                print(f"  and {len(each.differences) - SHOWN:,} more, see --json")
    if not all(each.ok for each in found):
        raise typer.Exit(1)
