"""Why an item was given to whom, and why it left: recomputed from the log.

An engine is brought to the moment of each assignment by replaying the log, so the gain, the
price and the alternatives are those that the scheduler saw, and anybody can check them. That is
done in a thread of its own, for few at a time, and not for a client that has gone.
"""

from __future__ import annotations

import threading

from venire.errors import NotFound
from venire.model import ItemStatus
from venire.service.messages import Explanation, Given
from venire.service.reports.event_json import exit_view, label_view
from venire.service.reports.log_replay import Retracing
from venire.service.runtime.runtime import Hub
from venire.storage import ItemRow

__all__ = ["explain"]


async def explain(hub: Hub, stream: str, item: str) -> Explanation:
    """Why the item was given to whom, and why it left."""
    await hub.live(stream)
    row = await hub.read_committed(hub.storage.item, stream, item)
    if row is None:
        raise NotFound("item", item)
    given, complete = await _retraced(hub, row)
    labels = await hub.read(hub.storage.labels_of, stream, item)
    left = None if row.status == ItemStatus.OPEN else exit_view(row)
    why = "it has not left" if left is None else left.reason.meaning
    return Explanation(
        item=item,
        arrived_slot=row.arrived_slot,
        given=tuple(given),
        labels=tuple(label_view(label) for label in labels),
        exit=left,
        why=why,
        complete=complete,
    )


async def _retraced(hub: Hub, row: ItemRow) -> tuple[list[Given], bool]:
    """Every time the item was given away; the search ends when nobody waits for it."""
    stop = threading.Event()

    def search() -> tuple[list[Given], bool]:
        return Retracing(hub.storage, row, stop, hub.clock.monotonic).find()

    try:
        return await hub.explain(search)
    finally:
        stop.set()
