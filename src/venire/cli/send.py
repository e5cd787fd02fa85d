"""`venire send`: the items of a file to a stream of a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from venire.cli import screen
from venire.errors import InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    from venire.files.sending import Sent

__all__ = ["send", "send_all"]

STREAM = "The stream."
FILE = "The items: CSV or JSON Lines, a row for each; - is stdin."
ID = "The column of the ids. [default: id, or the one that looks like it]"
HASH = "Make the ids of the content: the same content is the same item."
URL = "The server; several on one store with commas between them."
KEY = "A key with the role producer or admin; preferably given as VENIRE_KEY."

#: Items in a request, and refused rows that are listed.
TOGETHER: Final = 500
LISTED: Final = 20

#: Answers that are about what was sent, not about who sends it or where.
_ABOUT_ITEMS: Final = (400, 409, 413, 422)

#: Where the server found a fault in a request of one item.
_PLACE: Final = re.compile(r"^invalid request: body\.(line )?\d+\.")

#: Sends items, and says how many are new and how many were there.
Post = Callable[[Sequence[dict[str, Any]]], dict[str, Any]]


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
    from venire.files.sending import read_sent

    if not key:
        raise InputError("no key was given: use --key, or set VENIRE_KEY")
    if id is not None and hash_ids:
        raise InputError("--id and --hash-ids exclude each other: drop one of them")
    rows = read_sent(located(file), id, hash_ids)
    with Client(url, key) as client, screen.working(f"sending to {stream}") as working:
        client.stream(stream)  # an unknown stream is said before the file is read
        done = send_all(rows, lambda items: client.add_items(stream, items), working)
    _say(done, as_json)


def send_all(
    rows: Iterator[Sent], post: Post, progress: Callable[[str], object] = str
) -> dict[str, Any]:
    """Send rows some hundred at a time; how many are new, how many were there, which are refused.

    >>> from venire.files.sending import Sent
    >>> seen = []
    >>> def post(items):
    ...     seen.extend(item["id"] for item in items)
    ...     return {"created": len(items), "exists": 0}
    >>> send_all(iter([Sent(2, {"id": "a"}), Sent(3, None, "no id")]), post)
    {'created': 1, 'exists': 0, 'refused': [{'line': 3, 'id': None, 'why': 'no id'}]}
    """
    done: dict[str, Any] = {"created": 0, "exists": 0, "refused": []}
    while part := list(islice(rows, TOGETHER)):
        done["refused"] += [
            {"line": row.line, "id": None, "why": row.why} for row in part if row.item is None
        ]
        _post([row for row in part if row.item is not None], post, done)
        progress(f"{done['created'] + done['exists']:,} items sent")
    done["refused"].sort(key=lambda row: row["line"])
    return done


def _post(part: Sequence[Sent], post: Post, done: dict[str, Any]) -> None:
    """Send rows together; if they are refused, in halves, until it is known which one it is."""
    from venire.client import ServerError

    if not part:
        return
    try:
        counts = post([row.item for row in part if row.item is not None])
    except (ServerError, InputError) as fault:
        if isinstance(fault, ServerError) and fault.status not in _ABOUT_ITEMS:
            raise
        if len(part) == 1:
            why = fault.message if isinstance(fault, ServerError) else str(fault)
            why = _PLACE.sub("", why)
            row = {"line": part[0].line, "id": (part[0].item or {}).get("id"), "why": why}
            done["refused"].append(row)
            return
        half = len(part) // 2
        _post(part[:half], post, done)
        _post(part[half:], post, done)
        return
    done["created"] += counts["created"]
    done["exists"] += counts["exists"]


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
