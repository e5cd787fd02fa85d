"""The budget of a stream: what was spent, what is left, and what spending costs beside the price.

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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.budget import Budget
from venire.errors import InputError

__all__ = ["PRICED_OUT", "Purse"]

Floats = NDArray[np.float64]

STEP: Final = 0.1
MEMORY: Final = 8.0  # slots over which spending is averaged
MOST: Final = 20.0  # of theta

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
        self.theta = min(MOST, max(0.0, self.theta + step))

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
        """A label of this price came."""
        if self.money is not None:
            self.money.spent += price
        if self.labels is not None:
            self.labels.spent += 1.0

    def handed_out(self, gain: float, price: float, charged: float) -> None:
        """A label was handed out for this gain, for which `charged` had been subtracted."""
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
        """Of money, and of labels."""
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
        """Continue from what `state` gave."""
        self.since = state["since"]
        for name in ("money", "labels"):
            if name in state:
                vars(getattr(self, name)).update(state[name])
