"""Leases: who holds what, and until when.

A lease is a row (labeler, item, hash of its token, end), written in the same transaction as the
assignment. It ends on the monotonic clock. Expiry ends the claim; a later label still counts.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from venire.server.messages import Answer
from venire.server.settings import Member
from venire.server.store import LeaseRow
from venire.server.stream.statistics import quantile

#: How many of the latest exits and answers to remember.
REMEMBERED: Final = 20_000

#: How many of a labeler's latest lead times to keep.
KEPT_TIMES: Final = 50

#: The length of a lease: this factor times this quantile of the lead times.
LEASE_FACTOR, LEASE_QUANTILE = 2.0, 0.9

#: Seconds without activity after which a labeler that holds nothing is away.
AWAY: Final = 120.0

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class HeldLease:
    """A lease. `of_open`: its item has not left, so it counts as work in flight.

    `given` and `end` are on the monotonic clock; `given` is None for a lease from before a restart.
    `again` is what the labeler said of the item before, if it is asked again.
    """

    token_hash: str
    item: str
    labeler: str
    given_at: float
    given: float | None
    ttl: float
    end: float
    of_open: bool = True
    again: str | None = None

    def lead(self, now: float, most: float | None = None) -> float | None:
        """Seconds since it was given, if known; no more than `most`."""
        if self.given is None:
            return None
        return now - self.given if most is None else min(now - self.given, most)

    def row(self, stream: str, key: str | None = None) -> LeaseRow:
        """The row in the store; `key` is the id of the API key that asked for it."""
        return LeaseRow(
            token_hash=self.token_hash,
            stream=stream,
            item=self.item,
            labeler=self.labeler,
            given_at=self.given_at,
            ttl=self.ttl,
            key=key,
            again=self.again,
        )


class Leases:
    """The open leases of a stream, by token, by item and labeler, and by end.

    `index` maps every open lease of the server to its stream.

    >>> leases = Leases({}, "posts")
    >>> leases.add(HeldLease("5e88", "post-1", "ann", 0.0, given=0.0, ttl=60.0, end=60.0))
    >>> leases.renew("5e88", 100.0)
    >>> leases.due(99.0), leases.next_end()
    ([], 100.0)
    >>> [lease.item for lease in leases.due(100.0)]
    ['post-1']
    """

    def __init__(self, index: dict[str, str], stream: str) -> None:
        self._index, self._stream = index, stream
        self._of: dict[str, HeldLease] = {}
        self._pairs: dict[tuple[str, str], HeldLease] = {}
        self._holds: dict[str, int] = {}
        self.again: Counter[str] = Counter()  # items that labelers hold who are asked again
        self._ends: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[HeldLease]:
        return iter(self._of.values())

    def get(self, token_hash: str) -> HeldLease | None:
        return self._of.get(token_hash)

    def of_pair(self, item: str, labeler: str) -> HeldLease | None:
        return self._pairs.get((item, labeler))

    def holds(self, labeler: str) -> int:
        """How many open items the labeler holds, and items that it is asked about again."""
        return self._holds.get(labeler, 0) + self.again[labeler]

    @property
    def in_flight(self) -> int:
        return sum(self._holds.values())

    def add(self, lease: HeldLease) -> None:
        self._of[lease.token_hash] = lease
        self._index[lease.token_hash] = self._stream
        self._pairs[lease.item, lease.labeler] = lease
        if lease.of_open:
            self._holds[lease.labeler] = self._holds.get(lease.labeler, 0) + 1
        if lease.again is not None:
            self.again[lease.labeler] += 1
        heapq.heappush(self._ends, (lease.end, lease.token_hash))

    def renew(self, token_hash: str, end: float) -> None:
        self._of[token_hash].end = end
        heapq.heappush(self._ends, (end, token_hash))

    def rename(self, lease: HeldLease, token_hash: str) -> None:
        """Give a lease another token."""
        del self._of[lease.token_hash], self._index[lease.token_hash]
        lease.token_hash = token_hash
        self._of[token_hash] = lease
        self._index[token_hash] = self._stream
        heapq.heappush(self._ends, (lease.end, token_hash))

    def pop(self, lease: HeldLease) -> None:
        del self._of[lease.token_hash], self._index[lease.token_hash]
        del self._pairs[lease.item, lease.labeler]
        if lease.again is not None:
            self.again -= Counter([lease.labeler])
        self.item_left(lease)

    def item_left(self, lease: HeldLease) -> None:
        """Count a lease no longer as in flight: its item has left."""
        if lease.of_open:
            lease.of_open = False
            left = self._holds[lease.labeler] - 1
            if left:
                self._holds[lease.labeler] = left
            else:
                del self._holds[lease.labeler]

    def due(self, now: float) -> list[HeldLease]:
        """The expired leases, earliest first; they stay until popped."""
        found: dict[str, HeldLease] = {}
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


class LeadTimes:
    """Labelers' times from lease to label, and the length of the next lease.

    A lease lasts twice the labeler's 90th percentile, within bounds. For a labeler without labels
    the whole panel's times are used, and without any the geometric mean of the bounds.

    >>> times = LeadTimes()
    >>> times.ttl("ann", 10, 1000)
    100.0
    >>> for seconds in range(30, 40):
    ...     times.add("ann", seconds)
    >>> times.ttl("ann", 10, 1000), times.ttl("bob", 10, 1000), times.ttl("ann", 10, 60)
    (76.0, 76.0, 60)
    """

    def __init__(self) -> None:
        self._of: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=KEPT_TIMES)
        self._kept: dict[str | None, float | None] = {}

    def add(self, labeler: str, seconds: float) -> None:
        """Record the time from a lease to its label."""
        self._of.setdefault(labeler, deque(maxlen=KEPT_TIMES)).append(seconds)
        self._all.append(seconds)
        self._kept.pop(labeler, None)
        self._kept.pop(None, None)

    def of(self, labeler: str) -> tuple[float, ...]:
        """The recent lead times of a labeler, oldest first."""
        return tuple(self._of.get(labeler, ()))

    def ttl(self, labeler: str, floor: float, ceiling: float) -> float:
        """How long the next lease of this labeler lasts."""
        typical = self._typical(labeler)
        if typical is None:
            return math.sqrt(floor * ceiling)
        return min(max(LEASE_FACTOR * typical, floor), ceiling)

    def _typical(self, labeler: str) -> float | None:
        who = labeler if labeler in self._of else None
        if who not in self._kept:
            self._kept[who] = quantile(self._all if who is None else self._of[who], LEASE_QUANTILE)
        return self._kept[who]


class RecentDict(OrderedDict[K, V], Generic[K, V]):
    """A dictionary that keeps only its latest entries.

    >>> recent = RecentDict(2)
    >>> for letter in "abc":
    ...     recent.put(letter, ord(letter))
    >>> list(recent)
    ['b', 'c']
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def put(self, key: K, value: V) -> None:
        """Add an entry; drops the oldest if there are too many."""
        self[key] = value
        if len(self) > self.size:
            self.popitem(last=False)


class LeaseIndex:
    """The leases of all streams by the hash of their token.

    `streams` maps open leases to their stream, `answers` recently labelled leases to the answer,
    and `lapsed` recently ended leases without a label to stream and lease.
    """

    def __init__(self) -> None:
        self.streams: dict[str, str] = {}
        self.answers: RecentDict[str, Answer] = RecentDict(REMEMBERED)
        self.lapsed: RecentDict[str, tuple[str, HeldLease]] = RecentDict(REMEMBERED)

    def forget(self, stream: str) -> None:
        gone = [token for token, name in self.streams.items() if name == stream]
        gone += [token for token, made in self.answers.items() if made.stream == stream]
        gone += [token for token, (name, _) in self.lapsed.items() if name == stream]
        for token in gone:
            self.streams.pop(token, None)
            self.answers.pop(token, None)
            self.lapsed.pop(token, None)

    def clear(self) -> None:
        """Drop everything; it is in the store."""
        self.streams.clear()
        self.answers.clear()
        self.lapsed.clear()


@dataclass(slots=True)
class LabelerRecord:
    """A labeler's capacity, price of a label, last activity, and counts.

    `repeats` is how often it answered when it was asked again, and `same` how often as before.
    """

    capacity: int = 1
    kind: str | None = None
    price: float = 0.0
    last_seen: float = -math.inf
    labels: int = 0
    late: int = 0
    expired: int = 0
    unsure: int = 0
    repeats: int = 0
    same: int = 0

    @property
    def money(self) -> float:
        """What the labels cost, and the answers of who was asked again, at the present price."""
        return (self.labels + self.repeats) * self.price

    def state(self, holds: int, now: float) -> Literal["busy", "free", "away"]:
        """Whether it is busy, free or away, if it holds so many items."""
        return "busy" if holds else "free" if now - self.last_seen <= AWAY else "away"


class Labelers(dict[str, LabelerRecord]):
    """The labelers of a stream by name; `seated` are those who may be assigned work.

    >>> labelers = Labelers()
    >>> labelers.seat([Member(id="ann", capacity=2)], {"ann"})
    >>> labelers["ann"].capacity, labelers.seated
    (2, {'ann'})
    """

    def __init__(self) -> None:
        super().__init__()
        self.seated: set[str] = set()

    def seat(self, panel: Iterable[Member], seated: set[str]) -> None:
        self.seated = seated
        for name in seated:
            self.setdefault(name, LabelerRecord())
        for member in panel:
            record = self.setdefault(member.id, LabelerRecord())
            record.capacity, record.kind, record.price = member.capacity, member.kind, member.price

    def record(self, name: str) -> LabelerRecord:
        return self.setdefault(name, LabelerRecord())

    @property
    def money(self) -> float:
        """What all labels cost, at the present prices."""
        return sum(record.money for record in self.values())

    def touch(self, name: str, now: float) -> LabelerRecord:
        """Record that the labeler was active."""
        record = self.record(name)
        record.last_seen = now
        return record
