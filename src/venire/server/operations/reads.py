"""Reading a stream: items, exits, revisions, events, labelers and statistics.

A read waits until everything done before it is on disk, so a client never sees what may be lost.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from venire.audits.intervals import check_level
from venire.errors import NotFound, StateError, StreamElsewhere, StreamLoading
from venire.model import ItemStatus, NoteKind
from venire.server.admin_messages import (
    ConfusionView,
    LabelerView,
    LessonsView,
    PanelView,
    RatesView,
    WhatIfView,
)
from venire.server.messages import (
    EventView,
    ExitView,
    Explanation,
    Insights,
    ItemView,
    RevisionView,
    StreamView,
)
from venire.server.operations import Operations
from venire.server.reports.alarm_rules import OF_VERDICTS
from venire.server.reports.event_json import (
    event_body,
    gold_view,
    label_view,
    note_view,
    repeat_view,
    revision_view,
    route_view,
)
from venire.server.reports.explain import check_cursor, explain, find
from venire.server.reports.replays import panel_of, what_if_of
from venire.server.reports.skill_report import MIN_LABELS, Skill
from venire.server.reports.trends import (
    TRUSTED,
    audited_of,
    guarantee_of,
    guarantee_view,
    last_change,
    marked_exit,
    rates_over,
    rests_on,
)
from venire.server.store.codec import kind_of
from venire.server.stream.statistics import quantile

if TYPE_CHECKING:
    from venire.server.admin_messages import TrendsView
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import EventRow, ItemRow
    from venire.server.stream.change_batch import LogPosition
    from venire.server.stream.live_stream import LiveStream
    from venire.whatif import Plan

T = TypeVar("T")

#: Seconds without activity after which a labeler that holds nothing is away.
AWAY: Final = 120.0

#: Rows of the log to read at once; seconds after which a follower checks whether to stop.
LOG_PAGE, FOLLOW_SECONDS = 500, 15.0


class ReadOperations(Operations):
    """Reads streams."""

    async def item(self, stream: str, item: str) -> ItemView:
        """An item with its labels, its posterior and its verdict."""
        return await item_view(self.runtime, stream, item)

    async def payloads(self, stream: str, items: Sequence[str]) -> dict[str, Any]:
        """The payloads of some items, by id; those of unknown items are left out."""
        await self.runtime.live_stream(stream)
        await self.runtime.flush()
        read = self.runtime.storage.item

        def rows() -> dict[str, Any]:
            found = {item: read(stream, item) for item in items}
            return {item: json.loads(row.payload) for item, row in found.items() if row}

        return await self.runtime.read(rows)

    async def explain(self, stream: str, item: str, believes: bool = False) -> Explanation:
        """Why the item was assigned to whom, and why it left; recomputed from the log."""
        return await explain(self.runtime, stream, item, believes)

    async def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ExitView]:
        """The exits after a cursor, oldest first; waits up to `wait` seconds for the first."""
        read = self.runtime.storage.exits
        rows = await self._after("exits", read, stream, after, wait, limit)
        if not rows:  # nothing came, or the stream was deleted meanwhile
            return []
        proven = await guarantee_of(self.runtime, await self.runtime.live_stream(stream))
        return [marked_exit(row, proven) for row in rows]

    async def revisions(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[RevisionView]:
        """The revisions after a cursor, oldest first; waits up to `wait` seconds for the first."""
        read = self.runtime.storage.revisions
        found = await self._after("revisions", read, stream, after, wait, limit)
        return [revision_view(row) for row in found]

    async def _after(
        self,
        what: Literal["exits", "revisions"],
        read: Callable[[str, int, int], list[T]],
        stream: str,
        after: int,
        wait: float,
        limit: int,
    ) -> list[T]:
        """Committed rows after a cursor, which are not archived."""

        def last(position: LogPosition) -> int:
            return position.exit if what == "exits" else position.revision

        runtime, live = self.runtime, await self.runtime.live_stream(stream)
        check_cursor(what, after, getattr(live.segment, what) if live.segment else 0)
        await runtime.flush()
        position = runtime.log_position(stream)
        if wait > 0 and last(position) <= after:
            await position.wait(lambda p: last(p) > after or not runtime.running, wait)
        if last(position) <= after:
            return []
        return await runtime.read(read, stream, after, limit)

    async def check_event(self, stream: str, after: int | None) -> None:
        """Refuse to follow the log from an event that is archived."""
        live = await self.runtime.live_stream(stream)
        if after is not None:
            check_cursor("events", after, live.segment.next_event if live.segment else 0)

    async def events(self, stream: str, after: int | None = None) -> AsyncIterator[EventView]:
        """Follow the log after an event: from the start for 0, from now on for None."""
        runtime = self.runtime
        await self.check_event(stream, after)
        position = runtime.log_position(stream)
        last = position.event if after is None else after - 1  # the store counts from 0
        while runtime.running and not position.ended:
            if not await position.wait_for_event(last, FOLLOW_SECONDS):
                continue
            for row in await runtime.read(runtime.storage.events, stream, last, LOG_PAGE):
                yield event_view(row)
                last = max(last, row.n + row.size - 1)

    async def labelers(self, stream: str, wait: bool = True) -> list[LabelerView]:
        """The labelers with what was learned about them; without `wait` what was known last."""
        live = await self.runtime.live_stream(stream)
        skills = await self.skills.of(live) if wait else self.skills.latest(live)
        live = await self.runtime.live_stream(stream)
        now, known = self.runtime.clock.monotonic(), live.engine.competences or {}
        names = sorted(live.labelers.seated | set(live.labelers))
        views = [
            labeler_view(live, name, known.get(name), skills.get(name, Skill()), now)
            for name in names
        ]
        await self.runtime.flush()
        return views

    async def relations(self, stream: str) -> tuple[str, ...]:
        """Who shares errors, a sentence each, as far as it is known by now."""
        return self.skills.relations(await self.runtime.live_stream(stream))

    async def confusion(self, stream: str, labeler: str) -> ConfusionView:
        """How often a labeler says each class of items of each true class."""
        live = await self.runtime.live_stream(stream)
        if labeler not in live.labelers:
            raise NotFound("labeler", labeler)
        skill = (await self.skills.of(live)).get(labeler, Skill())
        if skill.confusion is None:
            raise StateError(
                f"no confusion matrix is learned of {labeler!r}: it takes {MIN_LABELS} labels of "
                "three labelers, and is kept of those who labelled most lately"
            )
        rows = tuple(tuple(row) for row in skill.confusion.tolist())
        return ConfusionView(labeler, tuple(live.settings.classes), rows)

    async def lessons(self, stream: str) -> LessonsView:
        """How the student of a stream learned."""
        live = await self.runtime.live_stream(stream)
        student = live.settings.student
        lessons = tuple(live.pupil.lessons) if student else ()
        return LessonsView(stream, student.id if student else None, lessons)

    async def panel(self, stream: str, want: float | None = None) -> PanelView:
        """What each labeler brings and costs, and the cheapest panel of the wanted accuracy."""
        return await panel_of(self.runtime, stream, want)

    async def rates(self, stream: str, level: float = 0.95) -> RatesView:
        """How often each class comes, and how right and complete its verdicts are, by audits."""
        check_level(level)
        runtime, live = self.runtime, await self.runtime.live_stream(stream)
        classes, due = live.settings.classes, len(live.checks.waiting)
        given = runtime.storage, stream, dict(live.checks.shares), live.exit_n
        found = await runtime.read_committed(audited_of, *given)
        proven = await guarantee_of(runtime, live)
        view = await runtime.threads.compute(rates_over, stream, classes, found, level, due)
        return replace(view, guarantee=guarantee_view(proven))

    async def what_if(self, stream: str, plan: Plan, drawn: bool = False) -> WhatIfView:
        """What another plan would have bought; `drawn`: also by labels the log does not hold."""
        return await what_if_of(self.runtime, stream, plan, drawn)

    async def trends(self, stream: str) -> TrendsView:
        """What the latest exits say: mixes, trends, estimated accuracy."""
        return await self._trends.of(await self.runtime.live_stream(stream))

    async def overview(self) -> list[Insights]:
        """The statistics of every stream in service on this server; not of archived ones.

        Those that are still being loaded are left out.
        """
        runtime = self.runtime
        rows = await runtime.read_committed(runtime.storage.streams)
        names = [row.name for row in rows if row.archived_at is None]
        views = []
        for name in names:
            left_out = name in runtime.set_aside or name in runtime.loading
            if not left_out and runtime.sharing.holds(name):
                with contextlib.suppress(StreamElsewhere, StreamLoading):  # since this moment
                    live = await runtime.live_stream(name)
                    waiting = len(runtime.offers.room(name))
                    views.append(insights(live, waiting, runtime.clock.monotonic()))
        await runtime.flush()
        return views

    async def insights(self, stream: str) -> Insights:
        """The statistics of a stream."""
        live = await self.runtime.live_stream(stream)
        view = insights(live, len(self.runtime.offers.room(stream)), self.runtime.clock.monotonic())
        await self.runtime.flush()
        return view


async def item_view(runtime: Runtime, stream: str, item: str) -> ItemView:
    """An item by the store and, while it is open, the engine."""
    live = await runtime.live_stream(stream)
    await runtime.flush()
    row = await runtime.read(runtime.storage.item, stream, item)
    gold = await runtime.read(runtime.storage.gold_among, stream, [item])
    if row is None:
        _, row, labels, revisions, notes = await find(runtime, stream, item)
    else:
        labels = await runtime.read(runtime.storage.labels_of, stream, item)
        revisions = await runtime.read(runtime.storage.revisions_of, stream, item)
        notes = await runtime.read(runtime.storage.notes, stream, 0, None, item)
    repeats = await runtime.read(runtime.storage.repeats, stream, item)
    routed = await runtime.read(runtime.storage.routed, stream, item)
    came = await runtime.read(runtime.storage.routed_to, stream, item)
    payload = await runtime.read(json.loads, row.payload)
    live = await runtime.live_stream(stream)
    posterior: dict[str, float] | None = None
    held: tuple[str, ...] = ()
    verdict, confidence = row.verdict, row.confidence or 0.0
    if revisions:
        verdict, confidence = revisions[-1].verdict, revisions[-1].confidence
    if gold and gold[0].label == verdict:
        confidence = 1.0  # also where gold confirmed it
    if row.status == ItemStatus.OPEN and item in live.open:
        posterior, held = live.posterior(item), tuple(sorted(live.open[item].holders))
        so_far = live.engine.verdict(item)
        verdict = None if so_far.label is None else str(so_far.label)
        confidence = so_far.confidence
    return ItemView(
        id=row.id,
        status=ItemStatus(row.status),
        payload=payload,
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
        exit=None
        if row.status == ItemStatus.OPEN
        else marked_exit(row, await guarantee_of(runtime, live)),
        revisions=tuple(revision_view(revision) for revision in revisions),
        key=row.key,
        min_confidence=row.min_confidence,
        gold=gold[0].label if gold else None,
        notes=tuple(note_view(note) for note in notes),
        follows=live.follow_ups.original.get(item),
        follow_up=live.follow_ups.latest.get(item),
        gold_said=gold_view(gold[0]) if gold else None,
        routed=tuple(map(route_view, routed)),
        repeats=tuple(map(repeat_view, repeats)),
        routed_from=tuple(map(route_view, came)),
        rests_on=TRUSTED if gold else await _basis(runtime, live, row),
    )


async def _basis(runtime: Runtime, live: LiveStream, row: ItemRow) -> str:
    """What the confidence of an item rests on."""
    if live.basis[0] != live.version:
        rows = await runtime.read(runtime.storage.settings, live.name)
        live.basis = live.version, last_change(rows)
    shifted = any(rule == "mix_shift" for rule, _ in live.alarms)
    return rests_on(live.checks, row.left_at, live.basis[1], shifted)


def event_view(row: EventRow) -> EventView:
    """A row of the log, numbered by its last event; events count from 1."""
    return EventView(row.n + row.size, row.slot, row.at, kind_of(row), event_body(row))


def stream_view(live: LiveStream) -> StreamView:
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
        labels=live.statistics.labels,
        exits=live.exit_n,
        student=live.pupil.record(live),
    )


def labeler_view(
    live: LiveStream, name: str, skill: float | None, measured: Skill, now: float
) -> LabelerView:
    """A labeler, with its skill and interval.

    Until there are labels to measure it by, the skill is the engine's belief.
    """
    record, holds, times = live.labelers[name], live.leases.holds(name), live.lead_times.of(name)
    seen = now - record.last_seen <= AWAY
    return LabelerView(
        id=name,
        kind=record.kind,
        state="busy" if holds else "free" if seen else "away",
        capacity=record.capacity,
        holds=holds,
        skill=skill if measured.skill is None else measured.skill,
        skill_low=measured.low,
        skill_high=measured.high,
        labels=record.labels,
        late_labels=record.late,
        expired=record.expired,
        lead_median=quantile(times, 0.5),
        lead_p90=quantile(times, 0.9),
        drifting=measured.drifting,
        clone_of=measured.clone_of,
        price=record.price,
        money=record.money,
        trusted=name in live.trusted,
        retired=name in live.settings.retired,
        unsure=record.unsure,
        agreement=measured.agreement,
        family=measured.family,
    )


def insights(live: LiveStream, waiting: int, now: float) -> Insights:
    """The statistics of a stream, from memory."""
    statistics, budget = live.statistics, live.settings.label_budget
    oldest = next((entry.arrived for entry in live.open.values()), None)  # the first that came
    states, bound = {"free": 0, "busy": 0, "away": 0}, live.checks.bound()
    recent = statistics.summary()
    for name in live.labelers.seated:
        record = live.labelers[name]
        busy = live.leases.holds(name) > 0
        states["busy" if busy else "free" if now - record.last_seen <= AWAY else "away"] += 1
    return Insights(
        stream=live.name,
        status=live.status,
        slot=live.engine.slot,
        open_items=len(live.open),
        leased_items=len({lease.item for lease in live.leases if lease.of_open}),
        oldest_seconds=None if oldest is None else max(0.0, now - oldest),
        labels=statistics.labels,
        late_labels=statistics.late,
        exits=statistics.left,
        withdrawn=statistics.withdrawn,
        exits_per_minute=statistics.exits_rate.per_minute(now),
        labels_per_minute=statistics.labels_rate.per_minute(now),
        labels_per_item=recent.labels_per_item,
        budget=budget,
        budget_left=live.budget_left,
        agreement=recent.agreement,
        mean_confidence=recent.confidence,
        verdicts=recent.verdicts,
        reasons=recent.reasons,
        response_median=recent.response_median,
        response_p90=recent.response_p90,
        waiting=waiting,
        labelers=states,
        slots_skipped=statistics.slots_skipped,
        revisions=live.revision_n,
        gold=live.checks.gold,
        audits=len(live.checks.wrong),
        audits_due=len(live.checks.waiting),
        error_upper=bound.upper if bound.audited else None,
        money=live.labelers.money,
        today_left=_today_left(live),
        unsure=live.notes[NoteKind.UNSURE],
        flags=live.notes[NoteKind.FLAG],
        comments=live.notes[NoteKind.COMMENT],
        alarms=len(live.alarms),
        alarms_of_verdicts=sum(rule in OF_VERDICTS for rule, _ in live.alarms),
        accuracy_low=recent.accuracy[0],
        accuracy_high=recent.accuracy[1],
        single_label_share=recent.single_label_share,
        exits_by_minute=tuple(statistics.history.exits(now)),
        queue_by_minute=tuple(statistics.history.queue(len(live.open), now)),
    )


def _today_left(live: LiveStream) -> dict[str, float]:
    money, labels = live.engine.budget_left
    money = None if money is None else money * live.settings.delay_cost
    return {k: x for k, x in (("money", money), ("labels", labels)) if x is not None}
