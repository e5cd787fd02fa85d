"""What a stream checks: audits of its verdicts, gold, follow-ups, and labelers asked again.

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

A labeler who is asked again is given an item that it labelled a while ago and that has left since,
as one that is new. Its answer is kept beside its label and never reaches the engine's beliefs: all
of its agreement with itself, and nothing of the verdict. Whether the next item of a labeler is such
a one is drawn by a keyed hash of how many it was handed, so that nobody can foresee it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.audits import ErrorBound
from venire.errors import Conflict
from venire.model import Exit, ItemStatus, Revision, StreamStatus, Verdict
from venire.server.actors import Actor, audit_row
from venire.server.messages import Answer, GoldIn, Outcome
from venire.server.store import CheckRow, FollowRow, GoldRow, ItemRow, LabelRow, Storage
from venire.server.store.contents import compact
from venire.server.stream.change_batch import Batch
from venire.server.stream.labels import ACCEPTED, EXISTS, end_lease, refused
from venire.server.stream.leases import REMEMBERED, HeldLease, RecentDict

if TYPE_CHECKING:
    from venire.engine import Scheduler
    from venire.server.stream.live_stream import LiveStream, Moment


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


#: How long ago a labeler labelled what it is asked about again, in slots, if nobody says.
AFTER_SLOTS: Final = 60

#: Of how many of its latest such labels one is drawn.
LATEST: Final = 200


class Repeats:
    """What is known of the labelers of a stream who are to be asked again.

    `handed` counts what each was handed; `ready` is the label that its labeler repeats next, and
    `looked` for which of its items, in which slot, that was looked for. `said` are the latest
    answers, and `answers` counts all of them.
    """

    def __init__(self) -> None:
        self.handed: Counter[str] = Counter()
        self.ready: dict[str, LabelRow] = {}
        self.looked: dict[str, tuple[int, int]] = {}
        self.said: RecentDict[tuple[str, str], str] = RecentDict(REMEMBERED)
        self.answers = 0

    def number(self, live: LiveStream, labeler: str) -> int:
        """How many items the labeler was handed before the next."""
        record = live.labelers.get(labeler)
        if labeler not in self.handed and record is not None:
            self.handed[labeler] = record.labels + record.repeats + record.unsure
        return self.handed[labeler]

    def is_due(self, live: LiveStream, labeler: str) -> bool:
        """Whether something must be found that the labeler may be asked again now."""
        share = live.settings.repeat_share
        if not share or live.status != StreamStatus.RUNNING or labeler in self.ready:
            return False
        number = self.number(live, labeler)
        if live.leases.again[labeler] or self.looked.get(labeler) == (number, live.engine.slot):
            return False
        return labeler not in live.trusted and self._drawn(live, labeler, number, share)

    @staticmethod
    def _drawn(live: LiveStream, labeler: str, number: int, share: float) -> bool:
        return drawn(live.checks.secret, f"{live.name}\0again", f"{labeler}\0{number}", share)

    def found(self, live: LiveStream, labeler: str, rows: Sequence[LabelRow]) -> None:
        """These labels could be repeated; one is drawn among them."""
        number, barred = self.number(live, labeler), live.checks.barred
        rows = [x for x in rows if (x.item, labeler) not in barred and self.is_free(live, x)]
        self.looked[labeler] = number, live.engine.slot
        if rows:
            told = f"{live.name}\0{labeler}\0{number}".encode()
            digest = hmac.digest(live.checks.secret, told, hashlib.sha256)
            self.ready[labeler] = rows[int.from_bytes(digest) % len(rows)]

    def is_free(self, live: LiveStream, row: LabelRow) -> bool:
        """Whether a label can be repeated: its item has left, and nobody holds it for that."""
        pair = row.item, row.labeler
        return (
            row.item not in live.open
            and live.leases.of_pair(*pair) is None
            and pair not in self.said
        )


CORRECTED = Outcome("corrected")


class KnownGold(NamedTuple):
    """What the store knows of items: their gold, and how those left that have left."""

    gold: dict[str, GoldRow]
    left: dict[str, tuple[Verdict, int]]
    withdrawn: set[str]
    asked: set[str]
    archived: set[str]

    @classmethod
    def nothing(cls) -> KnownGold:
        return cls({}, {}, set(), set(), set())


def unknown_gold(live: LiveStream, items: Iterable[str], known: KnownGold) -> list[str]:
    """The items about which the store must be asked: first of all, and again once they left."""
    gone = known.left.keys() | known.withdrawn | known.archived
    return [
        item
        for item in items
        if item not in known.asked or (item in live.exited and item not in gone)
    ]


def known_gold(storage: Storage, stream: str, items: Sequence[str]) -> KnownGold:
    """Look items up in the store."""
    gold = {row.item: row for row in storage.gold_among(stream, items)}
    known = KnownGold(gold, {}, set(), set(items), set())
    for item in items:
        row = storage.item(stream, item)
        if row is None and storage.archived(stream, [item]):
            known.archived.add(item)
        if row is not None and row.status == ItemStatus.WITHDRAWN:
            known.withdrawn.add(item)
        elif row is not None and row.status == ItemStatus.LEFT:
            known.left[item] = verdict_now(storage, row)
    return known


def take_gold(
    live: LiveStream,
    rows: Sequence[GoldIn],
    known: KnownGold,
    source: str,
    actor: Actor | str,
    batch: Batch,
    moment: Moment,
    correct: bool = False,
    note: str | None = None,
    labeler: str | None = None,
) -> list[Outcome]:
    """Take gold; the outcome of each. What was said before is changed only to `correct` it.

    `labeler` is the trusted labeler who says it, if it is one.
    """
    outcomes, who = [], Actor.of(actor)
    for row in rows:
        outcome = _classify(live, row, known, correct)
        if outcome in (ACCEPTED, CORRECTED):
            said = GoldRow(
                stream=live.name,
                item=row.item,
                label=row.label,
                at=moment.wall,
                source=source,
                actor=str(who),
                key=who.key,
            )
            wrong = known.gold.get(row.item)
            if wrong is not None:
                said = said._replace(earlier=_earlier(wrong))
            before, labels = known.left.get(row.item, (None, 0))
            corrects = None if wrong is None else wrong.label
            if not live.engine.gold(
                row.item, row.label, before, labels, corrects=corrects, warn=False
            ):
                outcome = _not_learned(outcome, row.item)
            if row.item in live.open and labeler is not None:
                live.heard(row.item, labeler, row.label)
            live.collect(batch, moment)
            if wrong is None:
                _add(live, said, batch, moment)
            else:
                batch.corrections.append(said)
                told = {
                    "before": wrong.label,
                    "label": said.label,
                    **({"note": note} if note else {}),
                }
                entry = audit_row(who, moment.wall, "gold.correct", live.name, said.item, **told)
                batch.audit.append(entry)
                live.checks.correct(row.item, row.label)
            known.gold[row.item] = said
            if row.item in known.left:
                known.left[row.item] = Verdict(row.label, 1.0), labels
        outcomes.append(outcome)
    return outcomes


def _add(live: LiveStream, said: GoldRow, batch: Batch, moment: Moment) -> None:
    """Gold of an item that had none."""
    batch.gold.append(said)
    live.checks.answer(said.item, said.label)
    if said.item in live.open:
        live.checks.open_gold.add(said.item)
    again = live.follow_ups.latest.get(said.item)
    if again in live.open:  # nobody needs to label it any more
        live.withdraw(again, batch, moment)


def _earlier(wrong: GoldRow) -> str:
    """What was said before, and by whom, with what that had corrected."""
    return compact(
        [
            *json.loads(wrong.earlier or "[]"),
            [wrong.label, wrong.at, wrong.source, wrong.actor, wrong.key],
        ]
    )


def _not_learned(outcome: Outcome, item: str) -> Outcome:
    message = (
        f"item {item!r} left so long ago that its labels are no longer learned from: its verdict "
        "is the gold, but this teaches nothing about its labelers"
    )
    return Outcome(outcome.status, "not_learned", message)


def _classify(live: LiveStream, row: GoldIn, known: KnownGold, correct: bool) -> Outcome:
    item = row.item
    if row.label not in live.classes:
        classes = ", ".join(live.settings.classes)
        return refused("unknown_class", f"got {row.label!r}, expected one of: {classes}")
    if item in known.withdrawn:
        return refused("withdrawn", f"item {item!r} was withdrawn: it has no verdict")
    if item in known.archived:
        return refused("archived", f"item {item!r} is archived: its verdict stays as it is")
    if item not in live.open and item not in known.left:
        return refused("unknown_item", f"there is no item {item!r}")
    if item not in known.gold:
        return ACCEPTED
    before = known.gold[item].label
    if before == row.label or correct:
        return EXISTS if before == row.label else CORRECTED
    return refused(
        "changed",
        f"the gold of item {item!r} is {before!r}, got {row.label!r}: to correct it, send it "
        'again with correct=true, or with the box "correct what was said otherwise before" ticked',
    )


def answer_audit(
    live: LiveStream,
    lease: HeldLease,
    said: str,
    expired: bool,
    known: Mapping[str, GoldRow],
    batch: Batch,
    moment: Moment,
) -> Answer:
    """End the lease of an audit with its answer, which `take_gold` has taken."""
    if lease.item in known and known[lease.item].label != said:
        was = known[lease.item].label
        raise Conflict(f"item {lease.item!r} was audited as {was!r} meanwhile")
    made = end_lease(live, lease, said, batch, moment, expired=expired)
    lead = lease.lead(moment.now)
    if lead is not None:
        live.lead_times.add(lease.labeler, lead)
    live.labelers.touch(lease.labeler, moment.now).labels += 1
    return made
