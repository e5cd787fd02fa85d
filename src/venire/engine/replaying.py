"""Doing again what a log says happened."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from venire.engine.obeying import give, settle_as
from venire.errors import ReplayError
from venire.model import (
    Arrived,
    Assigned,
    Changed,
    Closed,
    Event,
    Exit,
    Joined,
    Left,
    Observed,
    Released,
    Withdrawn,
)

if TYPE_CHECKING:
    from venire.engine.scheduler import Scheduler

__all__ = ["follow"]


def follow(s: Scheduler, log: Iterable[Event], obey: bool) -> None:
    """Do again what the events say; with `obey`, take decisions from them."""
    for event in log:
        number = s._events + 1
        if obey:
            _pass_to(s, event.slot)
            _obey(s, event)
        else:
            s.advance(event.slot)
            if s._events + 1 == number:
                _redo(s, event)
        if s._events != number or not _same(s.log[-1], event):
            gave = s.log[-1] if s._events >= number else "nothing"
            raise ReplayError(f"the log says {event}, but replaying it gave {gave}")


def _redo(s: Scheduler, event: Event) -> None:
    match event:
        case Arrived():
            s.arrive(event.items)
        case Assigned():
            s.assign(event.asked)
        case Observed():
            s.observe(event.label)
        case Released():
            s.release(event.item, event.labeler, event.barred)
        case Joined():
            s.join(event.labeler)
        case Left():
            s.leave(event.labeler)
        case Closed():
            s.close()
        case Withdrawn():
            s.withdraw(event.item)
        case Changed():
            s.change(event.policy, event.learning, event.bounds, event.c)


def _pass_to(s: Scheduler, slot: int) -> None:
    """Let the slots before this one pass; nobody leaves in them."""
    while s.slot < slot:
        if not s._skips_to(slot):
            _settle_as(s, ())
            s._next_slot()


def _obey(s: Scheduler, event: Event) -> None:
    """Do what the event says was decided."""
    if isinstance(event, Assigned):
        for a in event.assignments:
            row, m = s._roll.outstanding(a.item), s._roll.known(a.labeler)
            if s._clerk.find(row, m) >= 0:
                raise ReplayError(f"labeler {a.labeler!r} has item {a.item!r} already")
            give(s._clerk, row, m, s.slot, a.gain)
        s._write(event)
    elif isinstance(event, Closed):
        _settle_as(s, event.exits)
        s._write(event)
        s._next_slot()
    else:
        _redo(s, event)


def _settle_as(s: Scheduler, exits: Sequence[Exit]) -> None:
    """End the slot in which these left."""
    roll = s._roll
    rows = [roll.outstanding(exit.item) for exit in exits]
    codes = [roll.code.get(exit.verdict.label, -1) for exit in exits]
    settle_as(s._clerk, s.slot, rows, exits, codes)
    for row in rows:
        roll.strike(row)


def _same(a: Event, b: Event) -> bool:
    """Equal, where a gain that is not known equals another that is not."""
    if isinstance(a, Assigned) and isinstance(b, Assigned):
        pairs = zip(a.assignments, b.assignments, strict=False)
        return len(a.assignments) == len(b.assignments) and all(
            x == replace(y, gain=x.gain) and (x.gain == y.gain or math.isnan(x.gain))
            for x, y in pairs
        )
    return a == b
