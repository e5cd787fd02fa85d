"""A queue that keeps the bounds: number of labels, confidence, deadline, budget.

Bounds hold whatever the policy is. A row that must get no more labels is *retired*: it is put
into a group to which nobody belongs, so that every policy leaves it alone, and is due in this
slot. If one of its labels in flight does not come, it goes back to where it was.

A row that must get more labels than the policy finds worth it stays
(`scheduling/kernel/build.py`), and goes to a labeler who asks and gets nothing from the policy.

**The budget of a stream: what was spent, what is left, and what spending costs beside the price.**

A budget that is spent as it comes is gone at noon. Here it has a price of its own, one multiplier
nu: a label of price c costs c + nu c, with a budget in labels c + nu. So the scheduler, which buys
a label where it gains more than it costs, buys fewer and the best of them. The multiplier follows
the spending. At the end of each slot, with `left` of the budget for the slots that are left,

    pace   = mean of what the last slots spent / (left / slots left)
    theta <- theta + STEP (pace - 1), at least 0; a step is at most STEP up and down
    nu     = unit (exp(theta) - 1)

which is mirror descent on the dual of "earn the most within the budget". `unit` is the mean gain
that labels brought so far for each unit of the budget, before nu, so that the rule does not depend
on the units of weights and prices. What was not spent in a day is lost with it: a new day has the
whole budget, and goes on with the multiplier of the last.

Beside it the budget is a hard limit: nothing is handed out that could exceed it if all labels in
flight come. Labels that nobody asked for, and those that come after they were given up, count too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.model import Bounds, Budget
from venire.paper import utility
from venire.scheduling.kernel.build import next_short, note_rows, note_stand, survey
from venire.scheduling.kernel.desk import (
    BARRED,
    BUDGET,
    CONFIDENT,
    DEADLINE,
    EXHAUSTED,
    FLOOR,
    KEEPS,
    LEAST,
    LEAVE_ON,
    MAX_LABELS,
    MOST,
    SURE,
    TOUCHES,
    UNDECIDED,
    Desk,
)
from venire.scheduling.kernel.rows import LABELER, ROW, VOUCHED, revalue, set_due_row
from venire.tools.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from venire.engine.queue import Queue


STEP: Final = 0.1
MEMORY: Final = 8.0  # slots over which spending is averaged
MOST_THETA: Final = 20.0  # of theta

#: The price of labels that the budget cannot pay any more: above every weight.
PRICED_OUT: Final = 1e18


class Account:
    """One limit of a budget, in money or labels: spent since the period began, and multiplier."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.spent = 0.0  # labels that came
        self.before = 0.0  # spent and in flight when the last slot ended
        self.mean = 0.0  # what a slot spends
        self.theta = 0.0
        self.gained = self.bought = 0.0  # by labels so far, and for how much

    @property
    def multiplier(self) -> float:
        """What a unit costs beside itself."""
        unit = self.gained / self.bought if self.bought > 0.0 else 0.0
        return unit * math.expm1(self.theta)

    def pace(self, committed: float, slots_left: int) -> None:
        """End a slot: `committed` is spent or in flight."""
        self.mean += (committed - self.before - self.mean) / MEMORY
        self.before = committed
        due = max(0.0, self.limit - committed) / max(1, slots_left)
        pace = self.mean / due if due > 0.0 else (2.0 if self.mean > 0.0 else 1.0)
        step = STEP * max(-1.0, min(1.0, pace - 1.0))
        self.theta = min(MOST_THETA, max(0.0, self.theta + step))

    def renew(self, in_flight: float) -> None:
        """A new period begins; labels in flight are paid from it."""
        self.spent, self.before = 0.0, in_flight


class Purse:
    """What a scheduler may spend.

    >>> purse = Purse(Budget(labels=10, slots=5), slot=0)
    >>> purse.pay(0.0)
    >>> purse.left(in_flight=np.array([2]), prices=np.array([0.0]))
    (None, 7.0)
    """

    def __init__(self, budget: Budget | None = None, slot: int = 0) -> None:
        self.budget, self.since = budget, slot
        self.money = self.labels = None
        if budget is not None and budget.money is not None:
            self.money = Account(budget.money)
        if budget is not None and budget.labels is not None:
            self.labels = Account(float(budget.labels))
        if budget is not None and budget.slots is None:
            raise InputError(
                "got a budget without slots, expected how many slots it is for: "
                f"Budget(..., slots=1440){' for a day of minutes' if budget.per_day else ''}"
            )

    # spending

    def pay(self, price: float) -> None:
        if self.money is not None:
            self.money.spent += price
        if self.labels is not None:
            self.labels.spent += 1.0

    def handed_out(self, gain: float, price: float, charged: float) -> None:
        if math.isfinite(gain):
            for account, cost in ((self.money, price), (self.labels, 1.0)):
                if account is not None:
                    account.gained += max(0.0, gain + charged - price)
                    account.bought += cost

    def affords(self, price: float, in_flight: NDArray[Any], prices: Floats) -> bool:
        """Whether one more label of this price can be paid."""
        money, labels = self.left(in_flight, prices)
        return (money is None or price <= money + self._slack) and (labels is None or labels >= 1.0)

    def left(self, in_flight: NDArray[Any], prices: Floats) -> tuple[float | None, float | None]:
        """Money and labels left if all labels in flight come."""
        money = labels = None
        if self.money is not None:
            money = self.money.limit - self.money.spent - float(in_flight @ prices)
        if self.labels is not None:
            labels = self.labels.limit - self.labels.spent - float(in_flight.sum())
        return money, labels

    @property
    def _slack(self) -> float:
        """Ten labels of 0.1 cost 1, whatever their sum is rounded to."""
        return 0.0 if self.money is None else 1e-9 * self.money.limit

    # prices

    @property
    def multipliers(self) -> tuple[float, float]:
        money, labels = self.money, self.labels
        return money.multiplier if money else 0.0, labels.multiplier if labels else 0.0

    def charge(self, prices: Floats, in_flight: NDArray[Any]) -> Floats:
        """What a label of each labeler costs, the multiplier included."""
        if self.budget is None:
            return prices
        total = prices.copy()
        if self.money is not None:
            total += self.money.multiplier * prices
        if self.labels is not None:
            total += self.labels.multiplier
        money, labels = self.left(in_flight, prices)
        if money is not None:
            total[prices > money + self._slack] = PRICED_OUT
        if labels is not None and labels < 1.0:
            total[:] = PRICED_OUT
        return total

    # time

    def close(self, slot: int, in_flight: NDArray[Any], prices: Floats) -> None:
        """End the slot: follow the spending; a new day has a new budget."""
        if self.budget is None or self.budget.slots is None:
            return
        flying = float(in_flight @ prices), float(in_flight.sum())
        slots_left = self.since + self.budget.slots - slot - 1
        days = (slot + 1 - self.since) // self.budget.slots if self.budget.per_day else 0
        self.since += days * self.budget.slots
        for account, held in zip((self.money, self.labels), flying, strict=True):
            if account is not None:
                account.pace(account.spent + held, slots_left)
                if days > 0:
                    account.renew(held)

    def take_over(self, old: Purse) -> None:
        """Go on with what another spent: a changed limit is for the same period."""
        if self.budget is None or old.budget is None:
            return
        if (old.budget.slots, old.budget.per_day) == (self.budget.slots, self.budget.per_day):
            self.since = old.since
        for new, was in ((self.money, old.money), (self.labels, old.labels)):
            if new is not None and was is not None:
                vars(new).update(vars(was) | {"limit": new.limit})
                new.spent = was.spent if self.since == old.since else 0.0

    # state

    def state(self) -> dict[str, Any]:
        """Everything but the budget in plain values."""
        accounts = {"money": self.money, "labels": self.labels}
        kept = {k: dict(vars(a)) for k, a in accounts.items() if a is not None}
        return {"since": self.since, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        self.since = state["since"]
        for name in ("money", "labels"):
            if name in state:
                vars(getattr(self, name)).update(state[name])


class BoundedQueue:
    """A queue, and the bounds that hold for every row of it.

    Whatever the bounds have a say in goes through here: rows and labelers that come, work that is
    handed out, labels, and the end of a slot. The rest is asked of `queue` directly.
    """

    def __init__(self, queue: Queue, bounds: Bounds) -> None:
        self.queue = queue
        self.retired: dict[int, tuple[int, int]] = {}  # why, and the group it was in
        self.cursors = np.zeros(len(queue.capacity), np.int64)  # see `next_short`
        self._touched: list[int] = []  # rows that changed since `note`
        self.nobody = queue.add_group([])
        self.own_floors = False  # whether a row ever had a confidence of its own to reach
        self.bound(bounds)

    @property
    def desk(self) -> Desk:
        return self.queue.desk

    def bound(self, bounds: Bounds) -> None:
        """Keep these bounds from the next `refresh` on."""
        self.bounds = bounds
        self._write_bounds()
        self.queue.stale = True

    def resume(self, desk: Desk, retired: dict[int, tuple[int, int]], nobody: int) -> None:
        """Continue with arrays that were saved, and what was saved beside them."""
        self.queue.desk, self.retired, self.nobody = desk, retired, nobody
        self.own_floors = bool((desk.rows["floor"] > 0).any())
        self._write_bounds()
        survey(desk, self.cursors)

    def _write_bounds(self) -> None:
        bounds = self.bounds
        self.desk.meta[LEAST] = bounds.min_labels
        self.desk.meta[MOST] = bounds.max_labels or 0
        self.desk.meta[KEEPS] = bounds.floor
        self.desk.bounds[FLOOR] = bounds.min_confidence or 0.0

    @property
    def _has_floors(self) -> bool:
        """Whether there is a confidence below which a row does not leave."""
        bounds = self.bounds
        return self.own_floors or (bounds.floor and bounds.min_confidence is not None)

    def _floor(self, row: int) -> float:
        """The confidence below which the row stays while somebody may label it; 0: none."""
        if not self.bounds.floor:
            return 0.0
        return float(self.desk.rows["floor"][row]) or self.bounds.min_confidence or 0.0

    @property
    def _urges(self) -> bool:
        """Whether a row may have to get labels that no policy wants."""
        return self.bounds.min_labels > 0 or self._has_floors

    def add_labeler(self) -> int:
        self.cursors = np.append(self.cursors, 0)
        return self.queue.add_labeler()

    def add_row(
        self,
        weight: float,
        group: int,
        excluded: Iterable[int],
        slot: int,
        floor: float | None = None,
    ) -> int:
        """An item arrives; `floor` is the confidence that it must reach, None: that of all."""
        row = self.queue.add_row(weight, group, excluded, slot)
        if floor is not None:
            self.desk.rows["floor"][row], self.own_floors = floor, True
        self._touched.append(row)
        return row

    def note(self) -> None:
        """Write down where the rows that changed stand with the bounds."""
        if self._touched and self._urges:
            note_rows(self.desk, np.array(self._touched, np.int64), self.cursors)
        self._touched.clear()

    # a slot

    def refresh(self, slot: int) -> None:
        stale = self.queue.stale
        self.queue.refresh(slot)
        if stale:
            for row, (reason, _) in self.retired.items():
                set_due_row(self.desk, row, slot, reason)
            self._reconsider(slot)

    def _reconsider(self, slot: int) -> None:
        """Decide for every row again whether it is retired, by what is believed now."""
        self._touched.clear()
        survey(self.desk, self.cursors)
        if self._has_floors:
            rows, waiting = self.desk.rows, self.queue.outstanding()
            concerned = rows["stand"][waiting] & SURE > 0
            if self.bounds.max_labels is not None:
                concerned |= rows["labels"][waiting] >= self.bounds.max_labels
            for row in sorted({*waiting[concerned].tolist(), *self.retired}):
                self._consider(row, slot)

    def serve(self, slot: int, asked: Sequence[int] | None = None, ahead: int = 0) -> range:
        """Hand out work within the bounds, one label after the other; the touches made."""
        if self.bounds.max_labels is None and not self._urges:
            return self.queue.serve(slot, asked, ahead)
        first = int(self.desk.meta[TOUCHES])
        if asked is None and self.bounds.max_labels is None:
            self._handed(self.queue.serve(slot), slot)
            for m in self._turns():
                self._give_short(m, slot)
        else:
            for m in self._turns() if asked is None else asked:
                if asked is None:
                    made = self._serve_one(m, slot)
                else:
                    made = self.queue.serve(slot, [m], ahead)
                self._handed(made, slot)
                if not made:
                    self._give_short(m, slot, ahead)
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
        room = room.clip(0, max(1, len(self.queue.outstanding())))
        return [m for m in self.desk.order.tolist() for _ in range(room[m])]

    def _serve_one(self, labeler: int, slot: int) -> range:
        room = np.zeros(len(self.desk.panel), np.int64)
        room[labeler] = 1
        return self.queue.serve_room(slot, room)

    def _give_short(self, labeler: int, slot: int, ahead: int = 0) -> None:
        """Give the labeler the earliest row that needs labels and that it may have."""
        panel = self.desk.panel
        capacity = int(panel["capacity"][labeler])
        if not self._urges or not capacity or capacity + ahead <= panel["inflight"][labeler]:
            return
        self.note()
        row = int(next_short(self.desk, labeler, self.cursors))
        if row >= 0:
            r = self.desk.rows[row]
            left = utility.residual(float(r["weight"]), float(r["evidence"]))
            waited = slot - int(r["last"])
            gain = utility.gain(left, float(panel["reach"][labeler]), waited)
            self.give(row, labeler, slot, gain - float(panel["price"][labeler]))

    def give(self, row: int, labeler: int, slot: int, gain: float) -> None:
        made = self.queue.give(row, labeler, slot, gain)
        self._keep_due(row, slot)
        self._handed(made, slot)

    def settle(self, slot: int, patience: int | None = None) -> NDArray[np.int32]:
        """End the slot; the rows that leave, lowest first, each decided.

        With `patience`, nobody is expected any more: rows that came as long ago leave.
        """
        self.note()
        if patience is not None:
            self._give_up(slot, patience)
        if self.bounds.spent:
            for row in self.queue.outstanding().tolist():
                if row not in self.retired or self.desk.rows["pending"][row]:
                    self._retire(row, BUDGET, slot)
        elif self.bounds.deadline is not None:
            waiting = self.queue.outstanding()
            over = self.desk.rows["arrival"][waiting] + self.bounds.deadline <= slot
            for row in waiting[over].tolist():
                self._retire(row, DEADLINE, slot)
        gone, rows = self.queue.settle(slot), self.desk.rows
        for row in gone.tolist():
            self.retired.pop(row, None)
            if rows["reason"][row] < CONFIDENT and rows["confidence"][row] < self._floor(row):
                rows["reason"][row] = UNDECIDED
        return gone

    def _give_up(self, slot: int, patience: int) -> None:
        """Retire the rows that came that long ago and wait for no label in flight."""
        waiting, rows = self.queue.outstanding(), self.desk.rows
        over = (rows["arrival"][waiting] + patience <= slot) & (rows["pending"][waiting] == 0)
        for row in waiting[over].tolist():
            if row not in self.retired:
                self._retire(row, EXHAUSTED, slot)
                note_stand(self.desk, row, self.cursors)  # not held: nobody is left

    def suffice(self, row: int, slot: int) -> None:
        """One label was enough: the row leaves in this slot, whatever else is said of it."""
        self._retire(row, LEAVE_ON, slot)

    def withdraw(self, row: int) -> None:
        self.queue.withdraw(row)
        self.retired.pop(row, None)

    # labels

    def look_up(self, labels: Ints) -> tuple[int, int]:
        """The place of the first label that is refused and what was said before; see `Queue`."""
        if self.retired:
            for line in labels:
                row, labeler = int(line[ROW]), int(line[LABELER])
                line[VOUCHED] = row in self.retired and self.in_group(row, labeler)
        return self.queue.look_up(labels)

    def hear(self, labels: Ints, slot: int) -> Bools:
        """Labels have come; which of them are new. Rows that are sure now are retired.

        With bounds on confidence or labels, every row is checked after each of its labels.
        """
        bounds = self.bounds
        floors = bounds.min_confidence is not None or self.own_floors
        if not floors and bounds.max_labels is None and not self.retired:
            self._touched += labels[:, ROW].tolist()
            return self.queue.hear(labels, slot)
        fresh = np.empty(len(labels), np.bool_)
        for i in range(len(labels)):
            row = int(labels[i, ROW])
            fresh[i : i + 1] = self.queue.hear(labels[i : i + 1], slot)
            self._keep_due(row, slot)
            self._consider(row, slot)
        return fresh

    def release(self, touch: int, slot: int, bar: bool) -> None:
        row = int(self.desk.touches["row"][touch])
        self.queue.release(touch, slot, bar)
        self._keep_due(row, slot)
        self._touched.append(row)
        if row in self.retired and self.retired[row][0] == MAX_LABELS and not self._full(row):
            self._recall(row, slot)

    def bar(self, row: int, labeler: int, slot: int) -> None:
        """The labeler, which does not hold the row, does not get it again."""
        self.queue.link(row, labeler, slot, BARRED)
        self.queue.revalue(row, slot)
        self._keep_due(row, slot)
        self._touched.append(row)

    def in_group(self, row: int, labeler: int) -> bool:
        """Whether the row's group, or that from which it was retired, holds the labeler."""
        if row not in self.retired:
            return self.queue.in_group(row, labeler)
        self.desk.rows["group"][row] = self.retired[row][1]
        held = self.queue.in_group(row, labeler)
        self.desk.rows["group"][row] = self.nobody
        return held

    def _full(self, row: int) -> bool:
        most = self.bounds.max_labels
        return most is not None and int(self.desk.rows["labels"][row]) >= most

    def _consider(self, row: int, slot: int) -> None:
        if note_stand(self.desk, row, self.cursors) & SURE:
            self._retire(row, CONFIDENT, slot)
        elif self._full(row):
            self._retire(row, MAX_LABELS, slot)
        elif row in self.retired and self.retired[row][0] != LEAVE_ON:
            self._recall(row, slot)

    def _retire(self, row: int, reason: int, slot: int) -> None:
        if row not in self.retired:
            self.retired[row] = (reason, int(self.desk.rows["group"][row]))
            self._move(row, self.nobody, slot)
        elif self.retired[row][0] == LEAVE_ON:
            reason = LEAVE_ON
        self.retired[row] = (reason, self.retired[row][1])
        set_due_row(self.desk, row, slot, reason)

    def _recall(self, row: int, slot: int) -> None:
        self._move(row, self.retired.pop(row)[1], slot)
        self._touched.append(row)

    def _move(self, row: int, group: int, slot: int) -> None:
        self.queue.kernels.leave(self.desk, row)
        self.desk.rows["group"][row] = group
        revalue(self.desk, row)
        self.queue.kernels.enter(self.desk, row, slot)

    def _keep_due(self, row: int, slot: int) -> None:
        if row in self.retired:
            set_due_row(self.desk, row, slot, self.retired[row][0])

    # room

    def tidy(self) -> tuple[NDArray[np.int64], dict[int, int]] | None:
        tidied = self.queue.tidy([self.nobody, *(group for _, group in self.retired.values())])
        if tidied is not None:
            stay, groups = tidied
            self._touched.clear()  # `refresh` will survey every row
            place = {int(old): new for new, old in enumerate(stay)}
            self.retired = {place[r]: (why, groups[g]) for r, (why, g) in self.retired.items()}
            self.nobody = groups[self.nobody]
        return tidied
