"""A closed slot in parts, each of which is a short transaction.

Tens of thousands of items may leave in one slot. Written at once they hold up everything that
other streams write, so the engine's `Closed` event is stored as several: parts, and at last a
`Closed` with the rest. A log that ends between them is complete all the same: whoever replays it
closes the slot, which gives the same exits in the same order, and knows which of them are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from venire.engine import Scheduler
from venire.errors import ReplayError
from venire.events import Closed, ClosedPart, Event

#: Exits and revisions in one part: about ten milliseconds.
MAX_PART: Final = 500


def in_parts(event: Closed, most: int = MAX_PART) -> list[Closed]:
    """The event in parts with a bounded number of exits and revisions; the last is a `Closed`.

    >>> from venire.model import Exit, ExitReason, Verdict
    >>> exits = [Exit(n, 0, 7, 2, Verdict("ok", 0.9), ExitReason.NO_GAIN) for n in "abc"]
    >>> [(type(e).__name__, len(e.exits)) for e in in_parts(Closed(7, tuple(exits)), most=2)]
    [('ClosedPart', 2), ('Closed', 1)]
    """
    if len(event.exits) + len(event.revisions) <= most:
        return [event]
    slot, exits, revisions = event.slot, event.exits, event.revisions
    made = [Closed(slot, exits[k : k + most]) for k in range(0, len(exits), most)]
    made += [Closed(slot, (), revisions[k : k + most]) for k in range(0, len(revisions), most)]
    *parts, last = made
    return [*(ClosedPart(slot, part.exits, part.revisions) for part in parts), last]


def _joined(parts: Sequence[Closed]) -> Closed:
    """The whole event that these are the parts of."""
    exits = tuple(chain.from_iterable(part.exits for part in parts))
    revisions = tuple(chain.from_iterable(part.revisions for part in parts))
    return Closed(parts[0].slot, exits, revisions)


class SlotParts:
    """Puts the parts of a slot together again, for a log that is read in order.

    >>> parts = SlotParts()
    >>> [list(parts.whole([event])) for event in (ClosedPart(7, ()), Closed(7, ()))]
    [[], [Closed(slot=7, exits=(), revisions=())]]
    """

    def __init__(self) -> None:
        self._parts: list[Closed] = []

    def whole(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events without those that are parts, which come as one with the last of them."""
        for event in events:
            if isinstance(event, ClosedPart) or self._parts:
                self._add(event)
                if isinstance(event, ClosedPart):
                    continue
                event, self._parts = _joined(self._parts), []
            yield event

    def _add(self, event: Event) -> None:
        slot = self._parts[0].slot if self._parts else event.slot
        if not isinstance(event, Closed) or event.slot != slot:
            raise ReplayError(f"slot {slot} is closed in part only, but the log goes on: {event}")
        self._parts.append(event)

    def finish(self, engine: Scheduler, obey: bool) -> Closed | None:
        """Close the slot of which the log has only some parts, if any; the event that it lacks.

        With `obey`, only the items leave that the log names: another version of the engine let
        them go, and the others stay until this one does.
        """
        if not self._parts:
            return None
        there, self._parts = _joined(self._parts), []
        slot = there.slot
        if obey:
            engine.follow([there], obey=True).drain()
            return Closed(slot, ())
        engine.advance(slot)
        engine.close()
        whole, *others = engine.drain()
        exits, revisions = len(there.exits), len(there.revisions)
        if (
            others
            or not isinstance(whole, Closed)
            or (whole.exits[:exits], whole.revisions[:revisions]) != (there.exits, there.revisions)
        ):
            raise ReplayError(f"slot {slot} is closed in part, and replaying it gave other exits")
        return Closed(slot, whole.exits[exits:], whole.revisions[revisions:])
