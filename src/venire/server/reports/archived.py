"""What has left the store: read from the archive, or named."""

from __future__ import annotations

from venire.errors import Archived, FileError, MissingExtra, NotFound
from venire.server.runtime.runtime import Runtime
from venire.server.store.history.finding import ArchivedItem, find_archived, segment_of


def check_cursor(what: str, after: int, archived: int) -> None:
    """Refuse a cursor behind which something is archived: it would be skipped silently.

    >>> check_cursor("exits", 7, archived=7)
    """
    if after < archived:
        raise Archived(
            f"the {what} up to {archived:,} are archived, got the cursor {after:,}: go on from "
            f"{archived}, and read those before from the archive"
        )


async def where(runtime: Runtime, stream: str, item: str) -> Archived | NotFound:
    """The error that says where an item is that is not in the store."""
    try:
        _, segment = await runtime.read(segment_of, runtime.storage, stream, item)
    except NotFound:
        return NotFound("item", item)
    if not segment.name:
        return Archived(f"item {item!r} was deleted by the stream's retention")
    return Archived(
        f"item {item!r} is in segment {segment.name} of the archive of stream {stream!r}: venire "
        "archive --item shows it, --restore brings it back"
    )


async def find(runtime: Runtime, stream: str, item: str) -> ArchivedItem:
    """An item from the archive, if this server has it; else an error that says where it is."""
    archive = runtime.settings.archive
    error = await where(runtime, stream, item)
    if archive is None or isinstance(error, NotFound):
        raise error
    try:
        return await runtime.read(find_archived, runtime.storage, stream, item, archive)
    except (FileError, MissingExtra, NotFound) as fault:
        raise error from fault
