"""Doing again what an event says, and whether what came out is the same."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from venire.model import (
    Arrived,
    Assigned,
    Changed,
    Closed,
    Event,
    Joined,
    Left,
    Observed,
    Released,
    Withdrawn,
)

if TYPE_CHECKING:
    from venire.engine.scheduler import Scheduler

__all__ = ["redo", "same"]


def redo(scheduler: Scheduler, event: Event) -> None:
    """Do again what an event says was done."""
    match event:
        case Arrived():
            scheduler.arrive(event.items)
        case Assigned():
            scheduler.assign(event.asked)
        case Observed():
            scheduler.observe(event.label)
        case Released():
            scheduler.release(event.item, event.labeler, event.barred)
        case Joined():
            scheduler.join(event.labeler)
        case Left():
            scheduler.leave(event.labeler)
        case Closed():
            scheduler.close()
        case Withdrawn():
            scheduler.withdraw(event.item)
        case Changed():
            scheduler.change(event.policy, event.learning, event.bounds, event.c, event.revisions)


def same(a: Event, b: Event) -> bool:
    """Equal, where a gain that is not known equals another that is not.

    >>> same(Left(3, "ann"), Left(3, "ann")), same(Left(3, "ann"), Left(4, "ann"))
    (True, False)
    """
    if isinstance(a, Assigned) and isinstance(b, Assigned):
        pairs = zip(a.assignments, b.assignments, strict=False)
        return len(a.assignments) == len(b.assignments) and all(
            x == replace(y, gain=x.gain) and (x.gain == y.gain or math.isnan(x.gain))
            for x, y in pairs
        )
    return a == b
