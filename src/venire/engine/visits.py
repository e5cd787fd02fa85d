"""Whether anybody is still expected: labelers who come once each do not tell when the last one has.

A labeler who leaves says so (`Scheduler.leave`), and one who came again and again may do so after
a night or a holiday. But in a crowd of people who give one label each, everybody is on the panel
for ever, and an item would wait for people who never come. So if at least 20 labelers came, and
nearly nobody (one in 20) ever gave a label in a later slot than its last, and if nobody has come
for 100 slots and ten times as long as ever before, then nobody is expected, and items that have
waited as long leave with what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.events import Assigned, Event, Joined, Observed
from venire.model import LabelerId

__all__ = ["Visits"]

#: How many labelers must have come, and of how many one may have come again.
CAME, ONE_IN = 20, 20

#: The least slots of silence, and how often the longest one so far.
SILENCE: Final = 100
TIMES: Final = 10


class Visits:
    """When labelers came, as far as the log tells.

    >>> visits = Visits()
    >>> from venire.model import Label
    >>> for n in range(30):
    ...     visits.note([Observed(n, Label("post", f"worker-{n}", 0), False)], {f"worker-{n}": n})
    >>> visits.patience(60), visits.patience(130)
    (None, 100)
    """

    def __init__(self) -> None:
        self.labelled = np.empty(0, np.int64)  # the slot of the last label of each labeler, or -1
        self.came = self.again = self.last = self.longest = 0

    def note(self, events: Iterable[Event], number: Mapping[LabelerId, int]) -> None:
        """Note what was written to the log."""
        for event in events:
            if not isinstance(event, Observed | Assigned | Joined):
                continue
            self.longest = max(self.longest, event.slot - self.last)
            self.last = event.slot
            if isinstance(event, Observed):
                self._label(number[event.label.labeler], event.slot)
            elif isinstance(event, Assigned) and event.asked is None:
                self.again += len(event.assignments)  # they are called, and need not come

    def _label(self, m: int, slot: int) -> None:
        if m >= len(self.labelled):
            more = np.full(max(m + 1, 2 * len(self.labelled)) - len(self.labelled), -1)
            self.labelled = np.concatenate([self.labelled, more])
        before = self.labelled[m]
        self.came += int(before < 0)
        self.again += int(0 <= before < slot)
        self.labelled[m] = slot

    def patience(self, slot: int) -> int | None:
        """How long an item waits, if nobody is expected any more; None: somebody is."""
        most = max(SILENCE, TIMES * self.longest)
        over = self.came >= CAME and self.again * ONE_IN <= self.came
        return most if over and slot - self.last >= most else None

    # state

    def state(self) -> list[int]:
        """The counts, beside `labelled`."""
        return [self.came, self.again, self.last, self.longest]

    def restore(self, counts: Iterable[int], labelled: NDArray[Any]) -> None:
        """Continue from there."""
        self.came, self.again, self.last, self.longest = counts
        self.labelled = labelled.astype(np.int64)
