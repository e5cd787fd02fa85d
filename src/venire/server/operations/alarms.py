"""Alarms: the rules of every stream are checked now and then; what changes is written and sent.

An alarm that is raised, or cleared, is a row, a line in the server's log, and a message to every
webhook of the stream. It is cleared once its rule was kept at several checks in a row.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from venire.errors import VenireError
from venire.model import StreamStatus
from venire.server.admin_messages import AlarmsView, AlarmView
from venire.server.operations import Operations
from venire.server.operations.reads import insights
from venire.server.reports.alarm_rules import Finding, Watched, findings, settled
from venire.server.reports.event_json import alarm_view
from venire.server.store import AlarmRow, DeliveryRow, DropAlarms, Insert

if TYPE_CHECKING:
    from venire.server.reports.skill_report import Skill
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream

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

    def _forget_alarms(self, stream: str) -> None:
        """Drop what is remembered of a deleted stream."""
        self._trends.forget(stream)
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

        Without a number it is the latest that was.
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
        rows = self._alarm_changes(live, found, lambda was: settled(was, live.settings, *measured))
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
            _log.warning("no more alarm in stream %r: %s: %s", live.name, rule, message)
        return row
