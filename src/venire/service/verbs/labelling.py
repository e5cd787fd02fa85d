"""Asking for work, answering, renewing, giving back, and labels in bulk."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from venire.errors import Conflict, InputError, NotFound, StateError, StoreDown, TooMuch
from venire.model import LeaseStatus, NoWork
from venire.service.actors import PROGRAM, Actor, done_by
from venire.service.messages import Answer, LabelIn, Lease, Nothing, Outcome
from venire.service.runtime.runtime import BEHIND, PIECE, Hub, written
from venire.service.settings import ServiceSettings
from venire.service.stream.change_batch import Batch
from venire.service.stream.leases import Held
from venire.service.stream.live_stream import Live, Moment
from venire.service.tokens import hashed
from venire.service.work import grants
from venire.service.work.labels import (
    EXISTS,
    Known,
    Row,
    answer,
    answered,
    classify,
    hear,
    newcomers,
    unsure,
)
from venire.service.work.offers import Offer
from venire.service.work.waiting_room import Waiter
from venire.storage import RenewLease, Storage

__all__ = ["WorkVerbs"]

_LABELER: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")


class WorkVerbs:
    """The part of `Service` that labelers use."""

    hub: Hub
    settings: ServiceSettings

    async def next(
        self, stream: str, labeler: str, wait: float = 0.0, key: str | None = None
    ) -> Lease | Nothing:
        """Ask for work, and wait so many seconds for it; `key` is the id of the key that asks.

        Cancel the call when the client has gone: it is then given nothing.
        """
        check_name(labeler)
        hub, live = self.hub, await self.hub.live(stream)
        hub.serve_waiting(stream)  # nobody overtakes those who wait
        if live.busy is not None:
            live = await hub.live(stream)
        batch, moment = Batch(key), hub.moment()
        grants.seat(live, labeler, batch, moment)
        if live.is_long and not live.engine.is_filed:
            hub.commit(live, batch)
            live, batch, moment = await hub.live(stream), Batch(key), hub.moment()
        given = grants.grant(live, {labeler: key}, batch, moment).get(labeler)
        done = hub.commit(live, batch)
        if given is not None:
            return await self._deliver(Offer(live, given, done))
        why = grants.why_nothing(live, labeler)
        await done
        if wait <= 0 or why == NoWork.CLOSED:
            return Nothing(why)
        return await self._wait(stream, labeler, min(wait, self.settings.max_wait_seconds), key)

    async def _wait(
        self, stream: str, labeler: str, seconds: float, key: str | None
    ) -> Lease | Nothing:
        """Wait for work; whoever is given some that then cannot be written down waits on."""
        hub = self.hub
        if hub.waiting >= self.settings.max_waiting:
            raise TooMuch(f"{hub.waiting:,} requests wait for work, no more may", retry_after=1)
        seconds_now = asyncio.get_running_loop().time
        until = seconds_now() + seconds
        hub.waiting += 1
        try:
            while True:
                offer = await self._offered(stream, Waiter(labeler, key), until - seconds_now())
                try:
                    if offer is None:
                        return Nothing(grants.why_nothing(await hub.live(stream), labeler))
                    return await self._deliver(offer)
                except StoreDown:
                    if seconds_now() >= until or not hub.running:
                        raise
                    hub.wake(stream)
        finally:
            hub.waiting -= 1

    async def _offered(self, stream: str, waiter: Waiter[Offer], seconds: float) -> Offer | None:
        """Wait until something is offered; give it back if the client goes just then."""
        try:
            return await self.hub.room(stream).wait(waiter, seconds)
        except asyncio.CancelledError:
            if waiter.given is not None:
                self._take_back(waiter.given)
            raise

    async def _deliver(self, offer: Offer) -> Lease:
        """Hand over work once it is on disk; take it back if that cannot be done any more.

        The stream may be loaded anew meanwhile: what is on disk was given all the same.
        """
        live, grant, done = offer
        entry, moment = live.open.get(grant.held.item), self.hub.moment()
        payload = None if entry is None else entry.payload
        try:
            await asyncio.shield(done)
            if payload is None:
                row = await self.hub.read(self.hub.storage.item, live.name, grant.held.item)
                payload = "null" if row is None else row.payload
        except (asyncio.CancelledError, StoreDown):
            self._take_back(offer)
            raise
        return grants.view(live, grant.held, grant.token, payload, moment, grant.gain)

    def _take_back(self, offer: Offer) -> None:
        """The client does not get its work: give it to somebody else."""

        async def later() -> None:
            try:
                await asyncio.shield(offer.done)  # others may wait for it too
                await self.release(offer.grant.token)
            except (StoreDown, NotFound, StateError):
                pass  # it was never given, or is over

        self.hub.spawn(later())

    async def label(
        self, token: str, said: str, labeler: str | None = None, key: str | None = None
    ) -> Answer:
        """Answer a lease. Again the same: the first answer. Another label: `Conflict`.

        With `labeler`, the lease must be that labeler's, or there is no such lease. `key` is the
        id of the key by which the label comes, and is kept with it.
        """
        hub, token = self.hub, hashed(token)
        await hub.ready()
        first = hub.tokens.answers.get(token)
        if first is None:
            found = await self._lease(token, labeler)
            if not isinstance(found, Answer):
                return await self._answer(*found, said, key)
            first = found
        _theirs(first.labeler, labeler)
        await hub.flush()
        return _again(first, said)

    async def _answer(
        self, live: Live, lease: Held, expired: bool, said: str, key: str | None
    ) -> Answer:
        hub, row = self.hub, (lease.item, lease.labeler, said)
        known = Known()
        if unsure(live, [row], known):
            known = await self._ask_store(live.name, [row])
            live = await hub.live(live.name)
        live.people.known(lease.labeler)  # whoever was given something is heard
        outcome = classify(live, row, known)
        if outcome.status == "refused":
            await hub.flush()  # what speaks against it must be on disk
            raise _ERRORS.get(outcome.code or "", StateError)(outcome.message)
        batch, moment = Batch(key), hub.moment()
        if outcome is EXISTS:  # it came by another way
            made = answered(live, lease, said, expired, batch, moment)
        else:
            made = answer(live, lease, said, batch, moment, expired)
        await hub.commit(live, batch)
        return made

    async def _lease(self, key: str, labeler: str | None) -> tuple[Live, Held, bool] | Answer:
        """A lease by the hash of its token, and whether it is over; or its answer."""
        hub = self.hub
        for _ in range(2):
            await hub.ready()
            name = hub.tokens.streams.get(key)
            if name is not None:
                live = await hub.live(name)
                held = live.leases.get(key)
                if held is not None:
                    _theirs(held.labeler, labeler)
                    return live, held, False
            if key in hub.tokens.answers:
                return hub.tokens.answers[key]
            if key in hub.tokens.lapsed:
                name, held = hub.tokens.lapsed[key]
                _theirs(held.labeler, labeler)
                return await hub.live(name), held, True
            row = await hub.read_committed(hub.storage.lease, key)
            if row is None:
                raise NotFound("assignment", None, "no work was given out under this token")
            _theirs(row.labeler, labeler)
            if row.answer is not None:
                return Answer(**json.loads(row.answer))
            live = await hub.live(row.stream)
            if row.status != LeaseStatus.OPEN:
                over = Held(key, row.item, row.labeler, row.given_at, None, row.ttl, 0.0, False)
                return live, over, True
        raise StoreDown("the stream was loaded anew meanwhile: try again")

    async def heartbeat(self, token: str, labeler: str | None = None) -> float:
        """Renew a lease; when it now ends. `StateError` if it is over."""
        found = await self._lease(hashed(token), labeler)
        if isinstance(found, Answer) or found[2]:
            raise StateError("the lease is over: it was answered, given back, or it expired")
        live, lease, _ = found
        hub, moment, s = self.hub, self.hub.moment(), live.settings
        live.people.heard_of(lease.labeler, moment.now)
        ttl = live.lead.ttl(lease.labeler, s.lease_floor_seconds, s.lease_ceiling_seconds)
        live.leases.renew(lease.token_hash, moment.now + ttl)
        held_for = lease.lead(moment.now)
        lease.ttl = ttl + (0.0 if held_for is None else held_for)
        batch = Batch()
        batch.last = [RenewLease(lease.token_hash, lease.ttl)]
        await hub.commit(live, batch)
        return moment.wall + ttl

    async def release(
        self, token: str, bar: bool = False, labeler: str | None = None, key: str | None = None
    ) -> None:
        """Give work back; with `bar` the labeler does not get the item again."""
        found = await self._lease(hashed(token), labeler)
        if isinstance(found, Answer):
            raise StateError("the lease has its label already: there is nothing to give back")
        live, lease, expired = found
        batch = Batch(key)
        if not expired:
            moment = self.hub.moment()
            live.people.heard_of(lease.labeler, moment.now)
            grants.give_back(live, lease, LeaseStatus.RELEASED, bar, batch, moment)
        await self.hub.commit(live, batch)

    async def add_labels(
        self,
        stream: str,
        labels: Sequence[LabelIn | tuple[str, str, str]],
        actor: Actor | str = PROGRAM,
        own: bool = False,
    ) -> list[Outcome]:
        """Labels in bulk and unasked, (item, labeler, said); what became of each.

        `own` says that labelers send them for themselves: then only labels of items that they
        hold or held are taken, unless the stream's `unasked_labels` allows others.
        """
        hub, live, key = self.hub, await self.hub.live(stream), Actor.of(actor).key
        if len(labels) > self.settings.max_batch:
            raise TooMuch(f"got {len(labels):,} labels, at most {self.settings.max_batch:,} may "
                          "come at once")  # fmt: skip
        rows: list[Row] = await hub.scan(len(labels) > PIECE, _checked, labels)
        live, known = await self._sure(live, rows, Known())
        given = await self._given(live, rows) if own else None
        live = await hub.live(stream)
        outcomes: list[Outcome] = []
        cuts = await hub.scan(len(rows) > PIECE, newcomers, live, rows)
        live = await hub.live(stream)
        commits = [hub.commit(live, Batch())]
        async for live, part in hub.pieces(stream, len(rows), cuts):
            live, known = await self._sure(live, rows[part], known)
            bound = None if live.settings.unasked_labels else given
            batch, moment = Batch(key), hub.moment()
            step = partial(_hear, live, rows[part], known, batch, moment, bound, actor)
            more, done = await hub.take(live, batch, part.stop - part.start, step)
            outcomes += more
            commits.append(done)
            await written(commits, BEHIND)
        await written(commits)
        return outcomes

    async def _given(self, live: Live, rows: Sequence[Row]) -> set[tuple[str, str]]:
        """Which of the items their labelers had before; what they hold, memory knows."""
        held = live.leases.of_pair
        pairs = {(row[0], row[1]) for row in rows if held(row[0], row[1]) is None}
        found = await self.hub.read_committed(self.hub.storage.given, live.name, pairs)
        return found | {(row[0], row[1]) for row in rows} - pairs

    async def _sure(self, live: Live, rows: Sequence[Row], known: Known) -> tuple[Live, Known]:
        """Ask the store about the rows that memory does not know."""
        many = len(rows) > PIECE
        while unclear := await self.hub.scan(many, unsure, live, rows, known):
            more = await self._ask_store(live.name, unclear)
            known = Known(known.items | more.items, {**known.said, **more.said}, known.asked
                          | more.asked)  # fmt: skip
            live = await self.hub.live(live.name)
        return live, known

    async def _ask_store(self, stream: str, rows: Sequence[Row]) -> Known:
        hub = self.hub
        await hub.flush()
        return await hub.read(_known, hub.storage, stream, rows)

    async def held(
        self, stream: str, labeler: str, new_tokens: bool = False, key: str | None = None
    ) -> list[Lease]:
        """What a labeler holds. With `new_tokens`, under new tokens: the old ones are lost.

        Without them the leases have no token: it is not known any more.
        """
        hub, live = self.hub, await self.hub.live(stream)
        moment, batch = hub.moment(), Batch(key)
        leases = [lease for lease in live.leases if lease.labeler == labeler]
        tokens = [grants.rename(live, x, batch, moment) if new_tokens else None for x in leases]
        kept = [live.open[x.item].payload if x.item in live.open else None for x in leases]
        await hub.commit(live, batch)
        found = []
        for lease, token, payload in zip(leases, tokens, kept, strict=True):
            if payload is None:
                row = await hub.read(hub.storage.item, stream, lease.item)
                payload = "null" if row is None else row.payload
            found.append(grants.view(live, lease, token, payload, moment))
        return found


_ERRORS: Final[dict[str, type[Exception]]] = {
    "unknown_class": InputError,
    "changed": Conflict,
    "not_allowed": StateError,
}


def _checked(labels: Sequence[LabelIn | Row]) -> list[Row]:
    """Labels as rows; an error if a name cannot be one."""
    rows = [x if isinstance(x, tuple) else (x.item, x.labeler, x.said) for x in labels]
    for name in {row[1] for row in rows}:
        check_name(name)
    return rows


def _known(storage: Storage, stream: str, rows: Sequence[Row]) -> Known:
    """What the store says of items, and of what was said of them."""
    items = {row[0] for row in rows}
    found = storage.known_ids(stream, items)
    said = storage.said(stream, [(row[0], row[1]) for row in rows])
    return Known(set(found), said, items)


def _hear(
    live: Live,
    rows: Sequence[Row],
    known: Known,
    batch: Batch,
    moment: Moment,
    given: set[tuple[str, str]] | None,
    actor: Actor | str,
) -> list[Outcome]:
    """Labels of a request come; what became of each."""
    outcomes = hear(live, rows, known, batch, moment, given)
    if batch.labels:
        told = done_by(actor, moment.wall, "labels.add", live.name, taken=len(batch.labels))
        batch.audit.append(told)
    return outcomes


def check_name(labeler: str) -> None:
    """Refuse what cannot be the name of a labeler."""
    if not isinstance(labeler, str) or not _LABELER.fullmatch(labeler):
        raise InputError(
            f"got the labeler {labeler!r}, expected text of 1 to 200 characters that can be printed"
        )


def _theirs(owner: str, labeler: str | None) -> None:
    if labeler is not None and owner != labeler:
        raise NotFound("assignment", None, f"the token was not given to {labeler!r}")


def _again(first: Answer, said: str) -> Answer:
    if first.said != said:
        raise Conflict(
            f"this assignment was answered with {first.said!r} before and {said!r} now: "
            "a label cannot be changed"
        )
    return first
