"""Why an item was given to whom, and why it left: recomputed from the log.

A fresh engine is brought to the moment of each assignment by replaying the log, so the gain, the
price and the alternatives are those that the scheduler saw, and anybody can check them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from venire.engine import Scheduler
from venire.errors import InputError, NotFound, StoreError
from venire.model import Assigned, Closed, Event, Withdrawn
from venire.service.hub import Hub
from venire.service.settings import of_body
from venire.service.telling import exit_view, label_view, number
from venire.service.views import Alternative, Explanation, Given
from venire.storage import EventRow, ItemRow, Storage, decode

__all__ = ["explain"]

#: So many other items are named beside the one that was given.
OTHERS: Final = 5

_WHY: Final = {
    "no_gain": "no labeler that could still be asked was worth another slot of waiting",
    "exhausted": "every labeler that may label it had done so",
    "overlap": "it had the number of labels that the policy asks for",
    "learning": "it was used to learn how good the labelers are",
    "dropped": "it was passed over while the labelers were being learned",
    "horizon": "the simulation ended",
    "max_labels": "it had max_overlap labels",
    "confident": "its verdict had reached min_confidence",
    "deadline": "its deadline had come",
    "budget": "the budget of labels was spent",
    "undecided": "its verdict was below min_confidence, and nobody was left who may label it, "
    "or it had max_overlap labels",
    "withdrawn": "it was taken out by hand",
}


async def explain(hub: Hub, stream: str, item: str) -> Explanation:
    """Why the item was given to whom, and why it left."""
    await hub.live(stream)
    row = await hub.read_committed(hub.storage.item, stream, item)
    if row is None:
        raise NotFound("item", item)
    given = await hub.read(_replayed, hub.storage, row)
    labels = await hub.read(hub.storage.labels_of, stream, item)
    left = None if row.status == "open" else exit_view(row)
    why = "it has not left" if left is None else _WHY.get(left.reason, left.reason)
    return Explanation(
        item=item,
        arrived_slot=row.arrived_slot,
        given=tuple(given),
        labels=tuple(label_view(label) for label in labels),
        exit=left,
        why=why,
    )


def _replayed(storage: Storage, item: ItemRow) -> list[Given]:
    """Every time the item was given to somebody, in the unit of weights that then held."""
    engine, n = _before(storage, item)
    costs = [(row.at, of_body(row.body)[0].delay_cost) for row in storage.settings(item.stream)]
    found: list[Given] = []
    for row, number_, event in _events(storage, item.stream, n):
        if isinstance(event, Assigned) and any(a.item == item.id for a in event.assignments):
            engine.advance(event.slot)
            engine.drain()
            scale = [cost for at, cost in costs if at <= row.at][-1:] or [costs[0][1]]
            found += _given(engine, event, item.id, row, number_, scale[0])
        engine.follow([event])
        engine.drain()
        if _left(event, item.id):
            break
    return found


def _before(storage: Storage, item: ItemRow) -> tuple[Scheduler, int]:
    """The engine at the last snapshot before the item came, and the events until then."""
    for snapshot in reversed(storage.snapshots(item.stream)):
        try:
            engine = Scheduler.restore(snapshot.body)
        except InputError:
            continue
        if snapshot.n == 0 or engine.slot < item.arrived_slot:
            return engine, snapshot.n
    raise StoreError(f"stream {item.stream!r} has no snapshot that this version can read")


def _events(storage: Storage, stream: str, n: int) -> Iterator[tuple[EventRow, int, Event]]:
    for row in storage.all_events(stream, n - 1):
        for place, event in enumerate(decode([row])):
            if row.n + place >= n:
                yield row, row.n + place, event


def _given(
    engine: Scheduler, event: Assigned, item: str, row: EventRow, n: int, scale: float
) -> list[Given]:
    """What the engine saw just before it gave the item away."""
    price = None if engine.price is None else engine.price * scale
    made = []
    for a in event.assignments:
        if a.item == item:
            others = [
                Alternative(name, None if number(gain) is None else gain * scale)
                for name, gain in engine.ranking(a.labeler, OTHERS + 1)
                if name != item
            ][:OTHERS]
            gain = None if number(a.gain) is None else a.gain * scale
            made.append(Given(n + 1, a.slot, row.at, a.labeler, gain, price, tuple(others)))
    return made


def _left(event: Event, item: str) -> bool:
    if isinstance(event, Closed):
        return any(exit.item == item for exit in event.exits)
    return isinstance(event, Withdrawn) and event.item == item
