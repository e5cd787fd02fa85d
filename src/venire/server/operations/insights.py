"""What came of a stream: exits, revisions, its log, statistics; and alarms that its rules raise.

A read waits until everything done before it is on disk, so a client never sees what may be lost.

The rules of every stream are checked now and then. An alarm that is raised, or cleared, is a row, a
line in the log of the server, and a message to every webhook of the stream. It is cleared once its
rule was kept at several checks in a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from venire.audits.intervals import check_level
from venire.errors import StreamElsewhere, StreamLoading, VenireError
from venire.model import NoteKind, StreamStatus
from venire.server.admin_messages import (
    AlarmsView,
    AlarmView,
    RatesView,
    WhatIfView,
)
from venire.server.messages import (
    EventView,
    ExitView,
    Insights,
    RevisionView,
    view,
)
from venire.server.operations import Operations
from venire.server.reports.alarm_rules import OF_VERDICTS, Finding, Watched, cleared, findings
from venire.server.reports.event_json import (
    alarm_view,
    event_body,
    revision_view,
)
from venire.server.reports.explain import check_cursor
from venire.server.reports.replays import what_if_of
from venire.server.reports.trends import (
    audited_of,
    guarantee_of,
    guarantee_view,
    marked_exit,
    rates_over,
)
from venire.server.store import AlarmRow, DeliveryRow, DropAlarms, Insert
from venire.server.store.log import kind_of

if TYPE_CHECKING:
    from venire.server.admin_messages import TrendsView
    from venire.server.reports.skill_report import Skill
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import EventRow
    from venire.server.stream.change_batch import LogPosition
    from venire.server.stream.live_stream import LiveStream
    from venire.whatif import Plan

T = TypeVar("T")

#: Rows of the log to read at once; seconds after which a follower checks whether to stop.
LOG_PAGE, FOLLOW_SECONDS = 500, 15.0


class InsightOperations(Operations):
    """Reads streams."""

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


def event_view(row: EventRow) -> EventView:
    """A row of the log, numbered by its last event; events count from 1."""
    return EventView(row.n + row.size, row.slot, row.at, kind_of(row), event_body(row))


def insights(live: LiveStream, waiting: int, now: float) -> Insights:
    """The statistics of a stream, from memory."""
    statistics, budget = live.statistics, live.settings.label_budget
    oldest = next((entry.arrived for entry in live.open.values()), None)  # the first that came
    states, bound = {"free": 0, "busy": 0, "away": 0}, live.checks.bound()
    recent = statistics.summary()
    for name in live.labelers.seated:
        record = live.labelers[name]
        states[record.state(live.leases.holds(name), now)] += 1
    return view(
        Insights,
        recent,
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
        budget=budget,
        budget_left=live.budget_left,
        mean_confidence=recent.confidence,
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
        exits_by_minute=tuple(statistics.history.exits(now)),
        queue_by_minute=tuple(statistics.history.queue(len(live.open), now)),
    )


def _today_left(live: LiveStream) -> dict[str, float]:
    money, labels = live.engine.budget_left
    money = None if money is None else money * live.settings.delay_cost
    return {k: x for k, x in (("money", money), ("labels", labels)) if x is not None}


#: Seconds between two checks; how old trends and skills may be then.
CHECK_SECONDS: Final = 15.0
TREND_SECONDS: Final = 60.0
SKILL_SECONDS: Final = 300.0

#: Rows to keep of a stream's history; the last of each rule stays in any case.
KEPT_ALARMS: Final = 5_000

#: Checks in a row at which a rule must be kept before its alarm is cleared.
CLEAR_AFTER: Final = 2

_log = logging.getLogger("venire.service")


class AlarmOperations(Operations):
    """Checks the rules, and tells what they found."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._began = runtime.clock.monotonic()
        self._quiet: Counter[tuple[str, str, str]] = Counter()
        self._skills_then: dict[str, tuple[float, dict[str, Skill]]] = {}

    def _forget(self, stream: str) -> None:
        super()._forget(stream)
        self._skills_then.pop(stream, None)
        for key in [key for key in self._quiet if key[0] == stream]:
            del self._quiet[key]

    async def _check_alarms_forever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check_all_alarms()

    async def check_all_alarms(self) -> None:
        """Check the rules of every stream that is not paused; requests are served in between."""
        for live in self.runtime.loaded():
            if live.status in (StreamStatus.PAUSED, StreamStatus.ARCHIVED):
                continue
            await asyncio.sleep(0)  # a check of a stream where nothing happened waits for nothing
            try:
                await self.check_alarms(live.name)
            except VenireError:
                pass  # it was deleted, or the store is down: the next check comes
            except Exception:
                _log.exception("the alarms of stream %r cannot be checked; retrying", live.name)

    async def alarms(self, stream: str, after: int | None = None, limit: int = 100) -> AlarmsView:
        """The alarms that are on, and what was raised and cleared after number `after`.

        Without `after`, the latest `limit` of them.
        """
        live = await self.runtime.live_stream(stream)
        after = max(0, live.alarm_n - limit) if after is None else after
        active = tuple(alarm_view(row) for row in live.alarms.values())
        storage = self.runtime.storage
        rows = await self.runtime.read_committed(storage.alarms, stream, after, limit)
        return AlarmsView(stream, active, tuple(alarm_view(row) for row in rows))

    async def check_alarms(self, stream: str) -> list[AlarmView]:
        """Check the rules of a stream now; the alarms that were raised or cleared by it."""
        live = await self.runtime.live_stream(stream)
        trends = await self._trends.of(live, TREND_SECONDS)
        skills = await self._skills_of(live)
        live = await self.runtime.live_stream(stream)
        now = self.runtime.clock.monotonic()
        watched = [self._watched(live, name, skills, now)
                   for name in sorted(live.labelers.seated - live.trusted)]  # fmt: skip
        measured = insights(live, 0, now), trends, watched
        found = findings(live.settings, *measured)
        rows = self._alarm_changes(live, found, lambda was: cleared(was, live.settings, *measured))
        if rows:
            hooks = [
                DeliveryRow(
                    webhook=hook,
                    stream=stream,
                    exit_n=row.n,
                    attempt=0,
                    next_at=row.at,
                    kind="alarm",
                )
                for hook in live.hooks
                for row in rows
            ]
            old = DropAlarms(stream, live.alarm_n - KEPT_ALARMS)
            await self.runtime.write([Insert(rows), Insert(hooks), old])
        return [alarm_view(row) for row in rows]

    def _watched(
        self, live: LiveStream, name: str, skills: dict[str, Skill], now: float
    ) -> Watched:
        record, skill = live.labelers[name], skills.get(name)
        away = now - max(record.last_seen, self._began)
        return Watched(name, record.labels, skill is not None and skill.drifting, away)

    async def _skills_of(self, live: LiveStream) -> dict[str, Skill]:
        now = self.runtime.clock.monotonic()
        at, skills = self._skills_then.get(live.name, (-SKILL_SECONDS, {}))
        if live.settings.alarms.drift and now - at >= SKILL_SECONDS:
            skills = await self.skills.of(live)
            self._skills_then[live.name] = now, skills
        return skills

    def _alarm_changes(
        self, live: LiveStream, found: list[Finding], settle: Callable[[Finding], Finding]
    ) -> list[AlarmRow]:
        """The rows of what is newly broken, and of what has been kept for a while."""
        broken = {(one.rule, one.subject): one for one in found}
        rows = []
        for key, one in broken.items():
            self._quiet.pop((live.name, *key), None)
            if key not in live.alarms:
                rows.append(self._alarm_row(live, one, True))
        for key, row in list(live.alarms.items()):
            if key in broken:
                continue
            self._quiet[(live.name, *key)] += 1
            if self._quiet[(live.name, *key)] >= CLEAR_AFTER:
                del self._quiet[(live.name, *key)]
                was = Finding(*key, row.value, row.threshold, row.message)
                rows.append(self._alarm_row(live, settle(was), False))
        return rows

    def _alarm_row(self, live: LiveStream, one: Finding, raised: bool) -> AlarmRow:
        """The next row, which the stream remembers and the log tells."""
        live.alarm_n += 1
        rule, subject, value, threshold, message = one
        row = AlarmRow(
            stream=live.name,
            n=live.alarm_n,
            at=self.runtime.clock.wall(),
            rule=rule,
            subject=subject,
            raised=raised,
            value=float(value),
            threshold=float(threshold),
            message=message,
        )
        if raised:
            live.alarms[rule, subject] = row
            _log.warning("alarm in stream %r: %s: %s", live.name, rule, message)
        else:
            del live.alarms[rule, subject]
            _log.warning("alarm cleared in stream %r: %s: %s", live.name, rule, message)
        return row
