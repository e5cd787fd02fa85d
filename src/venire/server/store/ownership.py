"""Which streams a process may write: all of a store that it owns, or those that it has claimed.

One server owns a store as a whole, or several share its streams out. A claim is one of the session
in which the process writes, so a commit proves that it held the claims; the database ends the
session, and its claims, when the process is gone. Nobody compares clocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import NamedTuple

from venire.server.store import changes as c
from venire.server.store.records import AuditRow, StreamRow


class Members(NamedTuple):
    """The servers that share a store by the number of their session, and who owns which stream.

    Streams are known by a number: tokens of assignments contain it.

    >>> members = Members(7, {7: "http://a:8400", 9: "http://b:8400"}, {lock_of("posts"): 9})
    >>> members.owner("posts"), members.owner("tweets")
    (9, None)
    """

    me: int
    addresses: dict[int, str]
    holders: dict[int, int]
    not_taking: frozenset[int] = frozenset()  # they leave, or may be suspended: they claim nothing
    secrets: Mapping[int, str] = MappingProxyType({})  # by which each proves who it is

    def owner(self, stream: str) -> int | None:
        return self.holders.get(lock_of(stream))


class Ownership:
    """What the owner of a whole store may do: everything."""

    #: Whether several servers share the streams of the store.
    shared = False

    def holds(self, stream: str) -> bool:
        """Whether this process may write a stream, as far as it knows: a commit proves it."""
        return True

    def claims(self) -> frozenset[str]:
        """The streams that it has claimed one by one."""
        return frozenset()

    def claim(self, stream: str) -> bool:
        """Claim a stream, which need not exist; False if another server has it."""
        return True

    def disclaim(self, stream: str) -> None:
        """Let others claim a stream; whatever was to be written must be written."""

    def resign(self) -> None:
        """Let the other servers know that this one will claim nothing more."""

    def members(self) -> Members:
        """The servers that share the store now."""
        return Members(0, {}, {})

    @property
    def session(self) -> int:
        """The number of the session in which this process writes, as in `Members.me`."""
        return 0

    @property
    def secret(self) -> str:
        """By which this process proves to the other servers who it is."""
        return ""

    @property
    def lost(self) -> str | None:
        """Why the connection by which it writes is lost, if that is known."""
        return None

    @property
    def silent(self) -> bool:
        """Whether the database owes it an answer for some seconds, or the connection is lost."""
        return False

    def abandon(self) -> None:
        """Wait for no answer of the database any more: calls under way fail, and all later ones."""

    def starting(self) -> AbstractContextManager[None]:
        """Inside, no other server that shares the store is inside."""
        return nullcontext()


def lock_of(stream: str) -> int:
    """The number of a stream: 64 bits, signed.

    >>> lock_of("posts") == lock_of("posts") != lock_of("tweets")
    True
    """
    digest = hashlib.sha256(b"venire stream " + stream.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def streams_of(changes: Sequence[c.Change]) -> set[str]:
    """The streams whose rows are changed; keys, named values and the audit trail are of none.

    The end of a lease and a removed webhook name no stream, and come with what does.

    >>> from venire.server.store import Insert, SetMeta, SetStatus, StreamRow
    >>> made = StreamRow(name="posts", created_at=0.0)
    >>> rows = [Insert([made]), SetStatus("tweets", "paused"), SetMeta("a", "")]
    >>> sorted(streams_of(rows))
    ['posts', 'tweets']
    """
    found: set[str] = set()
    for change in changes:
        match change:
            case c.EndLeases() | c.Insert(rows=[AuditRow(), *_]):
                pass
            case c.Insert(rows=[StreamRow(), *_] as made):
                found.update(row.name for row in made if isinstance(row, StreamRow))
            case _:
                rows = getattr(change, "rows", [getattr(change, "row", change)])
                found.update(row.stream for row in rows if hasattr(row, "stream"))
    return found
