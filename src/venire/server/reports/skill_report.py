"""Labelers' skills with intervals, drift, clones, and who shares errors.

Assignments follow the engine's own beliefs. What is reported here is computed beside it, from the
latest labels of the stream, in a thread, and cached for some seconds: skills, intervals, clones and
who shares errors by one fit of the same estimator (`Auto`), drift by its own test.

Here is also which verdicts a reviewer should see first, those whose truth tells most about who is
right, chosen as `venire ask` chooses (`venire.estimators.questions`). Items that wait for an audit
are left out, and so are their labels: what is hidden from reviewers must not show in the order of
the others either.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from venire.errors import VenireError
from venire.labels import LabelTable
from venire.model import ItemStatus
from venire.server.reports.event_json import number
from venire.server.store import Storage

if TYPE_CHECKING:
    from venire.estimators.auto import Auto
    from venire.estimators.dependence import Families
    from venire.estimators.questions import Question
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import ItemRow
    from venire.server.stream.live_stream import LiveStream


#: How many of the latest labels to use.
LABELS: Final = 20_000

#: Seconds to cache a report; then it is computed again if there are new labels.
CACHE_SECONDS: Final = 10.0

Span = tuple[float | None, float | None, float | None]

#: An item, who labelled it, and what was said.
Said = tuple[str, str, str]

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
    rows = [(row.item, row.labeler, row.said) for row in reversed(labels)]
    return measure(rows, classes, gold, families)


def measure(
    rows: Sequence[Said],
    classes: tuple[str, ...],
    gold: dict[str, str] | None = None,
    families: Families | None = None,
) -> Report:
    """Skills, 90 % intervals, drift, clones and families by labels, in their order, and gold.

    Items with one label and no gold say nothing about a skill. Fitted with the others they move it,
    and with gold their number makes its interval narrow where it is wrong.
    """
    from venire.estimators.auto import Auto

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


def agreements(rows: Iterable[Said]) -> dict[str, float]:
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
    rows = [
        (f"item {n}", f"labeler {k}", classes[(n // 2 + (n % 9 == k)) % 2])  # seldom wrong, in turn
        for n in range(3 * MIN_LABELS)
        for k in range(3)
    ]
    measure(rows, classes)


def _spans(fitted: Auto) -> dict[str, Span]:
    from venire.estimators.intervals import implied_intervals

    spans = zip(fitted.competences_.tolist(), implied_intervals(fitted).tolist(), strict=True)
    return {
        str(name): (number(skill), number(low), number(high))
        for name, (skill, (low, high)) in zip(fitted.table_.labelers, spans, strict=True)
    }


def _drifting(rows: list[Said], classes: tuple[str, ...]) -> set[str]:
    """The labelers with a drift alarm, by the labels in order of arrival."""
    from venire.estimators.streaming.estimator import Streaming

    stream = Streaming(classes=classes, repeats="first")
    for first in range(0, len(rows), 200):
        stream.partial_fit(LabelTable.from_rows(rows[first : first + 200], classes=classes))
    return {str(name) for name, drift in stream.drift_.items() if drift.alarms}


#: How many items to ask about are listed, and seconds to keep a list.
MOST: Final = 100
LIST_SECONDS: Final = 30.0


class QuestionList(NamedTuple):
    """What to ask, the most telling first; what the answers so far say, and whether more pay."""

    asked: tuple[Question, ...] = ()
    words: tuple[str, ...] = ()
    pays: bool = False


class _Kept(NamedTuple):
    """A list, when and by how many labels and gold it was made, and which audits were due then."""

    at: float
    counts: tuple[int, ...]
    due: frozenset[str]
    questions: QuestionList


class ReviewQuestions:
    """The list of each stream; made anew when labels or gold came, at most every half minute."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: WeakKeyDictionary[LiveStream, _Kept] = WeakKeyDictionary()
        self._busy = asyncio.Lock()

    async def of(self, live: LiveStream) -> QuestionList:
        """The list of a stream; items that got gold after it was made are still in it."""
        async with self._busy:
            runtime, checks = self._runtime, live.checks
            counts = live.statistics.labels, checks.gold, checks.corrected
            now, due = runtime.clock.monotonic(), frozenset(checks.waiting)
            kept = self._kept.get(live)
            fresh = kept is not None and (kept.counts == counts or now - kept.at < LIST_SECONDS)
            if kept is not None and fresh and due <= kept.due:
                return kept.questions
            settings, drawn = live.settings, frozenset(checks.verdicts)
            given = live.name, settings.classes, due, drawn, settings.families
            await runtime.flush()
            found = await runtime.threads.compute(asked_of, runtime.storage, *given)
            self._kept[live] = _Kept(now, counts, due, found)
            return found

    async def list_for_experts(self, live: LiveStream) -> None:
        """Keep in the stream what to ask trusted labelers about, if more answers pay."""
        found, read = await self.of(live), self._runtime.read_committed
        names = [str(one.item) for one in found.asked] if found.pays else []
        left = await read(rows_of, self._runtime.storage, live.name, names)
        hidden = live.follow_ups.latest, live.checks.waiting
        shown = (name for name in names if name in left and not any(name in x for x in hidden))
        live.checks.questions = dict.fromkeys(shown)


def asked_of(
    storage: Storage,
    stream: str,
    classes: Sequence[str],
    due: frozenset[str],
    drawn: frozenset[str],
    families: Families | None = None,
) -> QuestionList:
    """The items to ask about, without those that are due or open."""
    from venire.estimators.questions import questions

    labels = storage.recent_labels(stream, 0.0, limit=LABELS)
    rows = [(row.item, row.labeler, row.said) for row in labels if row.item not in due]
    if len({row[1] for row in rows}) < 2:
        return QuestionList()
    gold = storage.gold_of(stream, {row[0] for row in rows})
    table = LabelTable.from_rows(rows, classes=tuple(classes))
    chosen = frozenset(gold) - drawn
    found = questions(table, MOST, gold or None, asked=chosen, families=families)
    return QuestionList(found.asked, found.words, found.pays)


def rows_of(storage: Storage, stream: str, items: Sequence[str]) -> dict[str, ItemRow]:
    """Those of the items that left with a verdict and have no gold."""
    gold = storage.gold_of(stream, items)
    rows = (storage.item(stream, item) for item in items if item not in gold)
    return {
        row.id: row
        for row in rows
        if row is not None and row.status == ItemStatus.LEFT and row.verdict is not None
    }


def reason_of(question: Question) -> str:
    """Why an item is worth a look.

    >>> from venire.estimators.questions import Question
    >>> reason_of(Question("post-1", "spam", "ok", 0.413))
    'it shows who is right, those who say spam or those who say ok'
    """
    return (
        f"it shows who is right, those who say {question.verdict} or those who say {question.other}"
    )
