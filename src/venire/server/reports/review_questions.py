"""Which verdicts a reviewer should see first: those whose truth tells most about who is right.

They are chosen as `venire ask` chooses (`venire.estimators.questions`), by the latest labels and
gold of a stream. Items that wait for an audit are left out, and so are their labels: what is hidden
from reviewers must not show in the order of the others either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from venire.estimators.questions import Question, questions
from venire.labels import LabelTable
from venire.model import ItemStatus

if TYPE_CHECKING:
    from venire.estimators.dependence import Families
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import ItemRow, Storage
    from venire.server.stream.live_stream import LiveStream

#: How many of the latest labels to look at, how many items to list, and seconds to keep a list.
LABELS: Final = 20_000
MOST: Final = 100
CACHE_SECONDS: Final = 30.0


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
            fresh = kept is not None and (kept.counts == counts or now - kept.at < CACHE_SECONDS)
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

    >>> reason_of(Question("post-1", "spam", "ok", 0.413))
    'it shows who is right, those who say spam or those who say ok'
    """
    return (
        f"it shows who is right, those who say {question.verdict} or those who say {question.other}"
    )
