"""A clerk who keeps bounds: the fewest and the most labels, a confidence, a deadline, a budget.

Bounds hold whatever the policy is. A row that must get no more labels is *retired*: it is put
into a group to which nobody belongs, so that every policy leaves it alone, and is due in this
slot. If one of its labels in flight does not come, it goes back to where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from venire import utility
from venire.model import Bounds
from venire.scheduling.base import Policy
from venire.scheduling.beliefs import revalue
from venire.scheduling.clerk import Clerk
from venire.scheduling.desk import (
    BUDGET,
    CONFIDENT,
    DEADLINE,
    LEAST,
    MAX_LABELS,
    PENDING,
    TOUCHES,
)
from venire.scheduling.hearing import LABELER, ROW, VOUCHED, Bools, Ints
from venire.scheduling.wheel import set_due_row

__all__ = ["BoundedClerk"]


class BoundedClerk(Clerk):
    """A clerk, and what holds for every row."""

    def __init__(
        self, capacity: Sequence[int], classes: int, policy: Policy, c: float, bounds: Bounds
    ) -> None:
        super().__init__(capacity, classes, policy, c)
        self.retired: dict[int, tuple[int, int]] = {}  # why, and the group it was in
        self.nobody = self.add_group([])
        self.bound(bounds)

    def bound(self, bounds: Bounds) -> None:
        """Keep these bounds from now on; the rows that they concern follow as things happen."""
        self.bounds = bounds
        self.desk.meta[LEAST] = bounds.min_labels

    # a slot

    def refresh(self, slot: int) -> None:
        """File everything anew if policy, panel or belief changed since."""
        stale = self.stale
        super().refresh(slot)
        if stale:
            for row, (reason, _) in self.retired.items():
                set_due_row(self.desk, row, slot, reason)

    def serve(self, slot: int, asked: Sequence[int] | None = None) -> range:
        """Hand out work within the bounds, one label after the other; the touches made."""
        if self.bounds.max_labels is None and not self.bounds.min_labels:
            return super().serve(slot, asked)
        first = int(self.desk.meta[TOUCHES])
        for m in self._turns() if asked is None else asked:
            made = super().serve(slot, [m]) if asked is not None else self._serve_one(m, slot)
            for k in made or self._give_short(m, slot):
                row = int(self.desk.touches["row"][k])
                if self._full(row):
                    self._retire(row, MAX_LABELS, slot)
        return range(first, int(self.desk.meta[TOUCHES]))

    def _turns(self) -> list[int]:
        """Every labeler, the best first, as often as it has room."""
        room = self.desk.panel["capacity"] - self.desk.panel["load"]
        room = room.clip(0, max(1, len(self.outstanding())))
        return [m for m in self.desk.order.tolist() for _ in range(room[m])]

    def _serve_one(self, labeler: int, slot: int) -> range:
        room = np.zeros(len(self.desk.panel), np.int64)
        room[labeler] = 1
        return self._serve(slot, room)

    def _give_short(self, labeler: int, slot: int) -> range:
        """Give the labeler the earliest row that is short of labels and that it may have."""
        panel, rows, least = self.desk.panel, self.desk.rows, self.bounds.min_labels
        nothing = range(0)
        if panel["capacity"][labeler] <= panel["inflight"][labeler]:
            return nothing
        waiting = self.outstanding()
        for row in waiting[rows["labels"][waiting] < least].tolist():
            if row in self.retired or self.find(row, labeler) >= 0:
                continue
            if self.in_group(row, labeler):
                return self._give(row, labeler, slot)
        return nothing

    def _give(self, row: int, labeler: int, slot: int) -> range:
        r, panel = self.desk.rows[row], self.desk.panel
        left = utility.residual(float(r["weight"]), float(r["evidence"]))
        gain = utility.gain(left, float(panel["reach"][labeler]), slot - int(r["last"]))
        k = int(self.desk.meta[TOUCHES])
        self._link(row, labeler, slot, PENDING)
        self.desk.touches["gain"][k] = gain
        panel["inflight"][labeler] += 1
        panel["load"][labeler] += 1
        self._revalue(row, slot)
        return range(k, k + 1)

    def settle(self, slot: int) -> NDArray[np.int32]:
        """End the slot; the rows that leave, lowest first, each decided."""
        if self.bounds.spent:
            for row in self.outstanding().tolist():
                if row not in self.retired or self.desk.rows["pending"][row]:
                    self._retire(row, BUDGET, slot)
        elif self.bounds.deadline is not None:
            waiting = self.outstanding()
            over = self.desk.rows["arrival"][waiting] + self.bounds.deadline <= slot
            for row in waiting[over].tolist():
                self._retire(row, DEADLINE, slot)
        gone = super().settle(slot)
        for row in gone.tolist():
            self.retired.pop(row, None)
        return gone

    def withdraw(self, row: int) -> None:
        """Take a row out, whatever its labels say."""
        super().withdraw(row)
        self.retired.pop(row, None)

    # labels

    def look_up(self, labels: Ints) -> tuple[int, int]:
        """The first label that cannot be and what was said before (BARRED: it may not); or -1."""
        if self.retired:
            for line in labels:
                row, labeler = int(line[ROW]), int(line[LABELER])
                line[VOUCHED] = row in self.retired and self.in_group(row, labeler)
        return super().look_up(labels)

    def hear(self, labels: Ints, slot: int) -> Bools:
        """Labels have come; which of them are new. Rows that are sure now are retired.

        Where there are bounds, they are looked at after each label.
        """
        bounds = self.bounds
        if bounds.min_confidence is None and bounds.max_labels is None and not self.retired:
            return super().hear(labels, slot)
        fresh = np.empty(len(labels), np.bool_)
        for i in range(len(labels)):
            row = int(labels[i, ROW])
            fresh[i : i + 1] = super().hear(labels[i : i + 1], slot)
            if row in self.retired:
                set_due_row(self.desk, row, slot, self.retired[row][0])
            self._consider(row, slot)
        return fresh

    def release(self, touch: int, slot: int, bar: bool) -> None:
        """A label in flight will not come; with `bar` the labeler does not get the row again."""
        row = int(self.desk.touches["row"][touch])
        super().release(touch, slot, bar)
        if row in self.retired and self.retired[row][0] == MAX_LABELS and not self._full(row):
            self._recall(row, slot)

    def in_group(self, row: int, labeler: int) -> bool:
        """Whether the row's group, or that from which it was retired, holds the labeler."""
        if row not in self.retired:
            return super().in_group(row, labeler)
        self.desk.rows["group"][row] = self.retired[row][1]
        held = super().in_group(row, labeler)
        self.desk.rows["group"][row] = self.nobody
        return held

    def _full(self, row: int) -> bool:
        most = self.bounds.max_labels
        return most is not None and int(self.desk.rows["labels"][row]) >= most

    def _consider(self, row: int, slot: int) -> None:
        """Retire the row if its verdict is sure enough; recall it if it is so no more."""
        r, wanted = self.desk.rows[row], self.bounds.min_confidence
        reason = self.retired.get(row, (0, 0))[0]
        if wanted is not None and r["labels"] - r["pending"] >= max(1, self.bounds.min_labels):
            _, confidence = self.decide(row)
            if confidence >= wanted:
                self._retire(row, CONFIDENT, slot)
                return
        if self._full(row):
            self._retire(row, MAX_LABELS, slot)
        elif reason == CONFIDENT:
            self._recall(row, slot)

    def _retire(self, row: int, reason: int, slot: int) -> None:
        if row not in self.retired:
            self.retired[row] = (reason, int(self.desk.rows["group"][row]))
            self._move(row, self.nobody, slot)
        self.retired[row] = (reason, self.retired[row][1])
        set_due_row(self.desk, row, slot, reason)

    def _recall(self, row: int, slot: int) -> None:
        self._move(row, self.retired.pop(row)[1], slot)

    def _move(self, row: int, group: int, slot: int) -> None:
        self.kernels.leave(self.desk, row)
        self.desk.rows["group"][row] = group
        revalue(self.desk, row)
        self.kernels.enter(self.desk, row, slot)

    def _revalue(self, row: int, slot: int) -> None:
        super()._revalue(row, slot)
        if row in self.retired:
            set_due_row(self.desk, row, slot, self.retired[row][0])

    # room

    def tidy(self) -> tuple[NDArray[np.int64], dict[int, int]] | None:
        """Throw away what has left, if that is at least half."""
        tidied = super().tidy()
        if tidied is not None:
            stay, groups = tidied
            place = {int(old): new for new, old in enumerate(stay)}
            self.retired = {place[r]: (why, groups[g]) for r, (why, g) in self.retired.items()}
            self.nobody = groups[self.nobody]
        return tidied

    def _kept_groups(self) -> list[int]:
        return [*super()._kept_groups(), self.nobody, *(g for _, g in self.retired.values())]
