"""`venire send`: the items of a file to a stream of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from venire.cli import screen
from venire.errors import InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    from venire.client import Client

__all__ = ["send"]

STREAM = "The stream."
FILE = "The items: CSV or JSON Lines, a row for each; - is stdin."
ID = "The column of the ids. [default: id, or the one that looks like it]"
HASH = "Make the ids of the content: the same content is the same item."
URL = "The server; several on one store with commas between them."
KEY = "A key with the role producer or admin; preferably given as VENIRE_KEY."

#: Refused rows that are listed.
LISTED: Final = 20

#: Answers that are about what was sent, not about who sends it or where.
_ABOUT_ITEMS: Final = (400, 409, 413, 422)

#: Where the server found a fault in a request of one item.
_PLACE: Final = re.compile(r"^invalid request: body\.(line )?\d+\.")


def send(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help=STREAM)],
    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE)],
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help=ID)] = None,
    hash_ids: Annotated[bool, typer.Option("--hash-ids", help=HASH)] = False,
    url: Annotated[
        str, typer.Option(metavar="URL", help=URL, envvar="VENIRE_URL")
    ] = "http://127.0.0.1:8400",
    key: Annotated[str, typer.Option(metavar="KEY", help=KEY, envvar="VENIRE_KEY")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Send the items of a file to a stream.

    Columns that are not id, weight, min_confidence, eligible or excluded are what labelers are
    shown. Items that are there already are left alone, so the same command continues after an
    interruption. Rows that are refused are listed; the others are sent.
    """
    from venire.client import Client
    from venire.files.sending import read_sent, send_all

    if not key:
        raise InputError("no key was given: use --key, or set VENIRE_KEY")
    if id is not None and hash_ids:
        raise InputError("--id and --hash-ids exclude each other: drop one of them")
    rows = read_sent(located(file), id, hash_ids)
    with Client(url, key) as client, screen.working(f"sending to {stream}") as working:
        client.stream(stream)  # an unknown stream is said before the file is read
        done = send_all(rows, lambda items: _post(client, stream, items), working)
    _say(done, as_json)


def _post(client: Client, stream: str, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Send items; an answer that is about them is an `InputError`."""
    from venire.client import ServerError

    try:
        return client.add_items(stream, items)
    except ServerError as fault:
        if fault.status not in _ABOUT_ITEMS:
            raise
        raise InputError(_PLACE.sub("", fault.message)) from None


def _say(done: dict[str, Any], as_json: bool) -> None:
    refused = done["refused"]
    if as_json:
        print(json.dumps(done))
    else:
        there = f", {done['exists']:,} were there already" if done["exists"] else ""
        print(f"{done['created']:,} items sent{there}")
        for row in refused[:LISTED]:
            screen.say(f"line {row['line']}: {row['why']}")
        if len(refused) > LISTED:
            screen.say(f"and {len(refused) - LISTED:,} more (all of them with --json)")
    if refused:
        rows = "1 row was" if len(refused) == 1 else f"{len(refused):,} rows were"
        raise InputError(
            f"{rows} refused; correct them and send the file again: nothing is doubled"
        )
