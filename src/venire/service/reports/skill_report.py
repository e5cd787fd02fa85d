"""Labelers' skills with intervals, drift, and clones.

Assignments follow the engine's own beliefs. The skills, intervals, drift alarms and clones reported
here are computed beside it, by the same estimator, from the latest labels of the stream, in a
thread, and cached for some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from venire.errors import VenireError
from venire.estimators.intervals import implied_intervals
from venire.estimators.screening.clones import find_clones
from venire.estimators.streaming.estimator import Streaming
from venire.estimators.votes.anchored import Anchored
from venire.labels import LabelTable
from venire.service.reports.event_json import number
from venire.service.runtime.runtime import Runtime
from venire.service.stream.live_stream import LiveStream
from venire.storage import LabelRow, Storage

__all__ = ["Skill", "Skills", "measure", "warm_up"]

#: How many of the latest labels to use.
LABELS: Final = 20_000

#: Seconds to cache a report; then it is computed again if there are new labels.
CACHE_SECONDS: Final = 10.0

Span = tuple[float | None, float | None, float | None]

#: Fewer labels than this say nothing.
MIN_LABELS: Final = 10


@dataclass(frozen=True, slots=True)
class Skill:
    """A labeler's skill and its interval, from one posterior."""

    skill: float | None = None
    low: float | None = None
    high: float | None = None
    drifting: bool = False
    clone_of: str | None = None


class Skills:
    """The latest report of each stream."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: dict[str, tuple[float, int, dict[str, Skill]]] = {}
        self._busy = asyncio.Lock()

    def forget(self, stream: str) -> None:
        """Drop the report of a deleted stream."""
        self._kept.pop(stream, None)

    def latest(self, live: LiveStream) -> dict[str, Skill]:
        """The latest report, however old; a newer one is computed beside it, for the next time."""
        if not self._busy.locked():
            self._runtime.spawn(self._refresh(live))
        return self._kept.get(live.name, (0.0, 0, {}))[2]

    async def _refresh(self, live: LiveStream) -> None:
        with contextlib.suppress(VenireError):  # the store is down
            await self.of(live)

    async def of(self, live: LiveStream) -> dict[str, Skill]:
        """The skills of a stream's labelers."""
        async with self._busy:
            now, labels = self._runtime.clock.monotonic(), live.statistics.labels + live.checks.gold
            at, count, skills = self._kept.get(live.name, (-CACHE_SECONDS, 0, {}))
            if now - at >= CACHE_SECONDS and count != labels:
                skills = await self._runtime.threads.compute(
                    _measured, self._runtime.storage, live.name, live.settings.classes
                )
                self._kept[live.name] = now, labels, skills
            return skills


def _measured(storage: Storage, stream: str, classes: tuple[str, ...]) -> dict[str, Skill]:
    labels = storage.recent_labels(stream, 0.0, limit=LABELS)
    return measure(labels, classes, storage.gold_of(stream, {row.item for row in labels}))


def measure(
    labels: list[LabelRow], classes: tuple[str, ...], gold: dict[str, str] | None = None
) -> dict[str, Skill]:
    """Skills, 90 % intervals, drift and clones from labels, newest first, and gold."""
    rows = [(row.item, row.labeler, row.said) for row in reversed(labels)]
    names = {row[1] for row in rows}
    if len(rows) < MIN_LABELS or len(names) < 3:
        return {}
    clones = _clones(LabelTable.from_rows(rows, classes=classes))
    own = [row for row in rows if row[1] not in clones]  # copies add no evidence
    spans, drifting = _spans(own, classes, gold), _drifting(own, classes)
    found = {}
    for name in sorted(names):
        first = clones.get(name, name)
        span = spans.get(first, (None, None, None))
        found[name] = Skill(*span, first in drifting, clones.get(name))
    return found


def warm_up(classes: tuple[str, ...]) -> None:
    """Measure a few made-up labels, so that everything is compiled.

    >>> warm_up(("yes", "no"))
    """
    labels = [
        (f"item {n}", f"labeler {k}", classes[(n // 2 + (n % 9 == k)) % 2])  # seldom wrong, in turn
        for n in range(3 * MIN_LABELS)
        for k in range(3)
    ]
    measure([LabelRow("", *label, 0.0, 0, False, None, "") for label in labels], classes)


def _spans(
    rows: list[tuple[str, str, str]], classes: tuple[str, ...], gold: dict[str, str] | None
) -> dict[str, Span]:
    """Skill and interval of each labeler."""
    table = LabelTable.from_rows(rows, classes=classes)
    fitted = Anchored(threads=1).fit(table, gold)
    spans = zip(fitted.competences_.tolist(), implied_intervals(fitted).tolist(), strict=True)
    return {
        str(name): (number(skill), number(low), number(high))
        for name, (skill, (low, high)) in zip(table.labelers, spans, strict=True)
    }


def _drifting(rows: list[tuple[str, str, str]], classes: tuple[str, ...]) -> set[str]:
    """The labelers with a drift alarm, by the labels in order of arrival."""
    stream = Streaming(classes=classes, repeats="first")
    for first in range(0, len(rows), 200):
        stream.partial_fit(LabelTable.from_rows(rows[first : first + 200], classes=classes))
    return {str(name) for name, drift in stream.drift_.items() if drift.alarms}


def _clones(table: LabelTable) -> dict[str, str]:
    """Clones, each mapped to the first labeler of its group."""
    try:
        groups = find_clones(table).groups
    except VenireError:
        return {}
    return {str(name): str(group.members[0]) for group in groups for name in group.members[1:]}
