"""What can be read of a stream: items, exits, events, labelers and figures.

Whatever a client may rely on is read from the store after all that was done before is on disk.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Final

from venire.errors import NotFound
from venire.model import ItemStatus
from venire.service.messages import (
    EventView,
    ExitView,
    Explanation,
    Insights,
    ItemView,
    LabelerView,
    RevisionView,
    StreamView,
)
from venire.service.reports.event_json import exit_view, label_view, revision_view, told
from venire.service.reports.explain import explain
from venire.service.reports.skill_report import Skill, Skills
from venire.service.runtime.runtime import Hub
from venire.service.stream.live_stream import Live
from venire.service.stream.slot_clock import quantile
from venire.storage import EventRow

__all__ = ["ReadingVerbs", "item_view", "stream_view"]

#: A labeler that was not heard of for so many seconds, and holds nothing, is away.
AWAY: Final = 120.0

#: So many rows of the log are read at once; a follower is woken at least so often.
PAGE, NAP = 500, 15.0


class ReadingVerbs:
    """The part of `Service` that shows."""

    hub: Hub
    skills: Skills

    async def item(self, stream: str, item: str) -> ItemView:
        """An item with its labels, its posterior and its verdict."""
        return await item_view(self.hub, stream, item)

    async def explain(self, stream: str, item: str) -> Explanation:
        """Why the item was given to whom, and why it left; recomputed from the log."""
        return await explain(self.hub, stream, item)

    async def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ExitView]:
        """The exits after a cursor, the earliest first; waits for one if there is none."""
        hub = self.hub
        await hub.live(stream)
        await hub.flush()
        news = hub.news(stream)
        if wait > 0 and news.exit <= after:
            await news.wait(lambda n: n.exit > after or not hub.running, wait)
        if news.exit <= after:
            return []
        rows = await hub.read(hub.storage.exits, stream, after, limit)
        return [exit_view(row) for row in rows]

    async def revisions(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[RevisionView]:
        """The revisions after a cursor, the earliest first; waits for one if there is none."""
        hub = self.hub
        await hub.live(stream)
        await hub.flush()
        news = hub.news(stream)
        if wait > 0 and news.revision <= after:
            await news.wait(lambda n: n.revision > after or not hub.running, wait)
        if news.revision <= after:
            return []
        rows = await hub.read(hub.storage.revisions, stream, after, limit)
        return [revision_view(row) for row in rows]

    async def events(self, stream: str, after: int | None = None) -> AsyncIterator[EventView]:
        """The log after an event, as it grows: all of it after 0, and from now on after None."""
        hub = self.hub
        await hub.live(stream)
        news = hub.news(stream)
        last = news.event if after is None else after - 1  # the store counts from 0
        while hub.running and not news.ended:
            if not await news.after(last, NAP):
                continue
            for row in await hub.read(hub.storage.events, stream, last, PAGE):
                yield event_view(row)
                last = max(last, row.n + row.size - 1)

    async def labelers(self, stream: str) -> list[LabelerView]:
        """The panel with what was learned of it."""
        live = await self.hub.live(stream)
        skills = await self.skills.of(live)
        live = await self.hub.live(stream)
        now, known = self.hub.clock.monotonic(), live.engine.competences or {}
        names = sorted(live.people.seated | set(live.people))
        views = [
            labeler_view(live, name, known.get(name), skills.get(name, Skill()), now)
            for name in names
        ]
        await self.hub.flush()
        return views

    async def insights(self, stream: str) -> Insights:
        """The figures of a stream."""
        live = await self.hub.live(stream)
        view = insights(live, len(self.hub.room(stream)), self.hub.clock.monotonic())
        await self.hub.flush()
        return view


async def item_view(hub: Hub, stream: str, item: str) -> ItemView:
    """An item as the store and, while it is open, the engine know it."""
    live = await hub.live(stream)
    await hub.flush()
    row = await hub.read(hub.storage.item, stream, item)
    if row is None:
        raise NotFound("item", item)
    labels = await hub.read(hub.storage.labels_of, stream, item)
    revisions = await hub.read(hub.storage.revisions_of, stream, item)
    live = await hub.live(stream)
    posterior: dict[str, float] | None = None
    held: tuple[str, ...] = ()
    verdict, confidence = row.verdict, row.confidence or 0.0
    if revisions:
        verdict, confidence = revisions[-1].verdict, revisions[-1].confidence
    if row.status == ItemStatus.OPEN and item in live.open:
        posterior, held = live.posterior(item), tuple(sorted(live.open[item].holders))
        so_far = live.engine.verdict(item)
        verdict = None if so_far.label is None else str(so_far.label)
        confidence = so_far.confidence
    return ItemView(
        id=row.id,
        status=ItemStatus(row.status),
        payload=json.loads(row.payload),
        weight=row.weight,
        eligible=None if row.eligible is None else tuple(json.loads(row.eligible)),
        excluded=tuple(json.loads(row.excluded)),
        arrived_slot=row.arrived_slot,
        arrived_at=row.arrived_at,
        labels=tuple(label_view(label) for label in labels),
        verdict=verdict,
        confidence=confidence,
        posterior=posterior,
        held_by=held,
        exit=None if row.status == ItemStatus.OPEN else exit_view(row),
        revisions=tuple(revision_view(revision) for revision in revisions),
        key=row.key,
    )


def event_view(row: EventRow) -> EventView:
    """A row of the log; its number is that of its last event, the first event is 1."""
    return EventView(row.n + row.size, row.slot, row.at, row.kind, told(row))


def stream_view(live: Live) -> StreamView:
    """A stream as it is now."""
    return StreamView(
        name=live.name,
        status=live.status,
        version=live.version,
        settings=live.settings.model_dump(mode="json"),
        created_at=live.created_at,
        slot=live.engine.slot,
        open_items=len(live.open),
        leases=len(live.leases),
        labels=live.figures.labels,
        exits=live.exit_n,
    )


def labeler_view(
    live: Live, name: str, skill: float | None, measured: Skill, now: float
) -> LabelerView:
    """A labeler, with the skill and the interval that its labels support.

    Before there are labels to measure it by, the skill is what the engine takes it for.
    """
    person, holds, times = live.people[name], live.leases.holds(name), live.lead.of(name)
    seen = now - person.seen <= AWAY
    return LabelerView(
        id=name,
        kind=person.kind,
        state="busy" if holds else "free" if seen else "away",
        capacity=person.capacity,
        holds=holds,
        skill=skill if measured.skill is None else measured.skill,
        skill_low=measured.low,
        skill_high=measured.high,
        labels=person.labels,
        late_labels=person.late,
        expired=person.expired,
        lead_median=quantile(times, 0.5),
        lead_p90=quantile(times, 0.9),
        drifting=measured.drifting,
        clone_of=measured.clone_of,
    )


def insights(live: Live, waiting: int, now: float) -> Insights:
    """The figures of a stream, from memory."""
    figures, budget = live.figures, live.settings.label_budget
    oldest = min((entry.arrived for entry in live.open.values()), default=None)
    states = {"free": 0, "busy": 0, "away": 0}
    for name in live.people.seated:
        person = live.people[name]
        busy = live.leases.holds(name) > 0
        states["busy" if busy else "free" if now - person.seen <= AWAY else "away"] += 1
    return Insights(
        stream=live.name,
        status=live.status,
        slot=live.engine.slot,
        open_items=len(live.open),
        leased_items=len({lease.item for lease in live.leases if lease.of_open}),
        oldest_seconds=None if oldest is None else max(0.0, now - oldest),
        labels=figures.labels,
        late_labels=figures.late,
        exits=figures.left,
        withdrawn=figures.withdrawn,
        exits_per_minute=figures.exits_rate.per_minute(now),
        labels_per_minute=figures.labels_rate.per_minute(now),
        labels_per_item=figures.labels_per_item,
        budget=budget,
        budget_left=live.budget_left,
        agreement=figures.agreement,
        mean_confidence=figures.confidence,
        verdicts=figures.verdicts(),
        reasons=figures.reasons(),
        response_median=quantile(figures.responses, 0.5),
        response_p90=quantile(figures.responses, 0.9),
        waiting=waiting,
        labelers=states,
        slots_skipped=figures.slots_skipped,
        revisions=live.revision_n,
    )
