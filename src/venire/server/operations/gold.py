"""Gold, accuracy audits and reviews: what trusted people say of items, and what waits for them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.audits.intervals import check_level
from venire.errors import Archived, Conflict, InputError, NotFound, StateError
from venire.model import ItemStatus, Verdict
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.admin_messages import (
    Kind,
    Order,
    Reviewed,
    ReviewItem,
    ReviewsPage,
    SentBackView,
)
from venire.server.messages import Answer, AuditsView, BoundView, GoldIn, GoldView, Outcome
from venire.server.operations import Operations
from venire.server.operations.items import check_room, excerpt_of, opened, sealed
from venire.server.reports.event_json import gold_view, label_view
from venire.server.reports.skill_report import QuestionList, reason_of, rows_of
from venire.server.reports.trends import guarantee_of
from venire.server.runtime.ticker import chunks, committed, run_chunk
from venire.server.settings import LONGEST_ID
from venire.server.store import ERASED, FollowRow, Insert, ItemRow, Storage
from venire.server.store.contents import compact, digest_of
from venire.server.store.search import EXCERPT
from venire.server.stream.change_batch import Batch
from venire.server.stream.checks import (
    KnownGold,
    answer_audit,
    known_gold,
    take_gold,
    unknown_gold,
    verdict_now,
)

if TYPE_CHECKING:
    from venire.audits import ErrorBound
    from venire.server.messages import LabelView
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.leases import HeldLease
    from venire.server.stream.live_stream import LiveStream, Moment

#: How many of the verdicts that are due are listed.
MOST_DUE: Final = 1000

_ERRORS: Final[dict[str, type[Exception]]] = {
    "unknown_class": InputError,
    "changed": Conflict,
    "archived": Archived,
}


class GoldOperations(Operations):
    """Takes gold, and states the bounds that follow from drawn audits."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._locks: dict[str, asyncio.Lock] = {}

    async def audits(self, stream: str, level: float = 0.95, list_due: bool = True) -> AuditsView:
        """What the audits say of the stream's rate of errors, at all times."""
        check_level(level)
        live = await self.runtime.live_stream(stream)
        checks = live.checks
        view = AuditsView(
            stream=stream,
            share=live.settings.audit_share,
            level=level,
            drawn=len(checks.verdicts),
            due=len(checks.waiting),
            gold=checks.gold,
            overall=_view(checks.bound(level)),
            classes={name: _view(checks.bound(level, name)) for name in live.settings.classes},
            due_items=tuple(checks.due[:MOST_DUE]) if list_due else None,
        )
        await self.runtime.flush()
        return view

    async def is_trusted(self, stream: str, labeler: str) -> bool:
        """Whether what the labeler says is gold."""
        return labeler in (await self.runtime.live_stream(stream)).trusted

    async def add_gold(
        self,
        stream: str,
        rows: Sequence[GoldIn],
        actor: Actor | str = PROGRAM,
        correct: bool = False,
        labeler: str | None = None,
    ) -> list[Outcome]:
        """Add gold of any items; the outcome of each. The same again changes nothing.

        `labeler` is the trusted labeler who says it, if it is one.

        The verdict of an item that has left becomes the gold, as a revision. Other gold for the
        same item is refused, or with `correct` takes the place of what was said before.
        """
        runtime = self.runtime
        self._check_batch(len(rows), "gold labels")
        outcomes: list[Outcome] = []
        commits: list[asyncio.Future[None]] = []
        async with self._lock(stream):
            known = KnownGold.nothing()
            async for _, part in chunks(runtime, stream, len(rows)):
                live, known = await self._look_up_gold(stream, rows[part], known)
                batch, moment = Batch(Actor.of(actor).key), runtime.moment()
                given = live, rows[part], known, actor, batch, moment
                step = partial(_add, *given, correct, labeler)
                outcomes += await run_chunk(runtime, live, batch, part, step, commits)
            await committed(commits)
        return outcomes

    async def _answer_gold(
        self, stream: str, lease: HeldLease, ended: bool, said: str, key: str | None
    ) -> Answer:
        """A trusted labeler's answer to an audit that it was leased, or to what it was asked."""
        row, who = GoldIn(lease.item, said), Actor(lease.labeler, key)
        async with self._lock(stream):
            live, known = await self._look_up_gold(stream, [row], KnownGold.nothing())
            batch, moment = Batch(key), self.runtime.moment()
            source = "audit" if lease.item in live.checks.verdicts else "asked"
            outcome = take_gold(live, [row], known, source, who, batch, moment)[0]
            await self._check_taken(outcome)
            made = answer_audit(live, lease, said, ended, known.gold, batch, moment)
            await self.runtime.commit(live, batch)
        return made

    async def review(
        self,
        stream: str,
        item: str,
        label: str,
        note: str | None,
        actor: Actor | str,
        correct: bool = False,
    ) -> Reviewed:
        """Confirm or override the verdict of an item that has left; the label becomes gold.

        What was judged otherwise before stays, unless this is to `correct` it.
        """
        row = GoldIn(item, label)
        async with self._lock(stream):
            live, known = await self._look_up_gold(stream, [row], KnownGold.nothing())
            original = live.follow_ups.original.get(item)
            if original is not None:  # what is said of the one holds for the other
                live, known = await self._look_up_gold(stream, [GoldIn(original, label)], known)
            if item in live.open:
                raise StateError(
                    f"item {item!r} has not left, so there is no verdict to review: wait, or send "
                    "gold, with which it will leave"
                )
            batch, moment = Batch(Actor.of(actor).key), self.runtime.moment()
            verdict = known.left[item][0] if item in known.left else None
            how = actor, batch, moment, correct, note
            outcome = take_gold(live, [row], known, "review", *how)[0]
            await self._check_taken(outcome)
            before = None if verdict is None or verdict.label is None else str(verdict.label)
            if outcome.status == "accepted":
                told = {"verdict": before, "label": label, **({"note": note} if note else {})}
                name, at = "item.review", moment.wall
                batch.audit.append(audit_row(actor, at, name, stream, item, **told))
            if original is not None and outcome.status in ("accepted", "corrected"):
                take_gold(live, [GoldIn(original, label)], known, "review", *how)
            await self.runtime.commit(live, batch)
        if outcome.status == "corrected":
            return Reviewed(item, "corrected", before, label)
        return Reviewed(item, "confirmed" if before == label else "overridden", before, label)

    async def gold(self, stream: str, after: str | None, limit: int) -> list[GoldView]:
        """Gold by item, from the one behind `after`."""
        await self.runtime.live_stream(stream)
        read = self.runtime.storage.gold
        rows = await self.runtime.read_committed(read, stream, after, limit)
        return [gold_view(row) for row in rows]

    async def _check_taken(self, outcome: Outcome) -> None:
        """Raise why something was refused, once the reason is on disk."""
        if outcome.status == "refused":
            await self.runtime.flush()
            raise _ERRORS.get(outcome.code or "", StateError)(outcome.message)

    def _lock(self, stream: str) -> asyncio.Lock:
        return self._locks.setdefault(stream, asyncio.Lock())

    async def _look_up_gold(
        self, stream: str, rows: Sequence[GoldIn], known: KnownGold
    ) -> tuple[LiveStream, KnownGold]:
        """What the store knows of the items, also of those that leave meanwhile."""
        runtime = self.runtime
        live = await runtime.writable(stream)
        while unclear := unknown_gold(live, (row.item for row in rows), known):
            more = await runtime.read_committed(known_gold, runtime.storage, stream, unclear)
            known = KnownGold(
                {**known.gold, **more.gold},
                {**known.left, **more.left},
                known.withdrawn | more.withdrawn,
                known.asked | more.asked,
                known.archived | more.archived,
            )
            live = await runtime.live_stream(stream)
        return live, known


def _add(
    live: LiveStream,
    rows: Sequence[GoldIn],
    known: KnownGold,
    actor: Actor | str,
    batch: Batch,
    moment: Moment,
    correct: bool,
    labeler: str | None,
) -> list[Outcome]:
    given = live, rows, known, "sent", actor, batch, moment
    outcomes = take_gold(*given, correct=correct, labeler=labeler)
    if batch.gold:
        subject = batch.gold[0].item if len(batch.gold) == 1 else None
        entry = audit_row(actor, moment.wall, "gold.add", live.name, subject, taken=len(batch.gold))
        batch.audit.append(entry)
    return outcomes


def _view(bound: ErrorBound) -> BoundView:
    low, high = bound.interval
    return BoundView(
        bound.audited, bound.wrong, bound.skipped, bound.estimate, bound.upper, low, high
    )


#: Seconds to look in one request; verdicts to look at before the clock is read again.
SEARCH_SECONDS: Final = 0.1
SCAN: Final = 500


class ReviewOperations(Operations):
    """Lists what is to be reviewed."""

    async def reviews(
        self,
        stream: str,
        kind: Kind | None = None,
        cursor: str | None = None,
        limit: int = 20,
        order: Order = "doubt",
    ) -> ReviewsPage:
        """A page of the verdicts that wait; of one kind, or of all.

        The least confident first, or with the order "telling" those whose truth tells most about
        who is right, as `venire ask` has them; of these there is one page.
        """
        live = await self.runtime.live_stream(stream)
        if order == "telling":
            return await self._most_telling(live, kind, limit)
        told = None if cursor is None else opened(live.checks.secret, cursor)
        place: tuple[float, int] | None = None if told is None else tuple(told)
        due = len(live.checks.waiting)
        found = (
            await self._audits(live, limit) if cursor is None and kind in (None, "audit") else []
        )
        end = kind == "audit"
        until = self.runtime.clock.monotonic() + SEARCH_SECONDS
        while not end and len(found) < limit:
            more, place = await self._doubts(live, kind, place, limit - len(found))
            found += more
            end = place is None
            if self.runtime.clock.monotonic() >= until:
                break
        return ReviewsPage(
            stream, due, tuple(found), None if end else sealed(live.checks.secret, place)
        )

    async def is_due(self, stream: str, item: str) -> bool:
        """Whether the verdict of an item waits for an audit."""
        return item in (await self.runtime.live_stream(stream)).checks.waiting

    async def due(self, stream: str) -> frozenset[str]:
        """The items whose verdicts wait for an audit."""
        return frozenset((await self.runtime.live_stream(stream)).checks.waiting)

    async def _audits(self, live: LiveStream, limit: int) -> list[ReviewItem]:
        """Audits, the earliest drawn first, without anything that could influence the answer."""
        due, storage = list(islice(live.checks.waiting, limit)), self.runtime.storage
        await self.runtime.flush()
        rows = [await self.runtime.read(storage.item, live.name, item) for item in due]
        return [
            ReviewItem(row.id, "audit", _shown(row), row.arrived_at, row.left_at)
            for row in rows
            if row is not None
        ]

    async def _most_telling(self, live: LiveStream, kind: Kind | None, limit: int) -> ReviewsPage:
        runtime, due = self.runtime, len(live.checks.waiting)
        found = await self._audits(live, limit) if kind in (None, "audit") else []
        questions = await self._questions.of(live) if kind != "audit" else QuestionList()
        names = [str(one.item) for one in questions.asked]
        rows = await runtime.read_committed(rows_of, runtime.storage, live.name, names)
        listed = list(rows.values())
        said = await runtime.read(_said, runtime.storage, live.name, listed)
        verdicts = await runtime.read(_verdicts, runtime.storage, listed)
        for one in questions.asked:
            row = rows.get(str(one.item))
            waits = row is not None and row.id not in live.checks.waiting
            if row is None or not waits or row.id in live.follow_ups.latest:
                continue
            item = _review_item(row, said[row.id], verdicts[row.id])
            item = replace(item, reason=reason_of(one))
            if kind in (None, item.kind) and len(found) < limit:
                found.append(item)
        return ReviewsPage(live.name, due, tuple(found), None, questions.words)

    async def _doubts(
        self, live: LiveStream, kind: Kind | None, place: tuple[float, int] | None, limit: int
    ) -> tuple[list[ReviewItem], tuple[float, int] | None]:
        """The next verdicts by confidence, the lowest first, and where to go on.

        Those that are guaranteed need no review.
        """
        runtime = self.runtime
        await runtime.flush()
        scan = SCAN if kind is not None else limit
        rows = await runtime.read(runtime.storage.doubtful, live.name, place, scan)
        said = await runtime.read(_said, runtime.storage, live.name, rows)
        verdicts = await runtime.read(_verdicts, runtime.storage, rows)
        proven = await guarantee_of(runtime, live)
        found: list[ReviewItem] = []
        for row in rows:
            place = row.confidence or 0.0, row.exit_n or 0
            if proven is not None and proven.marks(row.exit_n, row.confidence):
                continue
            item = _review_item(row, said[row.id], verdicts[row.id])
            if row.id not in live.follow_ups.latest and kind in (None, item.kind):
                found.append(item)
            if len(found) == limit:
                return found, place
        return found, place if len(rows) == scan else None


class _Said(NamedTuple):
    """How often each class was said of an item before it left, and the labels that say why."""

    votes: Counter[str]
    reasons: list[LabelView]


def _said(storage: Storage, stream: str, rows: list[ItemRow]) -> dict[str, _Said]:
    """What was said of each item."""
    found = {row.id: _Said(Counter(), []) for row in rows}
    for label in storage.labels_among(stream, found):
        if not label.late:
            found[label.item].votes[label.said] += 1
        if label.rationale is not None:
            found[label.item].reasons.append(label_view(label))
    return found


def _shown(row: ItemRow) -> str:
    return excerpt_of(row.payload, EXCERPT)


def _verdicts(storage: Storage, rows: list[ItemRow]) -> dict[str, Verdict]:
    """The verdict of each item as it is now, which may have been revised."""
    return {row.id: verdict_now(storage, row)[0] for row in rows}


def _review_item(row: ItemRow, said: _Said, verdict: Verdict) -> ReviewItem:
    disputed = any(name != verdict.label for name in said.votes)
    return ReviewItem(
        item=row.id,
        kind="disputed" if disputed else "doubtful",
        excerpt=_shown(row),
        arrived_at=row.arrived_at,
        left_at=row.left_at,
        verdict=None if verdict.label is None else str(verdict.label),
        confidence=verdict.confidence,
        votes=dict(said.votes.most_common()),
        rationales=tuple(sorted(said.reasons, key=lambda why: why.labeler)),
    )


#: The highest confidence asked for by default.
SUREST: Final = 0.99


class SendBackOperations(Operations):
    """Sends items back."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._sending_back = asyncio.Lock()  # of two that are the same, the second finds the first

    async def send_back(
        self,
        stream: str,
        item: str,
        actor: Actor | str,
        min_confidence: float | None = None,
        note: str | None = None,
    ) -> SentBackView:
        """Send an item back: others label it again, until they are surer than it left with.

        If it waits for that already, nothing changes.
        """
        if min_confidence is not None and not 0 < min_confidence <= 1:
            raise InputError(f"got min_confidence {min_confidence!r}, expected a probability")
        runtime, storage = self.runtime, self.runtime.storage
        async with self._sending_back:
            await runtime.writable(stream)
            row = await runtime.read_committed(storage.item, stream, item)
            if row is None:
                raise NotFound("item", item)
            verdict, labels = await runtime.read(verdict_now, storage, row)
            gold, said, name = await runtime.read(_look_up, storage, stream, item)
            live = await runtime.writable(stream)
            sent = live.follow_ups.waiting.get(item)
            if sent is not None:
                return SentBackView(stream, item, sent.follow_up)
            _check(live, row, gold)
            check_room(live, 1, self.settings.max_open_items)
            again = _again(live, row, name, said, _wanted(live, verdict, min_confidence))
            batch, moment = Batch(Actor.of(actor).key), runtime.moment()
            again = again._replace(arrived_at=moment.wall, key=batch.key)
            live.follow_ups.send(again.id, item, verdict, labels)
            live.arrive([again], batch, moment)
            who = Actor.of(actor)
            link = FollowRow(
                stream=stream,
                item=again.id,
                original=item,
                at=moment.wall,
                actor=str(who),
                key=who.key,
            )
            batch.last.append(Insert([link]))
            told = {
                "verdict": verdict.label,
                "follow_up": again.id,
                **({"note": note} if note else {}),
            }
            batch.audit.append(
                audit_row(actor, moment.wall, "item.send_back", stream, item, **told)
            )
            await runtime.commit(live, batch)
        return SentBackView(stream, item, again.id, again.min_confidence)


def _look_up(storage: Storage, stream: str, item: str) -> tuple[str | None, set[str], str]:
    """The gold of an item, who has labelled it, and a new name for it."""
    n, known = 2, storage.known_ids(stream, [f"{item}~{n}" for n in range(2, 1000)])
    while f"{item}~{n}" in known:
        n += 1
    said = {label.labeler for label in storage.labels_of(stream, item)}
    return storage.gold_of(stream, [item]).get(item), said, f"{item}~{n}"


def _check(live: LiveStream, row: ItemRow, gold: str | None) -> None:
    """Refuse what cannot be sent back."""
    why = None
    if row.id in live.open or row.status == ItemStatus.OPEN:
        why = "has not left: it gets more labels as it is"
    elif row.status == ItemStatus.WITHDRAWN:
        why = "was withdrawn: send it anew"
    elif row.digest == ERASED:
        why = "was erased: there is nothing to label"
    elif gold is not None:
        why = f"has gold, {gold!r}, which is final"
    elif row.id in live.checks.waiting:
        why = "was drawn to be audited: judge it"
    elif row.id in live.follow_ups.original:
        why = "was sent back before: judge it, or send its original back again"
    if why is not None:
        raise StateError(f"item {row.id!r} {why}")


def _wanted(live: LiveStream, verdict: Verdict, asked: float | None) -> float:
    """The confidence that the new verdict must reach: half of the doubt, if nobody says."""
    half = min(SUREST, 1 - (1 - verdict.confidence) / 2)
    return max(half, live.settings.min_confidence or 0.0) if asked is None else float(asked)


def _again(live: LiveStream, row: ItemRow, name: str, said: set[str], sure: float) -> ItemRow:
    """The item as it comes again, for others than those who labelled it, if there are any."""
    if len(name) > LONGEST_ID:
        raise StateError(f"item {row.id!r} cannot be sent back: its id is too long for another")
    only = None if row.eligible is None else json.loads(row.eligible)
    barred = set(json.loads(row.excluded))
    able = live.labelers.seated - barred if only is None else set(only) - barred
    if able - said:
        barred |= said
    names = sorted(barred)
    digest = digest_of(json.loads(row.payload), None, only, names, sure)
    return ItemRow(
        stream=row.stream,
        id=name,
        digest=digest,
        payload=row.payload,
        weight=row.weight,
        eligible=row.eligible,
        excluded=compact(names),
        arrived_slot=live.engine.slot,
        arrived_at=0.0,
        min_confidence=sure,
    )
