"""Gold and accuracy audits: what trusted people say of items, and what that proves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from venire.audits.intervals import check_level
from venire.errors import Archived, Conflict, InputError, StateError, TooMuch
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.admin_messages import Reviewed
from venire.server.messages import Answer, AuditsView, BoundView, GoldIn, GoldView, Outcome
from venire.server.operations import Operations
from venire.server.reports.event_json import gold_view
from venire.server.runtime.chunks import chunks, committed, run_chunk
from venire.server.stream.change_batch import Batch
from venire.server.stream.checks import KnownGold, answer_audit, known_gold, take_gold, unknown_gold

if TYPE_CHECKING:
    from venire.audits import ErrorBound
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
        runtime, most = self.runtime, self.runtime.settings.max_batch
        if len(rows) > most:
            raise TooMuch(f"got {len(rows):,} in one request, expected at most {most:,}")
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
        self, stream: str, lease: HeldLease, expired: bool, said: str, key: str | None
    ) -> Answer:
        """A trusted labeler's answer to an audit that it was leased, or to what it was asked."""
        row, who = GoldIn(lease.item, said), Actor(lease.labeler, key)
        async with self._lock(stream):
            live, known = await self._look_up_gold(stream, [row], KnownGold.nothing())
            batch, moment = Batch(key), self.runtime.moment()
            source = "audit" if lease.item in live.checks.verdicts else "asked"
            outcome = take_gold(live, [row], known, source, who, batch, moment)[0]
            if outcome.status == "refused":
                await self.runtime.flush()
                raise _ERRORS.get(outcome.code or "", StateError)(outcome.message)
            made = answer_audit(live, lease, said, expired, known.gold, batch, moment)
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
            if outcome.status == "refused":
                await self.runtime.flush()
                raise _ERRORS.get(outcome.code or "", StateError)(outcome.message)
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
