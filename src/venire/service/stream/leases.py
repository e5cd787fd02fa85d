"""Open leases: who holds what, and until when.

A lease is a row (labeler, item, hash of its token, end), written in the same transaction as the
assignment. It ends on the monotonic clock. Its end takes the claim away and nothing else.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

from venire.storage import LeaseRow

__all__ = ["Held", "Leases"]


@dataclass(slots=True)
class Held:
    """An open lease. `of_open`: its item has not left, so it counts as work in flight.

    `given` and `end` are on the monotonic clock; `given` is None if that was before a restart.
    """

    token_hash: str
    item: str
    labeler: str
    given_at: float
    given: float | None
    ttl: float
    end: float
    of_open: bool = True

    def lead(self, now: float) -> float | None:
        """How long ago it was given, if that is known."""
        return None if self.given is None else now - self.given

    def row(self, stream: str, key: str | None = None) -> LeaseRow:
        """What the store keeps; `key` is the id of the key by which it was asked for."""
        when = self.given_at, self.ttl
        return LeaseRow(self.token_hash, stream, self.item, self.labeler, *when, key=key)


class Leases:
    """The open leases of a stream, by token, by item and labeler, and by end.

    `index` says of every open lease of the server to which stream it belongs.

    >>> leases = Leases({}, "posts")
    >>> leases.add(Held("5e88", "post-1", "ann", 0.0, given=0.0, ttl=60.0, end=60.0))
    >>> leases.renew("5e88", 100.0)
    >>> leases.due(99.0), leases.next_end()
    ([], 100.0)
    >>> [lease.item for lease in leases.due(100.0)]
    ['post-1']
    """

    def __init__(self, index: dict[str, str], stream: str) -> None:
        self._index, self._stream = index, stream
        self._of: dict[str, Held] = {}
        self._pairs: dict[tuple[str, str], Held] = {}
        self._holds: dict[str, int] = {}
        self._ends: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._of.values())

    def get(self, token_hash: str) -> Held | None:
        """The lease of a token, if it is open."""
        return self._of.get(token_hash)

    def of_pair(self, item: str, labeler: str) -> Held | None:
        """The lease of a labeler for an item, if it is open."""
        return self._pairs.get((item, labeler))

    def holds(self, labeler: str) -> int:
        """How many items that have not left the labeler holds."""
        return self._holds.get(labeler, 0)

    @property
    def in_flight(self) -> int:
        """How many leases are for items that have not left."""
        return sum(self._holds.values())

    def add(self, lease: Held) -> None:
        """A lease is given."""
        self._of[lease.token_hash] = lease
        self._index[lease.token_hash] = self._stream
        self._pairs[lease.item, lease.labeler] = lease
        if lease.of_open:
            self._holds[lease.labeler] = self._holds.get(lease.labeler, 0) + 1
        heapq.heappush(self._ends, (lease.end, lease.token_hash))

    def renew(self, token_hash: str, end: float) -> None:
        """A lease lasts longer."""
        self._of[token_hash].end = end
        heapq.heappush(self._ends, (end, token_hash))

    def rename(self, lease: Held, token_hash: str) -> None:
        """A lease goes on under another token."""
        del self._of[lease.token_hash], self._index[lease.token_hash]
        lease.token_hash = token_hash
        self._of[token_hash] = lease
        self._index[token_hash] = self._stream
        heapq.heappush(self._ends, (lease.end, token_hash))

    def pop(self, lease: Held) -> None:
        """A lease ends."""
        del self._of[lease.token_hash], self._index[lease.token_hash]
        del self._pairs[lease.item, lease.labeler]
        self.let_go(lease)

    def let_go(self, lease: Held) -> None:
        """The item of a lease has left: its label is not waited for."""
        if lease.of_open:
            lease.of_open = False
            left = self._holds[lease.labeler] - 1
            if left:
                self._holds[lease.labeler] = left
            else:
                del self._holds[lease.labeler]

    def due(self, now: float) -> list[Held]:
        """The leases whose end has come, the earliest first; they stay until popped."""
        found: dict[str, Held] = {}
        while self._ends and self._ends[0][0] <= now:
            _, token_hash = heapq.heappop(self._ends)
            lease = self._of.get(token_hash)
            if lease is not None and lease.end <= now:
                found[token_hash] = lease
        return list(found.values())

    def next_end(self) -> float:
        """When the next lease ends; inf if there is none."""
        while self._ends:
            end, token_hash = self._ends[0]
            lease = self._of.get(token_hash)
            if lease is not None and lease.end == end:
                return end
            heapq.heappop(self._ends)
        return math.inf
