"""What the commands about a store share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.server.store import Storage

__all__ = ["StorageUrl", "chosen_stream", "open_guest"]

STORAGE = "The store: sqlite:///FILE or postgresql://..."

StorageUrl: TypeAlias = Annotated[
    str, typer.Option("--storage", metavar="URL", help=STORAGE, envvar="VENIRE_STORAGE")
]


def open_guest(url: str) -> Storage:
    """Open a store beside the server that may be using it."""
    from venire.server.store import open_storage

    if url.startswith("memory:"):
        raise InputError("got memory:, which is always empty when opened: give a file's URL")
    return open_storage(url, owner=False)


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
