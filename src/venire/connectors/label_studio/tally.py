"""What a round of the sync did, or all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from venire.connectors import rounds

__all__ = ["Tally"]


@dataclass
class Tally(rounds.Tally):
    """Counts of tasks and annotations.

    >>> print(Tally(labels=2, closed=1))
    2 labels, 1 task closed
    """

    WORDS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "items": ("new item", "new items"),
        "labels": ("label", "labels"),
        "skips": ("skip", "skips"),
        "refused": ("annotation refused", "annotations refused"),
        "given": ("task handed out", "tasks handed out"),
        "ended": ("lease ended", "leases ended"),
        "closed": ("task closed", "tasks closed"),
    }

    skips: int = 0
    given: int = 0
    ended: int = 0
    closed: int = 0
