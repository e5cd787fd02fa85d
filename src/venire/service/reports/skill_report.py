"""How good labelers are, how sure that is, who has changed, and who copies whom.

The engine's own belief decides who gets what. Skills with their intervals, drift and clones are
measured beside it, by the same estimator, from the latest labels of the stream, in a thread, and
kept for some seconds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from venire.errors import VenireError
from venire.estimators.intervals import implied_intervals
from venire.estimators.screening.clones import find_clones
from venire.estimators.streaming.estimator import Streaming
from venire.estimators.votes.anchored import Anchored
from venire.labels import LabelTable
from venire.service.reports.event_json import number
from venire.service.runtime.runtime import Hub
from venire.service.stream.live_stream import Live
from venire.storage import LabelRow, Storage

__all__ = ["Skill", "Skills", "measure", "warm_up"]

#: So many of the latest labels count.
LABELS: Final = 20_000

#: Figures are kept so long, and are made anew then if there are new labels.
KEPT: Final = 10.0

Span = tuple[float | None, float | None, float | None]

#: Below so many labels nothing can be said.
FEWEST: Final = 10


@dataclass(frozen=True, slots=True)
class Skill:
    """What the labels say of a labeler: its skill and an interval, from one posterior."""

    skill: float | None = None
    low: float | None = None
    high: float | None = None
    drifting: bool = False
    clone_of: str | None = None


class Skills:
    """The latest measurement of each stream."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._kept: dict[str, tuple[float, int, dict[str, Skill]]] = {}
        self._busy = asyncio.Lock()

    def forget(self, stream: str) -> None:
        """A stream is deleted."""
        self._kept.pop(stream, None)

    async def of(self, live: Live) -> dict[str, Skill]:
        """What the labels of a stream say of its labelers."""
        async with self._busy:
            now, labels = self._hub.clock.monotonic(), live.figures.labels
            at, count, skills = self._kept.get(live.name, (-KEPT, 0, {}))
            if now - at >= KEPT and count != labels:
                skills = await self._hub.think(
                    _measured, self._hub.storage, live.name, live.settings.classes
                )
                self._kept[live.name] = now, labels, skills
            return skills


def _measured(storage: Storage, stream: str, classes: tuple[str, ...]) -> dict[str, Skill]:
    return measure(storage.recent_labels(stream, 0.0, limit=LABELS), classes)


def measure(labels: list[LabelRow], classes: tuple[str, ...]) -> dict[str, Skill]:
    """Intervals (90 %), drift and clones from labels, the newest first."""
    rows = [(row.item, row.labeler, row.said) for row in reversed(labels)]
    names = {row[1] for row in rows}
    if len(rows) < FEWEST or len(names) < 3:
        return {}
    clones = _clones(LabelTable.from_rows(rows, classes=classes))
    own = [row for row in rows if row[1] not in clones]  # the agreement of copies says nothing
    spans, drifting = _spans(own, classes), _drifting(own, classes)
    found = {}
    for name in sorted(names):
        first = clones.get(name, name)
        span = spans.get(first, (None, None, None))
        found[name] = Skill(*span, first in drifting, clones.get(name))
    return found


def warm_up(classes: tuple[str, ...]) -> None:
    """Measure a few labels of nobody, so that everything is compiled.

    >>> warm_up(("yes", "no"))
    """
    labels = [
        (f"item {n}", f"labeler {k}", classes[(n // 2 + (n % 9 == k)) % 2])  # seldom wrong, in turn
        for n in range(3 * FEWEST)
        for k in range(3)
    ]
    measure([LabelRow("", *label, 0.0, 0, False, None, "") for label in labels], classes)


def _spans(rows: list[tuple[str, str, str]], classes: tuple[str, ...]) -> dict[str, Span]:
    """Skill and interval of each labeler."""
    table = LabelTable.from_rows(rows, classes=classes)
    fitted = Anchored(threads=1).fit(table)
    spans = zip(fitted.competences_.tolist(), implied_intervals(fitted).tolist(), strict=True)
    return {
        str(name): (number(skill), number(low), number(high))
        for name, (skill, (low, high)) in zip(table.labelers, spans, strict=True)
    }


def _drifting(rows: list[tuple[str, str, str]], classes: tuple[str, ...]) -> set[str]:
    """Who has changed, by the stream of labels in the order in which they came."""
    stream = Streaming(classes=classes, repeats="first")
    for first in range(0, len(rows), 200):
        stream.partial_fit(LabelTable.from_rows(rows[first : first + 200], classes=classes))
    return {str(name) for name, drift in stream.drift_.items() if drift.alarms}


def _clones(table: LabelTable) -> dict[str, str]:
    """Of each labeler who is a copy, the first of its group."""
    try:
        groups = find_clones(table).groups
    except VenireError:
        return {}
    return {str(name): str(group.members[0]) for group in groups for name in group.members[1:]}
