"""What a stream keeps about each labeler, beside what the engine has learned."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from venire.server.settings import Member


@dataclass(slots=True)
class LabelerRecord:
    """A labeler's capacity, price of a label, last activity, and counts."""

    capacity: int = 1
    kind: str | None = None
    price: float = 0.0
    last_seen: float = -math.inf
    labels: int = 0
    late: int = 0
    expired: int = 0
    unsure: int = 0

    @property
    def money(self) -> float:
        """What the labels cost, at the present price."""
        return self.labels * self.price


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
        """Set the panel and who is seated."""
        self.seated = seated
        for name in seated:
            self.setdefault(name, LabelerRecord())
        for member in panel:
            record = self.setdefault(member.id, LabelerRecord())
            record.capacity, record.kind, record.price = member.capacity, member.kind, member.price

    def record(self, name: str) -> LabelerRecord:
        """The record of a labeler, added if it is new."""
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
