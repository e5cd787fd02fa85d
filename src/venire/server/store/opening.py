"""A store by its address.

A store into which an archive is being restored is marked, and nobody else may open it: it is not
complete yet.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from venire.errors import InputError, MissingExtra, StoreError, VenireError
from venire.tools.untrusted import scrubbed

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage

#: The named value that says which archive is being restored; empty once that is done.
RESTORING: Final = "restoring"


def open_storage(
    url: str, owner: bool = True, address: str | None = None, *, copy: bool = True
) -> Storage:
    """Open the store at `sqlite:///file`, `postgresql://...` or `memory:`.

    Parameters
    ----------
    url
        Its address. `sqlite:///venire.db` is a file in the current folder,
        `sqlite:////var/lib/venire.db` one with a full path.
    owner
        Whether this process is the one that runs the streams. An owner makes the store if it is
        not there, brings an older one up to date and keeps other owners out. Others read it, and
        may write keys, while the owner runs.
    address
        Where other servers reach this one, if they share the streams of a PostgreSQL out among
        themselves: then it owns what it claims (see `ownership`).
    copy
        Whether a SQLite file of an earlier schema is copied before it is brought up to date.

    >>> open_storage("memory:").streams()
    []
    >>> open_storage("mysql://me:secret@host/venire")
    Traceback (most recent call last):
    venire.errors.InputError: got the store 'mysql://me:***@host/venire', expected sqlite:///...
    """
    try:
        return _open(url, owner, address, copy)
    except VenireError as error:
        error.args = tuple(_without_passwords(url, x) for x in error.args)
        raise


def _without_passwords(url: str, message: object) -> object:
    """A message in which no password of the address is left."""
    if not isinstance(message, str):
        return message
    rest = url.partition("://")[2]
    account = rest.rpartition("@")[0].partition("/")[0]
    found = [account.partition(":")[2]]
    found += re.findall(r"[?&][^=&]*pass[^=&]*=([^&]*)", url, re.I)
    hidden = url
    for secret in filter(None, found):
        hidden = re.sub(f"([:=]){re.escape(secret)}(?=[@&]|$)", r"\1***", hidden)
    message = message.replace(url, hidden)
    for secret in found:
        if len(unquote(secret)) > 3:  # fewer letters stand anywhere
            message = scrubbed(message, unquote(secret))
    return message


def _open(url: str, owner: bool, address: str | None, copy: bool) -> Storage:
    kind = url.partition(":")[0].partition("+")[0]
    if address is not None and not kind.startswith("postgres"):
        raise InputError(f"got the store {url!r}: only PostgreSQL can be shared by servers")
    if kind not in ("memory", "sqlite", "postgres", "postgresql"):
        raise InputError(
            f"got the store {url!r}, expected sqlite:///FILE, postgresql://... or memory:"
        )
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise MissingExtra("sqlalchemy", "serve") from None
    if kind == "memory":
        from venire.server.store.sql.sqlite import TemporaryStorage

        return TemporaryStorage()
    if kind == "sqlite":
        from venire.server.store.sql.sqlite import SqliteStorage

        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError) as error:
            what = f"got the store {url!r}, which is not a valid address: {error}"
            raise InputError(what) from None
        return _whole(SqliteStorage(parsed, owner, copy))
    from venire.server.store.sql.postgres import PostgresStorage

    return _whole(PostgresStorage(url, owner, address))


def _whole(storage: Storage) -> Storage:
    """The store, unless a restore of it was begun and not finished."""
    try:
        source = storage.meta(RESTORING)
        if source:
            raise StoreError(
                f"the store {storage.url} is incomplete: the restore of {source} is not finished. "
                "Wait for it or, if it was interrupted, remove the store and restore again"
            )
    except BaseException:
        storage.close()
        raise
    return storage
