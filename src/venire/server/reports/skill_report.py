"""Labelers' skills with intervals, drift, clones, and who shares errors.

Assignments follow the engine's own beliefs. What is reported here is computed beside it, from the
latest labels of the stream, in a thread, and cached for some seconds: skills, intervals, clones and
who shares errors by one fit of the same estimator (`Auto`), drift by its own test.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import VenireError
from venire.estimators.auto import Auto
from venire.estimators.intervals import implied_intervals
from venire.estimators.streaming.estimator import Streaming
from venire.labels import LabelTable
from venire.server.reports.event_json import number
from venire.server.store import LabelRow, Storage

if TYPE_CHECKING:
    from venire.estimators.dependence import Families
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream

#: How many of the latest labels to use.
LABELS: Final = 20_000

#: Seconds to cache a report; then it is computed again if there are new labels.
CACHE_SECONDS: Final = 10.0

Span = tuple[float | None, float | None, float | None]

#: Fewer labels than this say nothing.
MIN_LABELS: Final = 10


#: How many cells of confusion matrices are kept in all; labelers with the most labels come first.
CELLS: Final = 500_000


@dataclass(frozen=True, slots=True)
class Skill:
    """A labeler's skill and its interval, from one posterior.

    `clone_of` is the first of those whose errors look alike (`find_clones`), `family` are those
    with whom the labeler counts for fewer votes. `agreement` is how often another labeler of the
    same item says the same; `confusion` how often the labeler says each class (columns) of items of
    each true class (rows).
    """

    skill: float | None = None
    low: float | None = None
    high: float | None = None
    drifting: bool = False
    clone_of: str | None = None
    family: tuple[str, ...] = ()
    agreement: float | None = None
    confusion: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)


class Report(NamedTuple):
    """The skills of labelers, and who shares errors, a sentence each (`Auto.relations_`)."""

    skills: dict[str, Skill]
    relations: tuple[str, ...] = ()


class Skills:
    """The latest report of each stream."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: dict[str, tuple[float, Any, Report]] = {}
        self._busy = asyncio.Lock()

    def forget(self, stream: str) -> None:
        """Drop the report of a deleted stream."""
        self._kept.pop(stream, None)

    def latest(self, live: LiveStream) -> dict[str, Skill]:
        """The latest report, however old; a newer one is computed beside it, for the next time."""
        if not self._busy.locked():
            self._runtime.spawn(self._refresh(live))
        return self._last(live).skills

    def relations(self, live: LiveStream) -> tuple[str, ...]:
        """Who shares errors, by the latest report, a sentence each."""
        return self._last(live).relations

    def _last(self, live: LiveStream) -> Report:
        return self._kept[live.name][2] if live.name in self._kept else Report({})

    async def _refresh(self, live: LiveStream) -> None:
        with contextlib.suppress(VenireError):  # the store is down
            await self.of(live)

    async def of(self, live: LiveStream) -> dict[str, Skill]:
        """The skills of a stream's labelers."""
        async with self._busy:
            now, labels = self._runtime.clock.monotonic(), live.statistics.labels
            labels += live.checks.gold + live.checks.corrected
            classes, families = live.settings.classes, live.settings.families
            at, by, report = self._kept.get(live.name, (-CACHE_SECONDS, (0, {}), Report({})))
            if now - at >= CACHE_SECONDS and by != (labels, families):
                given = self._runtime.storage, live.name, classes, families
                report = await self._runtime.threads.compute(_measured, *given)
                self._kept[live.name] = now, (labels, families), report
            return report.skills


def _measured(
    storage: Storage, stream: str, classes: tuple[str, ...], families: Families
) -> Report:
    labels = storage.recent_labels(stream, 0.0, limit=LABELS)
    gold = storage.gold_of(stream, {row.item for row in labels})
    return measure(labels, classes, gold, families)


def measure(
    labels: list[LabelRow],
    classes: tuple[str, ...],
    gold: dict[str, str] | None = None,
    families: Families | None = None,
) -> Report:
    """Skills, 90 % intervals, drift, clones and families by labels, newest first, and gold.

    Items with one label and no gold say nothing about a skill. Fitted with the others they move it,
    and with gold their number makes its interval narrow where it is wrong.
    """
    rows = [(row.item, row.labeler, row.said) for row in reversed(labels)]
    names, agreed = {row[1] for row in rows}, agreements(rows)
    counts = Counter(row[0] for row in rows)
    telling = [row for row in rows if counts[row[0]] > 1 or (gold and row[0] in gold)]
    if len(telling) < MIN_LABELS or len({row[1] for row in telling}) < 3:
        return Report({name: Skill(agreement=share) for name, share in agreed.items()})
    table = LabelTable.from_rows(telling, classes=classes)
    fitted = Auto(families, threads=1).fit(table, gold or None)
    alike = [tuple(map(str, group.members)) for group in fitted.clones_.groups]
    clones = {name: group[0] for group in alike for name in group[1:]}
    kin = [tuple(map(str, group.members)) for group in fitted.families_]
    family = {name: tuple(x for x in group if x != name) for group in kin for name in group}
    own = [row for row in rows if row[1] not in clones]  # copies add no evidence
    spans, drifting = _spans(fitted), _drifting(own, classes)
    learned = _confusions(fitted, Counter(row[1] for row in telling))
    found = {
        name: Skill(
            *spans.get(name, (None, None, None)),
            drifting=clones.get(name, name) in drifting,
            clone_of=clones.get(name),
            family=family.get(name, ()),
            agreement=agreed.get(name),
            confusion=learned.get(name),
        )
        for name in sorted(names)
    }
    return Report(found, fitted.relations_)


def agreements(rows: Iterable[tuple[str, str, str]]) -> dict[str, float]:
    """How often another labeler of an item says the same, by labeler; of those with others.

    >>> rows = [("a", "ann", "yes"), ("a", "bob", "yes"), ("a", "cat", "no"), ("b", "ann", "no")]
    >>> agreements(rows)
    {'ann': 0.5, 'bob': 0.5, 'cat': 0.0}
    """
    said = defaultdict[str, dict[str, str]](dict)
    for item, labeler, label in rows:
        said[item][labeler] = label
    same, others = Counter[str](), Counter[str]()
    for labels in said.values():
        counts = Counter(labels.values())
        for labeler, label in labels.items():
            same[labeler] += counts[label] - 1
            others[labeler] += len(labels) - 1
    return {name: same[name] / n for name, n in others.items() if n}


def _confusions(fitted: Auto, labels: Counter[str]) -> dict[str, NDArray[np.float32]]:
    """The confusion matrices of the labelers with the most labels."""
    place = {str(name): m for m, name in enumerate(fitted.table_.labelers)}
    most = CELLS // len(fitted.table_.classes) ** 2
    kept = [name for name, _ in labels.most_common(most)]
    return {name: fitted.confusions_[place[name]].astype(np.float32) for name in kept}


def warm_up(classes: tuple[str, ...]) -> None:
    """Measure a few made-up labels, so that everything is compiled.

    >>> warm_up(("yes", "no"))
    """
    labels = [
        (f"item {n}", f"labeler {k}", classes[(n // 2 + (n % 9 == k)) % 2])  # seldom wrong, in turn
        for n in range(3 * MIN_LABELS)
        for k in range(3)
    ]
    rows = [
        LabelRow(
            stream="",
            item=item,
            labeler=labeler,
            said=said,
            at=0.0,
            slot=0,
            late=False,
            lead_seconds=None,
            source="",
        )
        for item, labeler, said in labels
    ]
    measure(rows, classes)


def _spans(fitted: Auto) -> dict[str, Span]:
    """Skill and interval of each labeler."""
    spans = zip(fitted.competences_.tolist(), implied_intervals(fitted).tolist(), strict=True)
    return {
        str(name): (number(skill), number(low), number(high))
        for name, (skill, (low, high)) in zip(fitted.table_.labelers, spans, strict=True)
    }


def _drifting(rows: list[tuple[str, str, str]], classes: tuple[str, ...]) -> set[str]:
    """The labelers with a drift alarm, by the labels in order of arrival."""
    stream = Streaming(classes=classes, repeats="first")
    for first in range(0, len(rows), 200):
        stream.partial_fit(LabelTable.from_rows(rows[first : first + 200], classes=classes))
    return {str(name) for name, drift in stream.drift_.items() if drift.alarms}
