"""Why an item was assigned to whom, and why it left: recomputed from the log.

The log is replayed to the moment of each assignment, so the gain, the price and the alternatives
are those that the scheduler saw, and anybody can check them. This runs in a thread of its own, with
a bounded queue, and stops when the client disconnects.
"""

from __future__ import annotations

import threading

from venire.model import ItemStatus
from venire.server.explanation_messages import Belief, Explanation, Given
from venire.server.reports.archived import where
from venire.server.reports.event_json import exit_view, label_view
from venire.server.reports.log_replay import AssignmentSearch
from venire.server.runtime.runtime import Runtime
from venire.server.store import ItemRow


async def explain(runtime: Runtime, stream: str, item: str, believes: bool = False) -> Explanation:
    """Why the item was assigned to whom, and why it left; on request how the belief moved."""
    await runtime.live_stream(stream)
    row = await runtime.read_committed(runtime.storage.item, stream, item)
    if row is None:
        raise await where(runtime, stream, item)
    given, complete, beliefs = await _assignments(runtime, row, believes)
    labels = await runtime.read(runtime.storage.labels_of, stream, item)
    left = None if row.status == ItemStatus.OPEN else exit_view(row)
    why = "it has not left" if left is None or left.reason is None else left.reason.meaning
    return Explanation(
        item=item,
        arrived_slot=row.arrived_slot,
        given=tuple(given),
        labels=tuple(label_view(label) for label in labels),
        exit=left,
        why=why,
        complete=complete,
        beliefs=beliefs,
    )


async def _assignments(
    runtime: Runtime, row: ItemRow, believes: bool
) -> tuple[list[Given], bool, tuple[Belief, ...]]:
    """Every assignment of the item; the search stops when its caller is cancelled."""
    stop = threading.Event()

    def search() -> tuple[list[Given], bool, tuple[Belief, ...]]:
        clock = runtime.clock.monotonic
        found = AssignmentSearch(runtime.storage, row, stop, clock, believes)
        given, complete = found.find()
        return given, complete, tuple(found.beliefs)

    try:
        return await runtime.threads.explain(search)
    finally:
        stop.set()
