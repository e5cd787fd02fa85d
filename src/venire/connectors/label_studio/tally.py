"""What a round of the sync did, or all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

__all__ = ["Tally"]

#: How each count is said, for one and for more.
WORDS: Final = {
    "items": ("new item", "new items"),
    "labels": ("label", "labels"),
    "skips": ("skip", "skips"),
    "refused": ("annotation refused", "annotations refused"),
    "given": ("task handed out", "tasks handed out"),
    "ended": ("lease ended", "leases ended"),
    "closed": ("task closed", "tasks closed"),
}


@dataclass
class Tally:
    """Counts; `refusals` says which annotations were not counted, and why.

    >>> print(Tally(labels=2, closed=1))
    2 labels, 1 task closed
    """

    items: int = 0
    labels: int = 0
    skips: int = 0
    refused: int = 0
    given: int = 0
    ended: int = 0
    closed: int = 0
    refusals: list[str] = field(default_factory=list)

    def refuse(self, why: str) -> None:
        """Count an annotation that is not counted as a label."""
        self.refused += 1
        self.refusals.append(why)

    def add(self, other: Tally) -> None:
        """Add the counts of a round."""
        for name in WORDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name in WORDS}

    def __bool__(self) -> bool:
        return any(self.counts().values())

    def __str__(self) -> str:
        said = [f"{n:,} {WORDS[name][n != 1]}" for name, n in self.counts().items() if n]
        return ", ".join(said) or "nothing to do"
