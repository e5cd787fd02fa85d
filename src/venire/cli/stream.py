"""`venire stream`, `venire send`: create or change a stream from a file, send it items."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from venire.cli.shared import HERE, AdminKey, AsJson, Url, check_key, screen
from venire.errors import FileError, InputError
from venire.files.trees import read_text, read_toml, read_tree
from venire.tools.addresses import located

if TYPE_CHECKING:
    from venire.client import Client


STREAM = "The stream."
ITEMS_FILE = "The items: CSV or JSON Lines, a row for each; - is stdin."
ID = "The column of the ids. [default: id, or the one that looks like it]"
HASH = "Make ids from the content: the same content is the same item."
SEND_KEY = "A key with the role producer or admin; preferably given as VENIRE_KEY."

#: Refused rows that are listed.
LISTED: Final = 20

#: Answers that are about what was sent, not about who sends it or where.
_ABOUT_ITEMS: Final = (400, 409, 413, 422)

#: Where the server found a fault in a request of one item.
_PLACE: Final = re.compile(r"^invalid request: body\.(line )?\d+\.")


def send(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help=STREAM)],
    file: Annotated[str, typer.Argument(metavar="FILE", help=ITEMS_FILE)],
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help=ID)] = None,
    hash_ids: Annotated[bool, typer.Option("--hash-ids", help=HASH)] = False,
    url: Url = HERE,
    key: Annotated[str, typer.Option(metavar="KEY", help=SEND_KEY, envvar="VENIRE_KEY")] = "",
    as_json: AsJson = False,
) -> None:
    """Send the items of a file to a stream.

    Columns that are not id, weight, min_confidence, eligible or excluded are what labelers are
    shown. Items that are there already are left alone, so the same command continues after an
    interruption. Rows that are refused are listed; the others are sent.
    """
    from venire.client import Client
    from venire.files.items import read_sent, send_all

    check_key(key)
    if id is not None and hash_ids:
        raise InputError("--id and --hash-ids exclude each other: drop one of them")
    rows = read_sent(located(file), id, hash_ids)
    latest = ["0 items sent"]
    try:
        with Client(url, key) as client, screen.working(f"sending to {stream}") as working:
            client.stream(stream)  # an unknown stream is said before the file is read

            def progress(text: str) -> None:
                latest[0] = text
                working(text)

            done = send_all(rows, lambda items: _post(client, stream, items), progress)
    except KeyboardInterrupt:
        screen.say(f"{latest[0]} so far; the same command goes on")
        raise
    _say(done, as_json)


def _post(client: Client, stream: str, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Send items; an answer that is about them is an `InputError`."""
    from venire.client import ServerError

    try:
        return client.add_items(stream, items)
    except ServerError as fault:
        if fault.status not in _ABOUT_ITEMS:
            raise
        message = fault.message.partition(": nothing in the request")[0]
        raise InputError(_PLACE.sub("", message)) from None


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


FILE = (
    "The settings: TOML, YAML or JSON, with the stream's name and its settings as in docs/serve.md."
)

#: A text in a file of its own, beside the settings.
GUIDELINES: Final = "guidelines_file"


def stream(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILE)],
    url: Url = HERE,
    key: AdminKey = "",
    as_json: AsJson = False,
) -> None:
    """Create a stream from a file of settings, or change it to what the file says.

    guidelines_file names a Markdown file beside it that holds the guidelines. Settings that the
    file leaves out stay as they are. The same file again changes nothing.
    """
    check_key(key)
    name, settings = stream_file(file)
    done, changed = _apply(url, key, name, settings)
    if as_json:
        print(json.dumps({"stream": name, "status": done, "changed": changed}))
    else:
        print(f"{name}: {done}" + (f" ({', '.join(changed)})" if changed else ""))


def stream_file(path: Path) -> tuple[str, dict[str, Any]]:
    r"""The name and the settings of a stream in a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "g.md").write_text("Look twice.")
    ...     text = 'name = "posts"\nclasses = ["spam", "ok"]\nguidelines_file = "g.md"'
    ...     _ = Path(folder, "posts.toml").write_text(text)
    ...     stream_file(Path(folder, "posts.toml"))
    ('posts', {'classes': ['spam', 'ok'], 'guidelines': 'Look twice.'})
    """
    settings = _settings(path)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise InputError(
            f'{path} has the name {name!r}, expected the name of the stream: name = ""'
        )
    if GUIDELINES in settings:
        if "guidelines" in settings:
            raise InputError(f"{path} has both guidelines and {GUIDELINES}, expected one of them")
        settings["guidelines"] = read_text(path.parent / str(settings.pop(GUIDELINES)))
    return name, settings


def _settings(path: Path) -> dict[str, Any]:
    """The settings by the ending of the file; TOML if that says nothing."""
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return read_toml(path)
    tree = read_tree(path)
    if not isinstance(tree.content, dict):
        got = type(tree.content).__name__
        raise FileError(path, None, f"got a {got}, expected settings such as name: posts")
    return tree.content


def _apply(url: str, key: str, name: str, settings: dict[str, Any]) -> tuple[str, list[str]]:
    """Create or change the stream; what was done, and which settings changed."""
    from venire.client import Client, ServerError

    with Client(url, key) as client:
        try:
            known = client.stream(name)["settings"]
        except ServerError as fault:
            if fault.status != 404:
                raise
            client.create_stream(name, **settings)
            return "created", []
        changes = {field: value for field, value in settings.items() if known.get(field) != value}
        if not changes:
            return "unchanged", []
        after = client.change_stream(name, **changes)["settings"]
        changed = sorted(field for field in changes if after.get(field) != known.get(field))
        return ("changed" if changed else "unchanged"), changed
