"""A clerk who keeps bounds: the fewest and the most labels, a confidence, a deadline, a budget.

Bounds hold whatever the policy is. A row that must get no more labels is *retired*: it is put
into a group to which nobody belongs, so that every policy leaves it alone, and is due in this
slot. If one of its labels in flight does not come, it goes back to where it was.

A row that must get more labels than the policy finds worth it stays (`scheduling/item_limits.py`),
and goes to whoever asks and gets nothing from the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from venire.engine.queue import Clerk
from venire.model import Bounds
from venire.paper import utility
from venire.scheduling.algorithm1.exit_wheel import set_due_row
from venire.scheduling.algorithm1.incoming_labels import LABELER, ROW, VOUCHED, Bools, Ints
from venire.scheduling.algorithm1.verdicts import revalue
from venire.scheduling.base import Policy
from venire.scheduling.item_limits import next_short, note_rows, note_stand, survey
from venire.scheduling.state.desk import (
    BUDGET,
    CONFIDENT,
    DEADLINE,
    FLOOR,
    KEEPS,
    LEAST,
    MAX_LABELS,
    MOST,
    PENDING,
    SURE,
    TOUCHES,
    UNDECIDED,
    Desk,
)

__all__ = ["BoundedClerk"]


class BoundedClerk(Clerk):
    """A clerk, and what holds for every row."""

    def __init__(
        self, capacity: Sequence[int], classes: int, policy: Policy, c: float, bounds: Bounds
    ) -> None:
        super().__init__(capacity, classes, policy, c)
        self.retired: dict[int, tuple[int, int]] = {}  # why, and the group it was in
        self._cursors = np.zeros(len(capacity), np.int64)  # see `next_short`
        self._touched: list[int] = []  # rows to which something happened since it was noted
        self.nobody = self.add_group([])
        self.bound(bounds)

    def bound(self, bounds: Bounds) -> None:
        """Keep these bounds from the next `refresh` on."""
        self.bounds = bounds
        self._write_bounds()
        self.stale = True

    def resume(self, desk: Desk, retired: dict[int, tuple[int, int]], nobody: int) -> None:
        """Go on with a desk that was saved, and what was kept beside it."""
        self.desk, self.retired, self.nobody = desk, retired, nobody
        self._write_bounds()
        survey(self.desk, self._cursors)

    def _write_bounds(self) -> None:
        bounds = self.bounds
        self.desk.meta[LEAST] = bounds.min_labels
        self.desk.meta[MOST] = bounds.max_labels or 0
        self.desk.meta[KEEPS] = bounds.floor
        self.desk.bounds[FLOOR] = bounds.min_confidence or 0.0

    @property
    def _floor(self) -> float:
        """The confidence below which nothing leaves while somebody may label it; 0: none."""
        return (self.bounds.min_confidence or 0.0) if self.bounds.floor else 0.0

    @property
    def _urges(self) -> bool:
        """Whether a row may have to get labels that no policy wants."""
        return self.bounds.min_labels > 0 or self._floor > 0

    def add_labeler(self) -> int:
        """Make room for one more labeler; it is away until it gets a capacity."""
        self._cursors = np.append(self._cursors, 0)
        return super().add_labeler()

    def add_row(self, weight: float, group: int, excluded: Iterable[int], slot: int) -> int:
        """An item arrives."""
        row = super().add_row(weight, group, excluded, slot)
        self._touched.append(row)
        return row

    def _note(self) -> None:
        """Write where the rows stand to which something happened."""
        if self._touched and self._urges:
            note_rows(self.desk, np.array(self._touched, np.int64), self._cursors)
        self._touched.clear()

    # a slot

    def refresh(self, slot: int) -> None:
        """File everything anew if policy, panel or belief changed since."""
        stale = self.stale
        super().refresh(slot)
        if stale:
            for row, (reason, _) in self.retired.items():
                set_due_row(self.desk, row, slot, reason)
            self._look_again(slot)

    def _look_again(self, slot: int) -> None:
        """Decide for every row anew what holds for it, by what is believed now."""
        self._touched.clear()
        survey(self.desk, self._cursors)
        if self._floor:
            rows, waiting = self.desk.rows, self.outstanding()
            concerned = rows["stand"][waiting] & SURE > 0
            if self.bounds.max_labels is not None:
                concerned |= rows["labels"][waiting] >= self.bounds.max_labels
            for row in sorted({*waiting[concerned].tolist(), *self.retired}):
                self._consider(row, slot)

    def serve(self, slot: int, asked: Sequence[int] | None = None) -> range:
        """Hand out work within the bounds, one label after the other; the touches made."""
        if self.bounds.max_labels is None and not self._urges:
            return super().serve(slot, asked)
        first = int(self.desk.meta[TOUCHES])
        if asked is None and self.bounds.max_labels is None:
            self._handed(super().serve(slot), slot)
            for m in self._turns():
                self._handed(self._give_short(m, slot), slot)
        else:
            for m in self._turns() if asked is None else asked:
                made = super().serve(slot, [m]) if asked is not None else self._serve_one(m, slot)
                self._handed(made or self._give_short(m, slot), slot)
        return range(first, int(self.desk.meta[TOUCHES]))

    def _handed(self, made: range, slot: int) -> None:
        """Note what was handed out; a row that has the most labels gets no more."""
        for row in self.desk.touches["row"][made.start : made.stop].tolist():
            self._touched.append(row)
            if self._full(row):
                self._retire(row, MAX_LABELS, slot)

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
        """Give the labeler the earliest row that needs labels and that it may have."""
        panel = self.desk.panel
        if not self._urges or panel["capacity"][labeler] <= panel["inflight"][labeler]:
            return range(0)
        self._note()
        row = next_short(self.desk, labeler, self._cursors)
        return range(0) if row < 0 else self._give(int(row), labeler, slot)

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
        self._note()
        if self.bounds.spent:
            for row in self.outstanding().tolist():
                if row not in self.retired or self.desk.rows["pending"][row]:
                    self._retire(row, BUDGET, slot)
        elif self.bounds.deadline is not None:
            waiting = self.outstanding()
            over = self.desk.rows["arrival"][waiting] + self.bounds.deadline <= slot
            for row in waiting[over].tolist():
                self._retire(row, DEADLINE, slot)
        gone, rows = super().settle(slot), self.desk.rows
        for row in gone.tolist():
            self.retired.pop(row, None)
            if rows["reason"][row] < CONFIDENT and rows["confidence"][row] < self._floor:
                rows["reason"][row] = UNDECIDED
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
            self._touched += labels[:, ROW].tolist()
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
        self._touched.append(row)
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
        """Retire the row if its verdict is sure or it is full; recall it if it is so no more."""
        if note_stand(self.desk, row, self._cursors) & SURE:
            self._retire(row, CONFIDENT, slot)
        elif self._full(row):
            self._retire(row, MAX_LABELS, slot)
        elif row in self.retired:
            self._recall(row, slot)

    def _retire(self, row: int, reason: int, slot: int) -> None:
        if row not in self.retired:
            self.retired[row] = (reason, int(self.desk.rows["group"][row]))
            self._move(row, self.nobody, slot)
        self.retired[row] = (reason, self.retired[row][1])
        set_due_row(self.desk, row, slot, reason)

    def _recall(self, row: int, slot: int) -> None:
        self._move(row, self.retired.pop(row)[1], slot)
        self._touched.append(row)

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
            self._touched.clear()  # everything is looked at again
            place = {int(old): new for new, old in enumerate(stay)}
            self.retired = {place[r]: (why, groups[g]) for r, (why, g) in self.retired.items()}
            self.nobody = groups[self.nobody]
        return tidied

    def _kept_groups(self) -> list[int]:
        return [*super()._kept_groups(), self.nobody, *(g for _, g in self.retired.values())]
