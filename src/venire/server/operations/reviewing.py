"""The verdicts that wait for a reviewer: audits that are due, then the doubtful or telling ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import Final, Literal

from venire.server.console_messages import ReviewItem, ReviewsPage
from venire.server.cursors import opened, sealed
from venire.server.reports.excerpts import excerpt_of
from venire.server.reports.guarantee import guarantee_of
from venire.server.reports.telling import Telling, Told, reason_of, rows_of
from venire.server.runtime.runtime import Runtime
from venire.server.store import ItemRow, Storage
from venire.server.store.search import EXCERPT
from venire.server.stream.live_stream import LiveStream

Kind = Literal["audit", "disputed", "doubtful"]
Order = Literal["doubt", "telling"]

#: Seconds to look in one request; verdicts to look at before the clock is read again.
SEARCH_SECONDS: Final = 0.1
SCAN: Final = 500


class ReviewOperations:
    """Lists what is to be reviewed."""

    def __init__(self, runtime: Runtime, telling: Telling) -> None:
        self.runtime, self.telling = runtime, telling

    async def reviews(
        self,
        stream: str,
        kind: Kind | None = None,
        cursor: str | None = None,
        limit: int = 20,
        order: Order = "doubt",
    ) -> ReviewsPage:
        """A page of the verdicts that wait; of one kind, or of all.

        The least confident first, or with the order "telling" those whose truth tells most about
        who is right, as `venire ask` has them; of these there is one page.
        """
        live = await self.runtime.live_stream(stream)
        if order == "telling":
            return await self._most_telling(live, kind, limit)
        told = None if cursor is None else opened(live.checks.secret, cursor)
        place: tuple[float, int] | None = None if told is None else tuple(told)
        due = len(live.checks.waiting)
        found = (
            await self._audits(live, limit) if cursor is None and kind in (None, "audit") else []
        )
        end = kind == "audit"
        until = self.runtime.clock.monotonic() + SEARCH_SECONDS
        while not end and len(found) < limit:
            more, place = await self._doubts(live, kind, place, limit - len(found))
            found += more
            end = place is None
            if self.runtime.clock.monotonic() >= until:
                break
        return ReviewsPage(
            stream, due, tuple(found), None if end else sealed(live.checks.secret, place)
        )

    async def is_due(self, stream: str, item: str) -> bool:
        """Whether the verdict of an item waits for an audit."""
        return item in (await self.runtime.live_stream(stream)).checks.waiting

    async def due(self, stream: str) -> frozenset[str]:
        """The items whose verdicts wait for an audit."""
        return frozenset((await self.runtime.live_stream(stream)).checks.waiting)

    async def _audits(self, live: LiveStream, limit: int) -> list[ReviewItem]:
        """Audits, the earliest drawn first, without anything that could influence the answer."""
        due, storage = list(islice(live.checks.waiting, limit)), self.runtime.storage
        await self.runtime.flush()
        rows = [await self.runtime.read(storage.item, live.name, item) for item in due]
        return [
            ReviewItem(row.id, "audit", _shown(row), row.arrived_at, row.left_at)
            for row in rows
            if row is not None
        ]

    async def _most_telling(self, live: LiveStream, kind: Kind | None, limit: int) -> ReviewsPage:
        runtime, due = self.runtime, len(live.checks.waiting)
        found = await self._audits(live, limit) if kind in (None, "audit") else []
        told = await self.telling.of(live) if kind != "audit" else Told()
        names = [str(one.item) for one in told.asked]
        rows = await runtime.read_committed(rows_of, runtime.storage, live.name, names)
        votes = await runtime.read(_votes, runtime.storage, live.name, list(rows.values()))
        for one in told.asked:
            row = rows.get(str(one.item))
            waits = row is not None and row.id not in live.checks.waiting
            if row is None or not waits or row.id in live.follow_ups.latest:
                continue
            item = replace(_review_item(row, votes[row.id]), reason=reason_of(one))
            if kind in (None, item.kind) and len(found) < limit:
                found.append(item)
        return ReviewsPage(live.name, due, tuple(found), None, told.words)

    async def _doubts(
        self, live: LiveStream, kind: Kind | None, place: tuple[float, int] | None, limit: int
    ) -> tuple[list[ReviewItem], tuple[float, int] | None]:
        """The next verdicts by confidence, the lowest first, and where to go on.

        Those that are guaranteed need no review.
        """
        runtime = self.runtime
        await runtime.flush()
        scan = SCAN if kind is not None else limit
        rows = await runtime.read(runtime.storage.doubtful, live.name, place, scan)
        votes = await runtime.read(_votes, runtime.storage, live.name, rows)
        proven = await guarantee_of(runtime, live)
        found: list[ReviewItem] = []
        for row in rows:
            place = row.confidence or 0.0, row.exit_n or 0
            item = _review_item(row, votes[row.id])
            if proven is not None and proven.marks(row.exit_n, row.confidence):
                continue
            if row.id not in live.follow_ups.latest and kind in (None, item.kind):
                found.append(item)
            if len(found) == limit:
                return found, place
        return found, place if len(rows) == scan else None


def _votes(storage: Storage, stream: str, rows: list[ItemRow]) -> dict[str, Counter[str]]:
    """How often each class was said of each item, by labels that came before it left."""
    votes: dict[str, Counter[str]] = {row.id: Counter() for row in rows}
    for label in storage.labels_among(stream, votes):
        if not label.late:
            votes[label.item][label.said] += 1
    return votes


def _shown(row: ItemRow) -> str:
    return excerpt_of(row.payload, EXCERPT)


def _review_item(row: ItemRow, votes: Counter[str]) -> ReviewItem:
    disputed = any(name != row.verdict for name in votes)
    return ReviewItem(
        item=row.id,
        kind="disputed" if disputed else "doubtful",
        excerpt=_shown(row),
        arrived_at=row.arrived_at,
        left_at=row.left_at,
        verdict=row.verdict,
        confidence=row.confidence,
        votes=dict(votes.most_common()),
    )
