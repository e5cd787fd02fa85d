"""`venire.toml`: the settings of the server in a file, beside the environment variables.

    [serve]
    storage = "postgresql://venire@db/venire"
    port = 8400

An option overrides a variable, which overrides the file, which overrides the default. The file is
the one that `VENIRE_CONFIG` names, or `venire.toml` in the folder in which the command is run. The
commands that open a store (`keys`, `backup`, ...) take `storage` from it too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from venire.errors import InputError, UnknownName
from venire.files.trees import read_toml

if TYPE_CHECKING:
    from venire.server.store import Storage


STORAGE = "The store: sqlite:///FILE or postgresql://..."

#: The store of the commands that open one, where nothing names another.
STORE: Final = "sqlite:///venire.db"
StorageUrl: TypeAlias = Annotated[
    str, typer.Option("--storage", metavar="URL", help=STORAGE, envvar="VENIRE_STORAGE")
]

WHICH: Final = "Which stream. [default: the only one]"
StreamName: TypeAlias = Annotated[str | None, typer.Option(metavar="NAME", help=WHICH)]


def open_store(url: str, *, owner: bool = False) -> Storage:
    """Open a store: beside the server that may be using it, unless as its owner."""
    from venire.server.store import open_storage

    if url.startswith("memory:"):
        raise InputError("got memory:, which is always empty when opened: give a file's URL")
    return open_storage(url, owner=owner)


@contextmanager
def open_stream(
    url: str, stream: str | None, *, owner: bool = False
) -> Iterator[tuple[Storage, str]]:
    """A store, and the name of the stream in it that is meant."""
    with open_store(url, owner=owner) as storage:
        yield storage, chosen_stream(storage, stream)


def chosen_stream(storage: Storage, stream: str | None) -> str:
    """The requested stream, or the only one there is."""
    names = [row.name for row in storage.streams()]
    if stream is None and len(names) == 1:
        return names[0]
    if stream is None:
        raise InputError(f"the store has {len(names)} streams: choose one with --stream")
    if stream not in names:
        raise UnknownName("stream", stream, names)
    return stream


#: The file, unless another one is named.
FILE: Final = "venire.toml"

#: The table in it.
TABLE: Final = "serve"

#: The commands that open the store of the server.
STORE_COMMANDS: Final = ("archive", "backup", "export", "keys", "replay", "verify")


def config_path(given: Path | None = None) -> Path | None:
    """The file to read: the one given, that of `VENIRE_CONFIG`, or the one here; None: none."""
    named = given or Path(os.environ.get("VENIRE_CONFIG", ""))
    if named != Path():
        if not named.is_file():
            raise InputError(f"there is no file {named}, which was named as the configuration")
        return named
    return Path(FILE) if Path(FILE).is_file() else None


def read(path: Path | None) -> dict[str, Any]:
    r"""The settings in a file; none without one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "venire.toml").write_text("[serve]\nport = 8500")
    ...     read(Path(folder, "venire.toml"))
    {'port': 8500}
    """
    if path is None:
        return {}
    found = read_toml(path)
    for name in found:
        if name != TABLE:
            known = [f"[{TABLE}], with settings below it"]
            raise UnknownName(f"table or key in {path}", name, known)
    settings = found.get(TABLE, {})
    if not isinstance(settings, dict):
        raise InputError(f"{path} has {TABLE} = {settings!r}, expected a table [{TABLE}]")
    return settings


def check_keys(path: Path | None, settings: Mapping[str, Any], known: Collection[str]) -> None:
    for key in settings:
        if key not in known:
            raise UnknownName(f"setting in [{TABLE}] of {path}", key, known)


def defaults_of(command: str | None) -> dict[str, Any]:
    """Defaults of a command from the file, in the form that click takes them.

    >>> defaults_of("simulate")
    {}
    """
    if command not in STORE_COMMANDS:
        return {}
    path = config_path()
    storage = read(path).get("storage")
    if storage is not None and not isinstance(storage, str):
        raise InputError(f"{path} has {TABLE}.storage = {storage!r}, expected the URL of a store")
    return {command: {"storage": storage}} if storage else {}
