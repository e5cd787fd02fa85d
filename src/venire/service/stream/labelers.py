"""What a stream remembers of each labeler, beside what the engine has learned."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from venire.service.settings import Member

__all__ = ["People", "Person"]


@dataclass(slots=True)
class Person:
    """A labeler: how much it holds at most, when it was last heard of, what it has done."""

    capacity: int = 1
    kind: str | None = None
    seen: float = -math.inf
    labels: int = 0
    late: int = 0
    expired: int = 0


class People(dict[str, Person]):
    """The labelers of a stream by name; `seated` are those who may be given work.

    >>> people = People()
    >>> people.seat([Member(id="ann", capacity=2)], {"ann"})
    >>> people["ann"].capacity, people.seated
    (2, {'ann'})
    """

    def __init__(self) -> None:
        super().__init__()
        self.seated: set[str] = set()

    def seat(self, panel: Iterable[Member], seated: set[str]) -> None:
        """Who is on the panel now, and how."""
        self.seated = seated
        for name in seated:
            self.setdefault(name, Person())
        for member in panel:
            person = self.setdefault(member.id, Person())
            person.capacity, person.kind = member.capacity, member.kind

    def known(self, name: str) -> Person:
        """A labeler, whether it was known before or not."""
        return self.setdefault(name, Person())

    def heard_of(self, name: str, now: float) -> Person:
        """The labeler did something."""
        person = self.known(name)
        person.seen = now
        return person
