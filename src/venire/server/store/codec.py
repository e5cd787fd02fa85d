"""Events as rows of a log, and back, to the bit.

An `EventRow` holds one event, or a run of labels that came in one slot: thousands of labels of a
bulk request are one row, with a list for each field. What a body looks like is said by each kind of
event itself: see `venire.events`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby

from venire.errors import InputError, StoreError
from venire.events import KINDS, Event
from venire.server.store.contents import compact
from venire.server.store.records import EventRow


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
