"""Leasing work to labelers who ask for it, ending leases, and requests that wait for work.

A lease and the engine's assignment are made in one step and one transaction. Work is only leased
on request; a labeler who gets none learns why.

A request that waits is a future with a labeler's name. The dispatcher takes the names in the order
of waiting and resolves the first waiter of a name. A waiter whose request was cancelled has left
the room before it can be served; if it is cancelled between being served and waking up,
`Waiter.given` holds what has to be released.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from venire.errors import InputError, NotFound, StateError, TooMuch
from venire.model import Assignment, Labeler, LeaseStatus, NoWork, StreamStatus
from venire.server.messages import Lease
from venire.server.store import LeaseEnd
from venire.server.stream.change_batch import Batch
from venire.server.stream.leases import HeldLease
from venire.server.tokens import hashed, lease_token

if TYPE_CHECKING:
    from venire.server.stream.live_stream import LiveStream, Moment


#: Open items that are looked at one by one for what a labeler has left: a few milliseconds.
MOST_COUNTED: Final = 20_000

#: Labelers who ask for work, each with the id of the key.
Asking: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Grant:
    """A new lease, with the only copy of its token."""

    token: str
    held: HeldLease
    slot: int
    gain: float


def seat(live: LiveStream, labeler: str, batch: Batch, moment: Moment) -> None:
    """Seat the labeler on the panel, if it is allowed; a trusted one needs no seat."""
    if labeler in live.settings.retired:
        raise StateError(
            f"labeler {labeler!r} is retired: it gets no work in stream {live.name!r}, until an "
            "admin restores it"
        )
    if labeler in live.trusted:
        live.labelers.touch(labeler, moment.now)
        return
    if labeler in live.voices:
        raise InputError(f"{labeler!r} is the student of this stream: use another name")
    if labeler not in live.labelers.seated and not live.settings.open_panel:
        raise NotFound("labeler", labeler, "the panel of this stream is closed to newcomers")
    if labeler in live.labelers.seated:
        live.labelers.touch(labeler, moment.now)
        return
    if labeler not in live.labelers and len(live.labelers) >= live.max_labelers:
        raise TooMuch(
            f"stream {live.name!r} has {len(live.labelers):,} labelers, the limit: name "
            f"{labeler!r} on the panel, or raise max_labelers",
            retry_after=60,
        )
    live.labelers.touch(labeler, moment.now)
    with contextlib.suppress(StateError):  # it joined before the last restart
        try:
            live.engine.join(Labeler(labeler))
        except InputError:
            raise InputError(
                f"labeler {labeler!r} is not on the panel, and this stream does not learn the "
                "competences of newcomers: add it to the panel with a competence, or set learning "
                "to while-serving"
            ) from None
    live.labelers.seated.add(labeler)
    live.collect(batch, moment)


def grant(
    live: LiveStream, asking: Asking, batch: Batch, moment: Moment, ahead: int = 0
) -> dict[str, Grant]:
    """Lease at most one item to each labeler who is asking; they must be seated.

    They may hold `ahead` items more than their capacity, as far as the stream allows it. A trusted
    labeler gets a verdict that was drawn to be audited, or one whose truth tells most.
    """
    left, ahead = live.budget_left, min(ahead, live.settings.ahead)
    if live.status == StreamStatus.PAUSED:
        return {}
    given = grant_audits(live, asking, batch, moment, ahead)
    free = [
        name
        for name in asking
        if name not in live.trusted
        and live.leases.holds(name) < live.labelers.record(name).capacity + ahead
    ]
    again = grant_again(live, free, asking, batch, moment)
    given |= again
    if not live.open or left == 0:
        return given
    left, free = live.budget_left, [name for name in free if name not in again]
    if left is not None:
        free = free[:left]
    for work in live.engine.assign(free, ahead) if free else ():
        given[work.labeler] = _lease(live, work, asking[work.labeler], batch, moment)
        live.repeats.handed[work.labeler] += 1
    live.collect(batch, moment)
    return given


def grant_again(
    live: LiveStream,
    free: Sequence[str],
    asking: Mapping[str, str | None],
    batch: Batch,
    moment: Moment,
) -> dict[str, Grant]:
    """Lease to those for whom that was drawn an item that they have labelled before."""
    given: dict[str, Grant] = {}
    for name in free if live.repeats.ready else ():
        row = live.repeats.ready.pop(name, None)
        if row is None or not live.repeats.is_free(live, row) or not _affords(live, name):
            continue
        work = Assignment(live.engine.slot, row.item, name, math.nan)
        live.engine.ask_again(row.item, name)
        given[name] = _lease(live, work, asking[name], batch, moment, again=row.said)
        live.repeats.handed[name] += 1
    if given:
        live.collect(batch, moment)
    return given


def _affords(live: LiveStream, labeler: str) -> bool:
    """Whether the budgets have room for one more answer of a labeler."""
    money, labels = live.engine.budget_left
    price = live.labelers.record(labeler).price / live.settings.delay_cost
    today = (labels is None or labels >= 1) and (money is None or money >= 0.999999 * price)
    return today and live.budget_left != 0


def _lease(
    live: LiveStream,
    work: Assignment,
    key: str | None,
    batch: Batch,
    moment: Moment,
    again: str | None = None,
) -> Grant:
    token, s = lease_token(live.name), live.settings
    ttl = live.lead_times.ttl(work.labeler, s.lease_floor_seconds, s.lease_ceiling_seconds)
    when = moment.wall, moment.now, ttl, moment.now + ttl
    entry = live.open.get(work.item)
    held = HeldLease(hashed(token), work.item, work.labeler, *when, entry is not None, again)
    live.leases.add(held)
    if entry is not None:
        entry.holders |= {work.labeler}
    batch.leases.append(held.row(live.name, key))
    return Grant(token, held, work.slot, work.gain * s.delay_cost)


def grant_audits(
    live: LiveStream, asking: Asking, batch: Batch, moment: Moment, ahead: int = 0
) -> dict[str, Grant]:
    """Lease drawn verdicts to the trusted labelers who ask, in the order of the draw.

    Once none is due: those whose truth tells most, as far as the experts' share goes.
    """
    asked = [name for name in asking if name in live.trusted]
    if not asked or not (live.checks.waiting or live.checks.questions):
        return {}
    held, given = {lease.item for lease in live.leases if not lease.of_open}, {}
    for name in asked:
        if _audits_of(live, name) >= live.labelers.record(name).capacity + ahead:
            continue
        item = next((item for item in _for_expert(live, name) if item not in held), None)
        if item is not None:
            held.add(item)
            work = Assignment(live.engine.slot, item, name, math.nan)
            given[name] = _lease(live, work, asking[name], batch, moment)
    return given


def _for_expert(live: LiveStream, labeler: str) -> Iterator[str]:
    """What a trusted labeler is to look at, the first first."""
    checks = live.checks
    yield from (item for item in checks.waiting if (item, labeler) not in checks.barred)
    if checks.questions and may_ask(live, labeler):
        yield from (item for item in checks.questions if (item, labeler) not in checks.barred)


def may_ask(live: LiveStream, labeler: str) -> bool:
    """Whether the experts' share has room for one more answer of a trusted labeler."""
    share, kept, trusted = live.settings.expert_share, live.labelers, live.trusted
    if not share or labeler not in trusted:
        return False
    out = [lease.labeler for lease in live.leases if lease.labeler in trusted]
    paid = any(record.money for name, record in kept.items() if name not in trusted)
    counts = {name: record.labels for name, record in kept.items()}
    for name in [*out, labeler]:
        counts[name] = counts.get(name, 0) + 1
    costs = {name: n * (kept.record(name).price if paid else 1) for name, n in counts.items()}
    return sum(costs.get(name, 0) for name in trusted) <= share * sum(costs.values())


def _audits_of(live: LiveStream, labeler: str) -> int:
    return sum(lease.labeler == labeler for lease in live.leases)


def why_nothing(live: LiveStream, labeler: str, ahead: int = 0) -> NoWork:
    """Why a labeler got no work."""
    ahead = min(ahead, live.settings.ahead)
    if live.status == StreamStatus.PAUSED:
        return NoWork.PAUSED
    if labeler in live.trusted:
        return _why_no_audit(live, labeler, ahead)
    if not live.open:
        over = (StreamStatus.CLOSED, StreamStatus.ARCHIVED)
        return NoWork.CLOSED if live.status in over else NoWork.EMPTY
    if live.budget_left == 0:
        return NoWork.BUDGET_SPENT
    record = live.labelers.get(labeler)
    if record is not None and live.leases.holds(labeler) >= record.capacity + ahead:
        return NoWork.OVER_CAPACITY
    if not _affords(live, labeler):
        return NoWork.BUDGET_SPENT
    for lease in live.leases:
        entry = live.open.get(lease.item)
        if entry is None or labeler in entry.labels or labeler in entry.holders:
            continue  # its own leases are of answers that it may still undo
        if entry.may(labeler):
            return NoWork.ALL_LEASED
    return NoWork.NONE_FOR_YOU


def _why_no_audit(live: LiveStream, labeler: str, ahead: int) -> NoWork:
    if _audits_of(live, labeler) >= live.labelers.record(labeler).capacity + ahead:
        return NoWork.OVER_CAPACITY
    more = may_ask(live, labeler)
    if live.checks.waiting or (live.checks.questions and more):
        return NoWork.ALL_LEASED
    if live.status == StreamStatus.CLOSED and not live.open:
        return NoWork.CLOSED
    return NoWork.BUDGET_SPENT if live.settings.expert_share and not more else NoWork.EMPTY


def unanswered(live: LiveStream, labeler: str) -> int:
    """How many open items a labeler may answer and has not; a trusted one has audits instead.

    Of more than `MOST_COUNTED` open items it is the number of all of them.
    """
    if labeler in live.trusted:
        return sum(1 for _ in _for_expert(live, labeler))
    if len(live.open) > MOST_COUNTED:
        return len(live.open)
    return sum(x.may(labeler) and labeler not in x.labels for x in live.open.values())


def give_back(
    live: LiveStream, lease: HeldLease, status: LeaseStatus, bar: bool, batch: Batch, moment: Moment
) -> None:
    """End a lease without a label."""
    live.leases.pop(lease)
    entry = live.open.get(lease.item)
    if entry is not None:
        entry.holders -= {lease.labeler}
        if bar:
            entry.barred |= {lease.labeler}
        live.engine.release(lease.item, lease.labeler, bar)
    elif bar:
        live.checks.barred.add((lease.item, lease.labeler))
    live.lapsed.put(lease.token_hash, (live.name, lease))
    batch.ends.append(LeaseEnd(lease.token_hash, status, moment.wall, key=batch.key))
    live.collect(batch, moment)
    live.check_budget(batch, moment)


def bar(live: LiveStream, item: str, labeler: str, batch: Batch, moment: Moment) -> None:
    """Do not give the labeler an item again, and end the lease that it may have on it."""
    now = live.leases.of_pair(item, labeler)
    if now is not None:
        give_back(live, now, LeaseStatus.RELEASED, True, batch, moment)
        return
    entry = live.open.get(item)
    if entry is None:
        live.checks.barred.add((item, labeler))
    elif labeler not in entry.labels and labeler not in entry.barred:
        entry.barred |= {labeler}
        with contextlib.suppress(StateError):  # it was barred before the last restart
            live.engine.release(item, labeler, bar=True)
        live.collect(batch, moment)


def rename(live: LiveStream, lease: HeldLease, batch: Batch, moment: Moment) -> str:
    """Continue a lease under a new token, for a labeler who lost the old one."""
    token = lease_token(live.name)
    batch.ends.append(LeaseEnd(lease.token_hash, LeaseStatus.RELEASED, moment.wall, key=batch.key))
    live.leases.rename(lease, hashed(token))
    batch.leases.append(lease.row(live.name, batch.key))
    return token


def view(
    live: LiveStream, lease: HeldLease, token: str | None, payload: Any, moment: Moment,
    gain: float = math.nan,
) -> Lease:  # fmt: skip
    """A lease as its labeler sees it."""
    return Lease(
        token=token,
        stream=live.name,
        item=lease.item,
        labeler=lease.labeler,
        payload=payload,
        classes=live.settings.classes,
        given_at=lease.given_at,
        expires_at=moment.wall + lease.end - moment.now,
        ttl=lease.ttl,
        slot=live.engine.slot,
        gain=None if math.isnan(gain) else gain,
    )


class Offer(NamedTuple):
    """A lease for a waiting request, the stream it is of, and its commit."""

    live: LiveStream
    grant: Grant
    done: asyncio.Future[None]


class Waiter:
    """A request that waits for work for one labeler; `key` is the id of its key.

    The labeler may hold `ahead` items more than its capacity.
    """

    __slots__ = ("ahead", "future", "key", "labeler")

    def __init__(self, labeler: str, key: str | None = None, ahead: int = 0) -> None:
        self.labeler, self.key, self.ahead = labeler, key, ahead
        self.future: asyncio.Future[Offer | None] = asyncio.get_running_loop().create_future()

    def give(self, what: Offer | None) -> None:
        if not self.future.done():
            self.future.set_result(what)

    @property
    def given(self) -> Offer | None:
        """What it was served with, if anything."""
        done = self.future.done() and not self.future.cancelled()
        return self.future.result() if done else None


class WaitingRoom:
    """The requests that wait for work in a stream."""

    def __init__(self) -> None:
        self._waiters: dict[Waiter, None] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[Waiter]:
        """The waiters, longest waiting first."""
        return iter(tuple(self._waiters))

    def names(self) -> dict[str, Waiter]:
        """The longest waiting request of each labeler, in first-come order."""
        first: dict[str, Waiter] = {}
        for waiter in self._waiters:
            first.setdefault(waiter.labeler, waiter)
        return first

    async def wait(self, waiter: Waiter, seconds: float) -> Offer | None:
        """Wait to be served; what was given, or None on timeout.

        After a cancellation the waiter has left; check `waiter.given`.
        """
        self._waiters[waiter] = None
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(waiter.future)
        except TimeoutError:
            pass
        finally:
            self._waiters.pop(waiter, None)
        return waiter.given

    def serve(self, waiter: Waiter, what: Offer | None) -> None:
        self._waiters.pop(waiter, None)
        waiter.give(what)

    def dismiss(self) -> None:
        for waiter in self:
            self.serve(waiter, None)


#: After this many labelers in a row got nothing, the rest are tried all at once.
MAX_SINGLE_MISSES: Final = 4


class StreamHost(Protocol):
    """What `Offers` needs from the runtime: its streams, their steps and their commits."""

    @property
    def streams(self) -> dict[str, LiveStream]:
        """The loaded streams by name."""

    @property
    def accepting(self) -> bool:
        """Whether work may be handed out: the service runs and the store accepts writes."""

    def moment(self) -> Moment:
        """Now."""

    def step(self, live: LiveStream) -> None:
        """Expire leases and close slots that are due."""

    def commit(self, live: LiveStream, batch: Batch) -> asyncio.Future[None]:
        """Hand a batch to the writer."""


class Offers:
    """The requests that wait for work, by stream."""

    def __init__(self, host: StreamHost) -> None:
        self._host = host
        self._rooms: dict[str, WaitingRoom] = {}
        self._woken: set[str] = set()

    def room(self, name: str) -> WaitingRoom:
        return self._rooms.setdefault(name, WaitingRoom())

    def wake(self, name: str) -> None:
        """Schedule a dispatch: something has changed in the stream."""
        if name in self._rooms and name not in self._woken:
            self._woken.add(name)
            asyncio.get_running_loop().call_soon(self.dispatch, name)

    def dispatch(self, name: str) -> None:
        """Hand out work to waiting requests, longest waiting first, if a wake is pending."""
        if name not in self._woken:
            return
        self._woken.discard(name)
        live, room = self._host.streams.get(name), self.room(name)
        if live is None or not room or not self._host.accepting:
            return
        self._host.step(live)
        if live.busy is not None:
            return  # the end of the busy step wakes them
        waiting, misses = room.names(), 0
        while waiting and misses < MAX_SINGLE_MISSES:
            labeler = next(iter(waiting))
            if not self._offer(live, room, {labeler: waiting.pop(labeler)}):
                misses += 1
        for ahead in sorted({one.ahead for one in waiting.values()}):
            alike = {name: one for name, one in waiting.items() if one.ahead == ahead}
            self._offer(live, room, alike)

    def _offer(self, live: LiveStream, room: WaitingRoom, waiting: dict[str, Waiter]) -> bool:
        """Offer work to some, who may all hold the same number of items ahead."""
        batch, ahead = Batch(), next(iter(waiting.values())).ahead
        seated, trusted = live.labelers.seated, live.trusted
        asking = {
            name: one.key for name, one in waiting.items() if name in seated or name in trusted
        }
        granted = grant(live, asking, batch, self._host.moment(), ahead)
        if granted:
            future = self._host.commit(live, batch)
            for labeler, work in granted.items():
                room.serve(waiting[labeler], Offer(live, work, future))
        return bool(granted)

    def dismiss(self, name: str) -> None:
        self._woken.discard(name)
        if name in self._rooms:
            self._rooms.pop(name).dismiss()

    def dismiss_all(self) -> None:
        for room in self._rooms.values():
            room.dismiss()
