"""Events as rows of a log, and back, to the bit; and which version of the engine wrote them.

An `EventRow` holds one event, or a run of labels that came in one slot: thousands of labels of a
bulk request are one row, with a list for each field. What a body looks like is said by each kind of
event itself: see `venire.events`.

A log is replayed, and every decision must come out the same. Where it does not, and another
version of the engine wrote that part, the decisions are taken from the log from that event to the
end of the part. Where this version wrote it, the log is damaged. In a store from before versions
were recorded, nobody knows which one wrote the first part: a server assumes another, and `verify`,
which is to trust nothing, assumes its own, unless the snapshot with which the part begins has the
format of an earlier version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

from venire.errors import InputError, ReplayError, StoreError
from venire.events import KINDS, Closed, ClosedPart, Event
from venire.server.store.contents import compact
from venire.server.store.records import EngineRow, EventRow

if TYPE_CHECKING:
    from venire.engine import Scheduler


def encode(stream: str, first: int, at: float, events: Sequence[Event]) -> list[EventRow]:
    """The rows of a stream's events, of which the first is number `first` of the log.

    >>> from venire import Item
    >>> from venire.events import Arrived
    >>> [row] = encode("posts", 0, 1e9, [Arrived(3, (Item("post-1", 8),))])
    >>> row.n, row.slot, row.kind, row.body
    (0, 3, 'arrived', '[["post-1",8.0,null,[]]]')
    """
    rows: list[EventRow] = []
    n = first
    for (kind, slot), run in groupby(events, key=lambda event: (type(event), event.slot)):
        if not issubclass(kind, Event):
            raise InputError(f"got an event of type {kind.__name__}, expected one of venire.events")
        for size, body in kind.body_of(list(run)):
            rows.append(
                EventRow(
                    stream=stream,
                    n=n,
                    size=size,
                    slot=slot,
                    at=at,
                    kind=kind.kind,
                    body=compact(body),
                )
            )
            n += size
    return rows


def decode(rows: Iterable[EventRow]) -> list[Event]:
    """The events of rows, in order.

    >>> from venire import Label
    >>> from venire.events import Observed
    >>> events = [Observed(3, Label("post-1", m, "spam"), late=False) for m in ("ann", "bob")]
    >>> rows = encode("posts", 7, 1e9, events)
    >>> len(rows), rows[0].size, decode(rows) == events
    (1, 2, True)
    """
    events: list[Event] = []
    for row in rows:
        kind = KINDS.get(row.kind)
        if kind is None:
            raise StoreError(
                f"event {row.n} of stream {row.stream!r} is of the unknown kind {row.kind!r}: "
                "a newer version wrote it, upgrade venire"
            )
        events += kind.read_all(row.slot, json.loads(row.body))
    return events


def kind_of(row: EventRow) -> str:
    """The kind of the events of a row, for readers: a part of a closed slot is `closed` too.

    Its own name in the store is for older versions of venire, which would take it for the whole.

    >>> from venire.events import ClosedPart
    >>> [row] = encode("posts", 0, 1e9, [ClosedPart(3, ())])
    >>> row.kind, kind_of(row)
    ('closing', 'closed')
    """
    kind = KINDS.get(row.kind)
    return row.kind if kind is None else kind.shown_as or row.kind


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


class Writers:
    """The parts of a stream's log, by the version that wrote them.

    With `strict`, parts of unknown origin count as this version's.

    >>> engines = [("posts", 0, "other", 0.0), ("posts", 9, "this", 0.0)]
    >>> writers = Writers([EngineRow.load(engine) for engine in engines])
    >>> writers.blame(4, ValueError("it came out otherwise"))
    >>> [writers.obeys(n) for n in (3, 4, 8, 9)]
    [False, True, True, False]
    """

    def __init__(self, engines: list[EngineRow], strict: bool = False) -> None:
        from venire.engine import engine_version

        self._engines, self._own = engines, set[str | None]((engine_version(),))
        if strict:
            self._own.add(None)
        self._taken: list[tuple[int, float]] = []

    def version(self, n: int) -> str | None:
        """Which version wrote an event; None if that is not known."""
        return next((row.version for row in reversed(self._engines) if row.n <= n), None)

    def obeys(self, n: int) -> bool:
        return any(first <= n < end for first, end in self._taken)

    def edges(self) -> set[float]:
        """Where it begins or ends that decisions are taken from the log."""
        return {edge for part in self._taken for edge in part}

    def begins(self, n: int) -> bool:
        return any(row.n == n for row in self._engines)

    def blame(self, n: int, error: Exception) -> None:
        """An event does not replay: take it from the log, or raise `ReplayError`."""
        if self.version(n) in self._own or self.obeys(n):
            raise ReplayError(f"event {n} does not replay: {error}") from error
        end = min((row.n for row in self._engines if row.n > n), default=math.inf)
        self._taken.append((n, end))
