"""Which snapshots stay: the older they are, the further apart.

To say why something happened, the log is replayed from the snapshot before it. So more are kept
than a restart needs, but the gap between two that stay is a quarter of their age: twice as much
history costs three snapshots more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

#: The gap between two snapshots is at most a SHARE-th of their age, where it can be.
SHARE: Final = 4


def superfluous(numbers: Sequence[int], needed: Collection[int] = ()) -> list[int]:
    """The snapshots that may be deleted, by the number of events in each.

    The first, the last two and those that are `needed` stay.

    >>> superfluous(range(0, 220, 20))
    [20, 60]
    >>> superfluous(range(0, 220, 20), needed=[60])
    [40]
    """
    ordered = sorted(set(numbers))
    dropped: list[int] = []
    if len(ordered) <= 3:
        return dropped
    newest, newer = ordered[-1], ordered[-2]
    for older, n in zip(reversed(ordered[:-3]), reversed(ordered[1:-2]), strict=True):
        if n not in needed and SHARE * (newer - older) <= newest - older:
            dropped.append(n)
        else:
            newer = n
    return dropped[::-1]
