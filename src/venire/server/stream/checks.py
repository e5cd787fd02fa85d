"""Accuracy audits of a stream: which verdicts were drawn for a trusted labeler, and what it said.

Each verdict is drawn with probability `audit_share` when its item leaves. The draw is a keyed hash
of the item's id, under a secret of the store: nobody who lacks the secret can foresee it. With
`audit_at_least`, verdicts of a class are drawn more often as long as few of them were: the first N
of a class with probability 1, the next N with 1/2, then 1/4, down to `audit_share`. That depends on
earlier draws alone, so every verdict is drawn with a probability that is known before the draw and
kept with it. One that the share alone would not have drawn is `extra`, and counts for its own class
only; the others are a random sample of all verdicts.

The bounds are computed from drawn verdicts alone, in the order in which they were drawn. One
without an answer before the last that has one counts as wrong in upper bounds: leaving out hard
ones gains nothing. Gold that somebody chose to send for other items never counts.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from venire.audits import ErrorBound
from venire.model import Exit, ItemStatus, Revision, Verdict
from venire.server.store import CheckRow, FollowRow, ItemRow, Storage

if TYPE_CHECKING:
    from venire.engine import Scheduler


def drawn(secret: bytes, stream: str, item: str, share: float) -> bool:
    """Whether the verdict on an item is drawn to be audited, with this probability.

    One that is drawn with some probability is drawn with every larger one too.

    >>> sum(drawn(b"secret", "posts", f"post-{i}", 0.02) for i in range(10_000))
    170
    """
    digest = hmac.digest(secret, f"{stream}\0{item}".encode(), hashlib.sha256)
    return int.from_bytes(digest[:8]) < share * 2.0**64


@dataclass
class Checks:
    """The verdicts of a stream that were drawn, in order, and which of them turned out wrong.

    `open_gold` are open items whose class is known already: their verdicts are not the labelers',
    and are not drawn. `gold` counts all gold of the stream, `corrected` what of it was corrected.
    `last_checked` is when the last of the checked verdicts was made. `questions` are the items to
    ask a trusted labeler about once no audit waits, those first that tell most.

    >>> checks = Checks(b"secret")
    >>> checks.load([CheckRow.load(["posts", 1, "a", 0.0, 0.02, "ok"])], {})
    >>> checks.due, checks.answer("a", "spam"), checks.due
    (['a'], True, [])
    >>> checks.bound().wrong
    1
    """

    secret: bytes = b""
    verdicts: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, bool] = field(default_factory=dict)
    open_gold: set[str] = field(default_factory=set)
    barred: set[tuple[str, str]] = field(default_factory=set)
    gold: int = 0
    corrected: int = 0
    waiting: dict[str, None] = field(default_factory=dict)
    extra: set[str] = field(default_factory=set)
    shares: dict[str, float] = field(default_factory=dict)
    drawn_of: Counter[str] = field(default_factory=Counter)
    times: dict[str, float] = field(default_factory=dict)
    last_checked: float | None = None
    questions: dict[str, None] = field(default_factory=dict)

    def load(self, rows: Iterable[CheckRow], gold: Mapping[str, str]) -> None:
        """Begin with what the store has: the draws, and the gold of these items."""
        for row in rows:
            self._note(row)
            if row.item in gold:
                self._judge(row.item, gold[row.item])
            else:
                self.waiting[row.item] = None

    def _note(self, row: CheckRow) -> None:
        self.verdicts[row.item] = row.verdict
        self.shares[row.item], self.times[row.item] = row.share, row.at
        self.drawn_of[row.verdict] += 1
        if row.extra:
            self.extra.add(row.item)

    def probability(self, verdict: str, share: float, at_least: int) -> float:
        """With what probability the next verdict of a class is drawn.

        >>> checks = Checks()
        >>> checks.drawn_of["spam"] = 50
        >>> checks.probability("spam", 0.02, 50), checks.probability("ok", 0.02, 50)
        (0.5, 1.0)
        """
        if not at_least:
            return share
        return max(share, float(0.5 ** min(60, self.drawn_of[verdict] // at_least)))

    def draw(
        self,
        stream: str,
        item: str,
        verdict: str | None,
        share: float,
        at: float,
        at_least: int = 0,
    ) -> list[CheckRow]:
        """An item left: the row of its audit, if it is drawn."""
        known = item in self.open_gold
        self.open_gold.discard(item)
        if known or verdict is None:
            return []
        chance = self.probability(verdict, share, at_least)
        if not chance or not drawn(self.secret, stream, item, chance):
            return []
        extra = not drawn(self.secret, stream, item, share)
        row = CheckRow(
            stream=stream,
            n=len(self.verdicts) + 1,
            item=item,
            at=at,
            share=chance,
            verdict=verdict,
            extra=extra,
        )
        self._note(row)
        self.waiting[item] = None
        return [row]

    def answer(self, item: str, label: str) -> bool:
        """The class of an item is known; whether it had been drawn."""
        self.gold += 1
        self.questions.pop(item, None)
        if item not in self.waiting:
            return False
        del self.waiting[item]
        self._judge(item, label)
        return True

    def _judge(self, item: str, label: str) -> None:
        """A drawn verdict was checked; the last of those by when it left."""
        self.wrong[item] = label != self.verdicts[item]
        at = self.times[item]
        self.last_checked = at if self.last_checked is None else max(self.last_checked, at)

    def correct(self, item: str, label: str) -> None:
        """The gold of an item was wrong: it is this."""
        self.corrected += 1
        if item in self.wrong:
            self.wrong[item] = label != self.verdicts[item]

    @property
    def due(self) -> list[str]:
        """The items that wait for a trusted labeler, in the order in which they were drawn."""
        return list(self.waiting)

    def bound(self, level: float = 0.95, verdict: str | None = None) -> ErrorBound:
        """The bound on the rate of errors; with `verdict`, of the verdicts that say it.

        What was drawn for its class counts only there.
        """
        last = max((n for n, item in enumerate(self.verdicts) if item in self.wrong), default=-1)
        counts = [0, 0, 0]
        for n, (item, said) in enumerate(self.verdicts.items()):
            if n <= last and (item not in self.extra if verdict is None else verdict == said):
                counts[0] += 1
                counts[1] += self.wrong.get(item, False)
                counts[2] += item not in self.wrong
        return _bound(level, *counts)


@lru_cache(1000)
def _bound(level: float, audited: int, wrong: int, skipped: int) -> ErrorBound:
    return ErrorBound(level, None, audited, wrong, skipped)


class SentBack(NamedTuple):
    """An item that waits for its follow-up: that, the verdict of now, and by how many labels."""

    follow_up: str
    verdict: Verdict
    labels: int


class FollowUps:
    """The follow-ups of a stream: what each follows, and what waits for them.

    >>> from venire.engine import Scheduler
    >>> from venire import Labeler
    >>> waiting = FollowUps()
    >>> waiting.send("post-1~2", "post-1", Verdict("spam", 0.6), 2)
    >>> waiting.leave(Exit("post-1~2", 0, 5, 3, Verdict("ok", 0.9), "confident"))
    >>> engine = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
    >>> waiting.settle(engine), engine.log[-1].revision.verdict.label
    (['post-1~2'], 'ok')
    """

    def __init__(self) -> None:
        self.original: dict[str, str] = {}  # of each follow-up, also of those that have left
        self.latest: dict[str, str] = {}  # the last follow-up of each original
        self.waiting: dict[str, SentBack] = {}  # by the original
        self.left: list[tuple[str, Verdict, int]] = []  # follow-ups whose originals do not know

    def send(self, follow_up: str, original: str, verdict: Verdict, labels: int) -> None:
        """An item is sent back."""
        self.original[follow_up], self.latest[original] = original, follow_up
        self.waiting[original] = SentBack(follow_up, verdict, labels)

    def leave(self, exit: Exit) -> None:
        """An item has left, with a verdict or without; it may be a follow-up."""
        if exit.item in self.original:
            self.left.append((exit.item, exit.verdict, exit.labels))

    def revise(self, revision: Revision) -> None:
        """The verdict of an item was revised otherwise."""
        sent = self.waiting.get(revision.item)
        if sent is not None:
            self.waiting[revision.item] = SentBack(
                sent.follow_up, revision.verdict, revision.labels
            )

    def decided(self, item: str) -> None:
        """The class of an item is known: it waits for nothing."""
        self.waiting.pop(item, None)

    def settle(self, engine: Scheduler) -> list[str]:
        """Revise the originals of the follow-ups that left; those follow-ups."""
        done = []
        while self.left:
            item, verdict, labels = self.left.pop(0)
            sent = self.waiting.pop(self.original[item], None)
            if sent is not None and _changes(sent.verdict, verdict):
                engine.revise(self.original[item], verdict, sent.verdict, sent.labels + labels)
            done.append(item)
        return done

    def load(self, storage: Storage, stream: str, rows: list[FollowRow]) -> None:
        """Begin with what the store has."""
        for row in sorted(rows, key=lambda row: row.at):
            self.original[row.item], self.latest[row.original] = row.original, row.item
            if row.settled_at is not None:
                continue
            first, again = (storage.item(stream, x) for x in (row.original, row.item))
            if first is None or again is None or storage.gold_of(stream, [row.original]):
                continue
            self.waiting[row.original] = SentBack(row.item, *verdict_now(storage, first))
            if again.status != ItemStatus.OPEN:  # the server was ended before it was settled
                said = Verdict(again.verdict, again.confidence or 0.0)
                self.left.append((row.item, said, again.labels or 0))


def verdict_now(storage: Storage, row: ItemRow) -> tuple[Verdict, int]:
    """The verdict of an item that has left, by its last revision, and by how many labels."""
    for revision in storage.revisions_of(row.stream, row.id)[-1:]:
        return Verdict(revision.verdict, revision.confidence), revision.labels
    return Verdict(row.verdict, row.confidence or 0.0), row.labels or 0


def _changes(before: Verdict, now: Verdict) -> bool:
    """Whether the verdict of a follow-up takes the place of the one before."""
    if now.label is None or now.label == before.label:
        return False
    return before.label is None or now.confidence > before.confidence
