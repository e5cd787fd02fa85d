"""`venire stream`: create a stream from a file, or change it to what the file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from venire.errors import FileError, InputError
from venire.files.items import read_text, read_toml, read_tree

__all__ = ["stream", "stream_file"]

FILE = (
    "The settings: TOML, YAML or JSON, with the stream's name and its settings as in docs/serve.md."
)
URL = "The server; several on one store with commas between them."
KEY = "A key with the role admin; preferably given as VENIRE_KEY."

#: A text in a file of its own, beside the settings.
GUIDELINES: Final = "guidelines_file"


def stream(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILE)],
    url: Annotated[
        str, typer.Option(metavar="URL", help=URL, envvar="VENIRE_URL")
    ] = "http://127.0.0.1:8400",
    key: Annotated[str, typer.Option(metavar="KEY", help=KEY, envvar="VENIRE_KEY")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Create a stream from a file of settings, or change it to what the file says.

    guidelines_file names a Markdown file beside it that holds the guidelines. Settings that the
    file leaves out stay as they are. The same file again changes nothing.
    """
    if not key:
        raise InputError("no key was given: use --key, or set VENIRE_KEY")
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
