"""How many items came and went in each minute of the last hour, for the charts of the home page."""

from __future__ import annotations

from collections import Counter
from typing import Final

#: The minutes that are kept.
MINUTES: Final = 60


class History:
    """Arrivals, exits and withdrawals by minute; the queue of earlier follows from that of now.

    >>> history = History()
    >>> history.came(30.0, 3)
    >>> history.went(70.0, verdict=True)
    >>> history.exits(130.0)[-3:], history.queue(2, 130.0)[-3:]
    ([0, 1, 0], [3, 2, 2])
    """

    def __init__(self) -> None:
        self._came: Counter[int] = Counter()
        self._left: Counter[int] = Counter()
        self._withdrawn: Counter[int] = Counter()

    def came(self, now: float, count: int = 1) -> None:
        """Items arrived."""
        self._count(self._came, now, count)

    def went(self, now: float, verdict: bool) -> None:
        """An item left with its verdict, or was withdrawn."""
        self._count(self._left if verdict else self._withdrawn, now, 1)

    def exits(self, now: float) -> list[int]:
        """Exits in each minute, that of now at the end."""
        return [self._left[minute] for minute in _minutes(now)]

    def queue(self, open_now: int, now: float) -> list[int]:
        """Open items at the end of each minute, those of now at the end."""
        found = [open_now]
        for minute in reversed(_minutes(now)[1:]):
            found.append(found[-1] - self._came[minute] + self._left[minute])
            found[-1] = max(0, found[-1] + self._withdrawn[minute])
        return found[::-1]

    def _count(self, counts: Counter[int], now: float, count: int) -> None:
        minute = int(now // 60)
        if minute not in counts:
            for old in [old for old in counts if old <= minute - MINUTES]:
                del counts[old]
        counts[minute] += count


def _minutes(now: float) -> range:
    end = int(now // 60) + 1
    return range(end - MINUTES, end)
