"""Pulling work, labelling, heartbeats, releases, and labels in bulk."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from venire.errors import (
    Conflict,
    InputError,
    NotFound,
    StateError,
    StoreDown,
    StreamElsewhere,
    TooMuch,
)
from venire.model import LeaseStatus, NoteKind, NoWork, StreamStatus, rationale_of
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.messages import Answer, LabelIn, Lease, Nothing, Outcome
from venire.server.operations.gold import GoldOperations
from venire.server.runtime.ticker import CHUNK, chunks, committed, run_chunk
from venire.server.store import ERASED, RenewLease, Storage
from venire.server.stream import grants
from venire.server.stream.change_batch import Batch
from venire.server.stream.checks import AFTER_SLOTS, LATEST
from venire.server.stream.grants import Offer, Waiter
from venire.server.stream.labels import (
    EXISTS,
    Known,
    Row,
    accept_labels,
    answer,
    answer_again,
    answer_existing,
    classify,
    kept_row,
    newcomer_cuts,
    take_note,
    unknown_rows,
)
from venire.server.stream.leases import HeldLease
from venire.server.tokens import hashed

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream, Moment

#: Labels in bulk: item, labeler, what was said, and perhaps a confidence.
Labels: TypeAlias = Sequence[LabelIn | tuple[Any, ...]]

_LABELER: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")


class LabellingOperations(GoldOperations):
    """Leases work to labelers, and accepts their labels."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._noting = asyncio.Lock()  # of two that are the same, the second finds the first

    async def next(
        self,
        stream: str,
        labeler: str,
        wait: float = 0.0,
        key: str | None = None,
        ahead: int = 0,
    ) -> Lease | Nothing:
        """Lease the next item, waiting up to `wait` seconds; `key` is the id of the caller's key.

        The labeler may hold `ahead` items beyond its capacity, as far as the stream allows it.
        Cancel the call when the client disconnects: no lease is left behind.
        """
        check_name(labeler)
        runtime, live = self.runtime, await self.runtime.live_stream(stream)
        if not live.checks.waiting and grants.may_ask(live, labeler):
            await self._questions.list_for_experts(live)
            live = await runtime.live_stream(stream)
        if live.repeats.is_due(live, labeler):
            live = await self._find_again(live, labeler)
        runtime.offers.dispatch(stream)  # those already waiting come first
        if live.busy is not None:
            live = await runtime.live_stream(stream)
        if live.status == StreamStatus.ARCHIVED:
            return Nothing(NoWork.CLOSED)
        batch, moment = Batch(key), runtime.moment()
        grants.seat(live, labeler, batch, moment)
        if live.is_large and not live.engine.is_filed:
            runtime.commit(live, batch)
            live, batch, moment = await runtime.live_stream(stream), Batch(key), runtime.moment()
        given = grants.grant(live, {labeler: key}, batch, moment, ahead).get(labeler)
        done = runtime.commit(live, batch)
        if given is not None:
            return await self._deliver(Offer(live, given, done))
        why = grants.why_nothing(live, labeler, ahead)
        await done
        if wait <= 0 or why == NoWork.CLOSED:
            return Nothing(why)
        seconds = min(wait, self.settings.max_wait_seconds)
        return await self._wait(stream, seconds, labeler, key, ahead)

    async def _find_again(self, live: LiveStream, labeler: str) -> LiveStream:
        """Find what the labeler may be asked again; the stream, up to date."""
        runtime, name = self.runtime, live.name
        slot = live.engine.slot - (live.settings.repeat_after_slots or AFTER_SLOTS)
        asked = runtime.storage.repeatable, name, labeler, slot, LATEST
        rows = await runtime.read_committed(*asked) if slot >= 0 else []
        live = await runtime.live_stream(name)
        live.repeats.found(live, labeler, rows)
        return live

    async def _wait(
        self, stream: str, seconds: float, labeler: str, key: str | None, ahead: int
    ) -> Lease | Nothing:
        """Wait for work; goes on waiting if the commit of an offer fails."""
        runtime = self.runtime
        if runtime.waiting >= self.settings.max_waiting:
            raise TooMuch(
                f"{runtime.waiting:,} requests are waiting for work, the limit", retry_after=1
            )
        seconds_now = asyncio.get_running_loop().time
        until = seconds_now() + seconds
        runtime.waiting += 1
        try:
            while True:
                waiter = Waiter(labeler, key, ahead)
                offer = await self._wait_for_offer(stream, waiter, until - seconds_now())
                try:
                    if offer is None:
                        live = await runtime.live_stream(stream)
                        return Nothing(grants.why_nothing(live, labeler, ahead))
                    return await self._deliver(offer)
                except StreamElsewhere:
                    raise
                except StoreDown:
                    if seconds_now() >= until or not runtime.running:
                        raise
                    runtime.offers.wake(stream)
        finally:
            runtime.waiting -= 1

    async def _wait_for_offer(self, stream: str, waiter: Waiter, seconds: float) -> Offer | None:
        """Wait for an offer; release it if the client disconnects at that moment."""
        try:
            return await self.runtime.offers.room(stream).wait(waiter, seconds)
        except asyncio.CancelledError:
            if waiter.given is not None:
                self._release_later(waiter.given)
            raise

    async def _deliver(self, offer: Offer) -> Lease:
        """Return a lease once it is committed; release it if the client is gone or that fails.

        The stream may be reloaded meanwhile: a committed lease remains valid.
        """
        live, grant, done = offer
        entry, moment = live.open.get(grant.held.item), self.runtime.moment()
        kept = None if entry is None else entry.payload
        try:
            await asyncio.shield(done)
            payload = await self._payload(live.name, grant.held.item, kept)
        except (asyncio.CancelledError, StoreDown):
            self._release_later(offer)
            raise
        return grants.view(live, grant.held, grant.token, payload, moment, grant.gain)

    async def _payload(self, stream: str, item: str, kept: str | None) -> Any:
        """The payload of an item: in memory if it is short, else read and parsed in threads."""
        if kept is not None:
            return json.loads(kept)
        row = await self.runtime.read(self.runtime.storage.item, stream, item)
        return None if row is None else await self.runtime.read(json.loads, row.payload)

    def _release_later(self, offer: Offer) -> None:
        """Release an offer that did not reach its client."""

        async def later() -> None:
            try:
                await asyncio.shield(offer.done)  # others may await it too
                await self.release(offer.grant.token)
            except (StoreDown, NotFound, StateError):
                pass  # it was never committed, or has ended

        self.runtime.spawn(later())

    async def label(
        self,
        token: str,
        said: str,
        labeler: str | None = None,
        key: str | None = None,
        seconds: float | None = None,
        confidence: float | None = None,
        rationale: str | None = None,
    ) -> Answer:
        """Label a leased item. Repeating the label returns the first answer, another `Conflict`.

        With `labeler`, only that labeler's leases are found. `key` is the id of the sender's key,
        which is stored with the label. `seconds` is how long the labeler took, if less than since
        the lease began: the item may have waited behind another. `confidence`, from 0 to 1, is how
        sure the labeler is; what that is worth is learned. `rationale` is why it says so.
        """
        runtime, token_hash = self.runtime, hashed(token)
        await runtime.ready()
        first = runtime.lease_index.answers.get(token_hash)
        if first is None:
            found = await self._find_lease(token_hash, labeler)
            if not isinstance(found, Answer):
                why, lease = rationale_of(rationale), found[1]
                row = Row(lease.item, lease.labeler, said, confidence, why)
                return await self._answer(*found, row, key, seconds)
            first = found
        _check_owner(first.labeler, labeler)
        await runtime.flush()
        return _same_answer(first, said)

    async def _answer(
        self,
        live: LiveStream,
        lease: HeldLease,
        ended: bool,
        row: Row,
        key: str | None,
        seconds: float | None,
    ) -> Answer:
        if lease.labeler in live.trusted and lease.item not in live.open:
            return await self._answer_gold(live.name, lease, ended, row.said, key)
        if lease.again is not None:
            return await self._answer_again(live, lease, ended, row, key, seconds)
        runtime, known = self.runtime, Known()
        if unknown_rows(live, [row], known):
            known = await self._ask_store(live.name, [row])
            live = await runtime.live_stream(live.name)
        live.labelers.record(lease.labeler)  # a lease entitles to a label
        outcome = classify(live, row, known)
        await self._check_taken(outcome)
        batch, moment = Batch(key), runtime.moment()
        if outcome is EXISTS:  # it was sent without the lease
            made = answer_existing(live, lease, row.said, ended, batch, moment)
        else:
            kept = kept_row(live, row, known)
            made = answer(live, lease, kept, batch, moment, ended, seconds)
        await runtime.commit(live, batch)
        return made

    async def _answer_again(
        self,
        live: LiveStream,
        lease: HeldLease,
        ended: bool,
        row: Row,
        key: str | None,
        seconds: float | None,
    ) -> Answer:
        """The answer of a labeler who was asked again; the first one counts."""
        runtime, pair, said = self.runtime, (lease.item, lease.labeler), row.said
        if said not in live.classes:
            raise InputError(f"got {said!r}, expected one of {list(live.settings.classes)}")
        rows = await runtime.read_committed(runtime.storage.repeats, live.name, lease.item)
        known = {again.labeler: again.said for again in rows}
        live = await runtime.live_stream(live.name)
        first = live.repeats.said.get(pair, known.get(lease.labeler))
        if first not in (None, said):
            await runtime.flush()
            raise Conflict(
                f"labeler {lease.labeler!r} answered {first!r} when it was asked about item "
                f"{lease.item!r} again, got {said!r}: that cannot be changed"
            )
        batch, moment = Batch(key), runtime.moment()
        if first is None:
            made = answer_again(live, lease, row, batch, moment, ended, seconds)
        else:
            made = answer_existing(live, lease, said, ended, batch, moment)
        await runtime.commit(live, batch)
        return made

    async def _find_lease(
        self, token_hash: str, labeler: str | None
    ) -> tuple[LiveStream, HeldLease, bool] | Answer:
        """A lease by the hash of its token, and whether it has ended; or its answer."""
        runtime = self.runtime
        for _ in range(2):
            await runtime.ready()
            name = runtime.lease_index.streams.get(token_hash)
            if name is not None:
                live = await runtime.writable(name)
                held = live.leases.get(token_hash)
                if held is not None:
                    _check_owner(held.labeler, labeler)
                    return live, held, False
            if token_hash in runtime.lease_index.answers:
                return runtime.lease_index.answers[token_hash]
            if token_hash in runtime.lease_index.lapsed:
                name, held = runtime.lease_index.lapsed[token_hash]
                _check_owner(held.labeler, labeler)
                return await runtime.writable(name), held, True
            row = await runtime.read_committed(runtime.storage.lease, token_hash)
            if row is None:
                raise NotFound("assignment", None, "this token is unknown")
            _check_owner(row.labeler, labeler)
            if row.answer is not None:
                return Answer(**json.loads(row.answer))
            live = await runtime.writable(row.stream)
            if row.status != LeaseStatus.OPEN:
                over = HeldLease(
                    token_hash=token_hash,
                    item=row.item,
                    labeler=row.labeler,
                    given_at=row.given_at,
                    given=None,
                    ttl=row.ttl,
                    end=0.0,
                    of_open=False,
                    again=row.again,
                )
                return live, over, True
        raise StoreDown("the stream was reloaded meanwhile: try again")

    async def heartbeat(self, token: str, labeler: str | None = None) -> float:
        """Renew a lease and return its new expiry time; `StateError` if it has ended."""
        found = await self._find_lease(hashed(token), labeler)
        if isinstance(found, Answer) or found[2]:
            raise StateError("the lease has ended: it was labelled, released, or it expired")
        live, lease, _ = found
        if lease.labeler in live.settings.retired:
            raise StateError(f"labeler {lease.labeler!r} is retired: its leases are not renewed")
        runtime, moment, s = self.runtime, self.runtime.moment(), live.settings
        live.labelers.touch(lease.labeler, moment.now)
        ttl = live.lead_times.ttl(lease.labeler, s.lease_floor_seconds, s.lease_ceiling_seconds)
        live.leases.renew(lease.token_hash, moment.now + ttl)
        held_for = lease.lead(moment.now)
        lease.ttl = ttl + (0.0 if held_for is None else held_for)
        batch = Batch()
        batch.last = [RenewLease(lease.token_hash, lease.ttl)]
        await runtime.commit(live, batch)
        return moment.wall + ttl

    async def release(
        self, token: str, bar: bool = False, labeler: str | None = None, key: str | None = None
    ) -> None:
        """Release a lease; with `bar` the labeler is not assigned the item again."""
        found = await self._find_lease(hashed(token), labeler)
        if isinstance(found, Answer):
            raise StateError("the item is already labelled: there is nothing to release")
        live, lease, ended = found
        batch = Batch(key)
        if not ended:
            moment = self.runtime.moment()
            live.labelers.touch(lease.labeler, moment.now)
            grants.give_back(live, lease, LeaseStatus.RELEASED, bar, batch, moment)
        await self.runtime.commit(live, batch)

    async def abstain(self, token: str, labeler: str | None = None, key: str | None = None) -> None:
        """The labeler of a lease is not sure: the item goes to others, and that is counted.

        Sent again it changes nothing.
        """
        found = await self._find_lease(hashed(token), labeler)
        if isinstance(found, Answer):
            raise StateError("the item is already labelled: it is too late to answer 'not sure'")
        live, lease, ended = found
        async with self._noting:
            known = await self._noted(live.name, lease.item, lease.labeler, NoteKind.UNSURE)
            live = await self.runtime.live_stream(live.name)
            batch, moment = Batch(key), self.runtime.moment()
            if not ended and live.leases.get(lease.token_hash) is lease:
                grants.give_back(live, lease, LeaseStatus.RELEASED, True, batch, moment)
            else:
                grants.bar(live, lease.item, lease.labeler, batch, moment)
            if not known:
                live.labelers.touch(lease.labeler, moment.now).unsure += 1
                take_note(live, lease.item, lease.labeler, NoteKind.UNSURE, "", batch, moment)
            done = self.runtime.commit(live, batch)
        await done

    async def add_labels(
        self, stream: str, labels: Labels, actor: Actor | str = PROGRAM, own: bool = False
    ) -> list[Outcome]:
        """Add labels without leases; the outcome of each.

        `own` means that a labeler sends its own labels: then only items that it holds or held are
        accepted, unless the stream's `unasked_labels` allows others.

        Where what was said is None, the labeler is not sure: that is kept as `abstain` keeps it,
        with the rationale as the text of the note.
        """
        runtime, live = self.runtime, await self.runtime.writable(stream)
        key = Actor.of(actor).key
        unsure = {place: row for place, row in enumerate(labels) if _said(row) is None}
        sure = [row for row in labels if _said(row) is not None] if unsure else labels
        self._check_batch(len(sure), "labels")
        rows: list[Row] = await runtime.threads.scan(len(sure) > CHUNK, _checked, sure)
        live, known = await self._look_up(live, rows, Known())
        given = await self._given(live, rows) if own else None
        live = await runtime.live_stream(stream)
        outcomes: list[Outcome] = []
        cuts = await runtime.threads.scan(len(rows) > CHUNK, newcomer_cuts, live, rows)
        live = await runtime.live_stream(stream)
        commits = [runtime.commit(live, Batch())]
        async for live, part in chunks(runtime, stream, len(rows), cuts):
            live, known = await self._look_up(live, rows[part], known)
            bound = None if live.settings.unasked_labels else given
            batch, moment = Batch(key), runtime.moment()
            step = partial(_accept, live, rows[part], known, batch, moment, bound, actor)
            outcomes += await run_chunk(runtime, live, batch, part, step, commits)
        await committed(commits)
        for place, row in unsure.items():
            told = LabelIn(*row) if isinstance(row, tuple) else row
            outcomes.insert(place, await self._unsure(stream, told, key, own))
        return outcomes

    async def _unsure(self, stream: str, told: LabelIn, key: str | None, own: bool) -> Outcome:
        """A labeler says without a lease that it is not sure of an item."""
        item, labeler, why = told.item, told.labeler, rationale_of(told.rationale) or ""
        async with self._noting:
            if await self._noted(stream, item, labeler, NoteKind.UNSURE):
                return Outcome("exists")
            refused = await self._why_not_unsure(stream, item, labeler, own)
            if refused is not None:
                return refused
            live = await self.runtime.live_stream(stream)
            batch, moment = Batch(key), self.runtime.moment()
            try:
                if labeler not in live.labelers:
                    grants.seat(live, labeler, batch, moment)
            except TooMuch as error:
                return Outcome("refused", "panel_full", str(error))
            grants.bar(live, item, labeler, batch, moment)
            live.labelers.touch(labeler, moment.now).unsure += 1
            take_note(live, item, labeler, NoteKind.UNSURE, why, batch, moment)
            done = self.runtime.commit(live, batch)
        await done
        return Outcome("accepted")

    async def _why_not_unsure(
        self, stream: str, item: str, labeler: str, own: bool
    ) -> Outcome | None:
        """Why a labeler may not say, without a lease, that it is not sure of an item."""
        check_name(labeler)
        live = await self.runtime.writable(stream)
        rows = [Row(item, labeler, live.settings.classes[0])]
        live, known = await self._look_up(live, rows, Known())
        outcome = classify(live, rows[0], known)
        if outcome is EXISTS or outcome.code == "changed":
            why = f"labeler {labeler!r} already labelled item {item!r}"
            return Outcome("refused", "changed", f"{why}: it is too late to answer 'not sure'")
        if own and not live.settings.unasked_labels and not await self._given(live, rows):
            return Outcome("refused", "not_given", f"item {item!r} was not assigned to {labeler!r}")
        return outcome if outcome.status == "refused" else None

    async def _noted(
        self, stream: str, item: str, labeler: str, kind: str, text: str | None = None
    ) -> bool:
        """Whether the labeler has said this of the item before; without `text`, any of the kind."""
        read = self.runtime.storage.notes
        rows = await self.runtime.read_committed(read, stream, 0, None, item)
        said = [row.text for row in rows if (row.labeler, row.kind) == (labeler, kind)]
        return bool(said) if text is None else text in said

    async def _given(self, live: LiveStream, rows: Sequence[Row]) -> set[tuple[str, str]]:
        """The (item, labeler) pairs of the rows that have or had a lease."""
        held = live.leases.of_pair
        pairs = {(row[0], row[1]) for row in rows if held(row[0], row[1]) is None}
        found = await self.runtime.read_committed(self.runtime.storage.given, live.name, pairs)
        return found | {(row[0], row[1]) for row in rows} - pairs

    async def _look_up(
        self, live: LiveStream, rows: Sequence[Row], known: Known
    ) -> tuple[LiveStream, Known]:
        """Look up in the store the rows that are not in memory."""
        many = len(rows) > CHUNK
        while unclear := await self.runtime.threads.scan(many, unknown_rows, live, rows, known):
            more = await self._ask_store(live.name, unclear)
            known = Known(
                known.items | more.items,
                {**known.said, **more.said},
                known.asked | more.asked,
                known.archived | more.archived,
                known.erased | more.erased,
            )
            live = await self.runtime.live_stream(live.name)
        return live, known

    async def _ask_store(self, stream: str, rows: Sequence[Row]) -> Known:
        runtime = self.runtime
        await runtime.flush()
        return await runtime.read(_known, runtime.storage, stream, rows)

    async def held(
        self, stream: str, labeler: str, new_tokens: bool = False, key: str | None = None
    ) -> list[Lease]:
        """A labeler's open leases. With `new_tokens` each gets a new token, replacing the old.

        Otherwise the leases carry no token: only its hash is stored.
        """
        runtime, live = self.runtime, await self.runtime.live_stream(stream)
        moment, batch = runtime.moment(), Batch(key)
        leases = [lease for lease in live.leases if lease.labeler == labeler]
        tokens = [grants.rename(live, x, batch, moment) if new_tokens else None for x in leases]
        kept = [live.open[x.item].payload if x.item in live.open else None for x in leases]
        await runtime.commit(live, batch)
        found = []
        for lease, token, text in zip(leases, tokens, kept, strict=True):
            payload = await self._payload(stream, lease.item, text)
            found.append(grants.view(live, lease, token, payload, moment))
        return found


def _said(row: LabelIn | tuple[Any, ...]) -> str | None:
    said: str | None = row[2] if isinstance(row, tuple) else row.said
    return said


def _checked(labels: Labels) -> list[Row]:
    """Labels as rows; an error if a labeler's name is invalid."""
    rows = [
        Row(*x)
        if isinstance(x, tuple)
        else Row(x.item, x.labeler, x.said or "", x.confidence, rationale_of(x.rationale))
        for x in labels
    ]
    for name in {row[1] for row in rows}:
        check_name(name)
    return rows


def _known(storage: Storage, stream: str, rows: Sequence[Row]) -> Known:
    """Look up items and their labels in the store."""
    items = {row[0] for row in rows}
    found = storage.known_ids(stream, items)
    said = storage.said(stream, [(row[0], row[1]) for row in rows])
    gone = storage.archived(stream, items - found.keys())
    erased = {item for item, digest in found.items() if digest == ERASED}
    return Known(set(found), said, items, set(gone), erased)


def _accept(
    live: LiveStream,
    rows: Sequence[Row],
    known: Known,
    batch: Batch,
    moment: Moment,
    given: set[tuple[str, str]] | None,
    actor: Actor | str,
) -> list[Outcome]:
    """Take a chunk of a request's labels; the outcome of each."""
    outcomes = accept_labels(live, rows, known, batch, moment, given)
    if batch.labels:
        entry = audit_row(actor, moment.wall, "labels.add", live.name, taken=len(batch.labels))
        batch.audit.append(entry)
    return outcomes


def check_name(labeler: str) -> None:
    if not isinstance(labeler, str) or not _LABELER.fullmatch(labeler):
        raise InputError(f"got the labeler {labeler!r}, expected 1 to 200 printable characters")


def _check_owner(owner: str, labeler: str | None) -> None:
    if labeler is not None and owner != labeler:
        raise NotFound("assignment", None, f"the token was not issued to {labeler!r}")


def _same_answer(first: Answer, said: str) -> Answer:
    if first.said != said:
        raise Conflict(
            f"this assignment is already labelled {first.said!r}, got {said!r}: a label cannot be "
            "changed"
        )
    return first
