"""How much may be spent on labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from venire.errors import InputError

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent: `money`, in the currency of the labelers' prices, or `labels`, or both.

    It is for all items of a batch, or with `per_day` for each day of a stream. `slots` is how many
    slots of a stream it is for, those of a day with `per_day`: a scheduler knows no clock.

    >>> Budget(money=50)
    Budget(money=50.0, labels=None, per_day=False)
    >>> Budget(labels=30_000).left(money=12.5, labels=29_000)
    Budget(money=None, labels=1000, per_day=False)
    """

    money: float | None = None
    labels: int | None = None
    per_day: bool = False
    slots: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.money is None and self.labels is None:
            raise InputError("got a budget without a limit, expected money=, labels= or both")
        if self.money is not None:
            if not 0 <= self.money < math.inf:
                raise InputError(f"got a budget of money={self.money!r}, expected 0 or more")
            object.__setattr__(self, "money", float(self.money))
        if self.labels is not None:
            if not (0 <= self.labels < math.inf and self.labels == int(self.labels)):
                raise InputError(
                    f"got a budget of labels={self.labels!r}, expected a whole number, 0 or more"
                )
            object.__setattr__(self, "labels", int(self.labels))
        if self.slots is not None and not (self.slots >= 1 and self.slots == int(self.slots)):
            raise InputError(f"got slots={self.slots!r}, expected a whole number, 1 or more")

    def left(self, money: float, labels: int) -> Budget:
        """The budget after this much of it has been spent, never less than nothing."""
        return Budget(
            None if self.money is None else max(0.0, self.money - money),
            None if self.labels is None else max(0, self.labels - labels),
            self.per_day,
            self.slots,
        )
