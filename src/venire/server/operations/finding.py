"""Looking through the items of a stream, page by page."""

from __future__ import annotations

from typing import Final

from venire.model import ExitReason, ItemStatus
from venire.server.console_messages import ItemsPage, ItemSummary
from venire.server.cursors import opened, sealed
from venire.server.reports.excerpts import excerpt_of
from venire.server.runtime.runtime import Runtime
from venire.server.store import ItemRow, ItemSearch, Place, Storage
from venire.server.store.search import EXCERPT

#: Seconds to look for items in one request; rows to look at before the clock is read again.
SEARCH_SECONDS: Final = 0.1
SCAN: Final = 5000

#: The place before all items: later than any arrival.
START: Final = (1e15, "")


class FindOperations:
    """Lists and searches items."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def find_items(
        self, stream: str, search: ItemSearch, cursor: str | None = None, limit: int = 50
    ) -> ItemsPage:
        """A page of the items that match, the latest arrival first, from behind a cursor."""
        runtime = self.runtime
        live = await runtime.live_stream(stream)
        secret = live.checks.secret
        place: Place | None = None if cursor is None else tuple(opened(secret, cursor))
        await runtime.flush()
        named = await runtime.read(_named, runtime.storage, stream, search)
        if named is not None and search.blind and named.id in live.checks.waiting:
            named = None
        rows = [named] if named is not None and cursor is None else []
        until = runtime.clock.monotonic() + SEARCH_SECONDS
        end = False
        while not end and len(rows) < limit:
            more, place = await runtime.read(
                runtime.storage.find_items, stream, search, place, limit - len(rows), SCAN
            )
            rows += [row for row in more if named is None or row.id != named.id]
            end = place is None
            if runtime.clock.monotonic() >= until:
                break
        found = await runtime.read(_summaries, runtime.storage, stream, rows)
        live = await runtime.live_stream(stream)
        counted = {id: len(live.open[id].labels) for id in found if id in live.open}
        listed = tuple(_summary(row, *found[row.id], counted.get(row.id, 0)) for row in rows)
        return ItemsPage(listed, None if end else sealed(secret, place or START))


def _named(storage: Storage, stream: str, search: ItemSearch) -> ItemRow | None:
    """The item whose id is the text, if it matches: it comes first, however old it is."""
    row = None if search.text is None else storage.item(stream, search.text)
    if row is None or not search.leads_to(row):
        return None
    labelled = any(x.labeler == search.labeler for x in storage.labels_of(stream, row.id))
    return row._replace(payload=row.payload[:EXCERPT]) if search.matches(row, labelled) else None


def _summaries(
    storage: Storage, stream: str, rows: list[ItemRow]
) -> dict[str, tuple[str | None, str | None]]:
    """What the verdicts were revised to, and the gold, by item."""
    gold = storage.gold_of(stream, [row.id for row in rows])
    revised = storage.revised(stream, [row.id for row in rows])
    return {row.id: (revised.get(row.id), gold.get(row.id)) for row in rows}


def _summary(row: ItemRow, revised: str | None, gold: str | None, so_far: int) -> ItemSummary:
    return ItemSummary(
        id=row.id,
        status=ItemStatus(row.status),
        excerpt=excerpt_of(row.payload),
        arrived_at=row.arrived_at,
        left_at=row.left_at,
        verdict=row.verdict,
        confidence=None if row.verdict is None else row.confidence,
        labels=so_far if row.labels is None else row.labels,
        reason=None if row.reason is None else ExitReason(row.reason),
        revised=revised,
        gold=gold,
    )
