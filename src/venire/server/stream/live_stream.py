"""A stream in memory: the engine, and what the service keeps beside it.

Everything here is synchronous and runs on one loop. Each step changes memory at once and collects
in a `Batch` what the store has to write; the caller commits the batch before anything else can
happen, so the order on disk is the order in memory.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from venire.engine import Scheduler, untracked
from venire.errors import StateError
from venire.events import Closed, Event, GoldGiven, Revised, Withdrawn
from venire.model import (
    NOBODY,
    Exit,
    ExitReason,
    Item,
    ItemStatus,
    LeaseStatus,
    Revision,
    StreamStatus,
    Verdict,
)
from venire.server.clock import Clock, SlotClock
from venire.server.settings import StreamSettings
from venire.server.store import (
    AlarmRow,
    DeliveryRow,
    ExitRow,
    ItemRow,
    LeaseEnd,
    RevisionRow,
    RoutedRow,
    SettleFollow,
    encode,
)
from venire.server.store.log import MAX_PART, in_parts
from venire.server.store.maintenance.guaranteed import Guaranteed, Tested
from venire.server.store.records import SegmentRow
from venire.server.stream.change_batch import Batch
from venire.server.stream.checks import Checks, FollowUps, Repeats
from venire.server.stream.engine_setup import StreamPupil, bounds_of, budget_of
from venire.server.stream.leases import (
    REMEMBERED,
    HeldLease,
    Labelers,
    LeadTimes,
    LeaseIndex,
    Leases,
    RecentDict,
)
from venire.server.stream.statistics import Statistics

#: Longer payloads, in characters, are not kept in memory but read when an item is leased, ...
LARGE_PAYLOAD: Final = 4096

#: ... and so are those of a stream beyond this many characters in all.
MAX_PAYLOADS: Final = 64 * 2**20

#: Seconds to close slots for, before others get a turn.
CLOSING_SECONDS: Final = 0.02

#: From this many open items, or labels to learn from, closing a slot may take long.
LARGE_STREAM: Final = 1000


#: A verdict and its confidence, as they are stored.
Said: TypeAlias = tuple[str | None, float]


class Moment(NamedTuple):
    """A moment, on both clocks."""

    now: float
    wall: float

    @classmethod
    def of(cls, clock: Clock) -> Moment:
        return cls(clock.monotonic(), clock.wall())


@dataclass(slots=True)
class OpenItem:
    """An open item. `payload` is None if it is too large to keep in memory."""

    item: Item
    digest: str
    payload: str | None
    weight: float
    arrived_slot: int
    arrived_at: float
    arrived: float
    labels: dict[str, str] = field(default_factory=dict)
    holders: frozenset[str] = frozenset()  # mostly empty, and then shared
    barred: frozenset[str] = frozenset()

    def may(self, labeler: str) -> bool:
        """Whether the labeler is eligible."""
        only = self.item.eligible
        if labeler in self.item.excluded or labeler in self.barred:
            return False
        return only is None or labeler in only

    @classmethod
    def of(cls, row: ItemRow, item: Item, now: float) -> OpenItem:
        payload = row.payload if 0 < len(row.payload) <= LARGE_PAYLOAD else None
        return cls(item, row.digest, payload, row.weight, row.arrived_slot, row.arrived_at, now)


class ExitedItem(NamedTuple):
    """An item that left recently: the digest of its content, and its labels."""

    digest: str
    labels: dict[str, str]


class LiveStream:
    """A stream in service."""

    def __init__(
        self,
        name: str,
        engine: Scheduler,
        settings: StreamSettings,
        moment: Moment,
        lease_index: LeaseIndex,
        *,
        version: int = 1,
        status: StreamStatus = StreamStatus.RUNNING,
        created_at: float = 0.0,
    ) -> None:
        self.name, self.engine, self.settings = name, engine, settings
        self.version, self.status, self.created_at = version, status, created_at
        self.n = self.exit_n = self.revision_n = self.snapshot_n = self.note_n = 0
        self.notes: Counter[str] = Counter()  # by kind
        self.open: dict[str, OpenItem] = {}
        self.exited: RecentDict[str, ExitedItem] = RecentDict(REMEMBERED)
        self.late: RecentDict[tuple[str, str], str] = RecentDict(REMEMBERED)
        self.classes = frozenset(settings.classes)
        self.leases, self.answers = Leases(lease_index.streams, name), lease_index.answers
        self.lapsed = lease_index.lapsed
        self.labelers, self.lead_times, self.statistics = Labelers(), LeadTimes(), Statistics()
        self.checks, self.pupil, self.follow_ups = Checks(), StreamPupil(), FollowUps()
        self.repeats = Repeats()
        self.hooks: dict[str, None] = {}
        self.alarms: dict[tuple[str, str], AlarmRow] = {}  # those that are on
        self.basis: tuple[int, tuple[float, str] | None] = (0, None)  # version; what changed when
        #: What is guaranteed, what it was computed from, and by how many exits and answers.
        self.guaranteed: tuple[tuple[int, ...], Tested | None, Guaranteed | None] | None = None
        self.alarm_n = 0
        self.resumed: list[HeldLease] = []
        self.spent = False
        self.payload_chars = 0  # characters of payloads
        self.unwritten: Closed | None = None  # exits of a slot that is closed in part on disk
        self.segment: SegmentRow | None = None  # the last segment of what is not in the store
        self.takeover: bytes | None = None  # a snapshot to write, if another version wrote the log
        self.busy: asyncio.Future[None] | None = None  # set while a thread works on it
        self.max_labelers = 10_000
        self.slots = SlotClock(
            engine.slot, moment.now, settings.slot_seconds, paused=status == StreamStatus.PAUSED
        )

    def check_writable(self) -> None:
        if self.status == StreamStatus.ARCHIVED:
            raise StateError(
                f"stream {self.name!r} is archived, and can only be read: restore it first"
            )

    def finish_slot(self, batch: Batch, moment: Moment) -> None:
        """After loading: collect the exits of the last slot that did not get to the disk."""
        event, self.unwritten = self.unwritten, None
        if event is not None:
            self._record([event], batch, moment)

    def reconcile(self, batch: Batch, moment: Moment) -> None:
        """After loading: resume open leases, each with its full time, and align the engine.

        Labelers who are no longer seated leave the engine.
        """
        for lease in self.resumed:
            s = self.settings
            lease.ttl = self.lead_times.ttl(
                lease.labeler, s.lease_floor_seconds, s.lease_ceiling_seconds
            )
            lease.end = moment.now + lease.ttl
            entry = self.open.get(lease.item)
            lease.of_open = entry is not None
            if entry is not None:
                entry.holders |= {lease.labeler}
            self.leases.add(lease)
        self.resumed = []
        for name in self.engine.seated:
            if name not in self.labelers.seated:
                self.engine.leave(name)
        bounds = bounds_of(self.settings, self.spent)
        if bounds != self.engine.bounds:  # an older version derived other bounds
            self.engine.change(bounds=bounds)
        budget = budget_of(self.settings)
        if budget != self.engine.budget:
            self.engine.change(budget=budget or "none")
        self.collect(batch, moment)

    # time

    def due(self, now: float) -> float:
        """When this stream next needs a step, if nothing happens; inf if never."""
        slot = self.slots.next_at(now) if self.open else float("inf")
        return min(slot, self.leases.next_end())

    def is_due(self, now: float) -> bool:
        """Whether a slot has to be closed or a lease has expired."""
        return self.slots.at(now) > self.engine.slot or self.leases.next_end() <= now

    @property
    def is_large(self) -> bool:
        """Whether closing a slot may take so long that it needs a thread."""
        return len(self.open) >= LARGE_STREAM or self.statistics.labels >= LARGE_STREAM

    def step(self, moment: Moment, clock: Clock) -> Batch | None:
        """Expire leases and close slots that are due; None if there is nothing to write."""
        if not self.is_due(moment.now):
            return None
        batch = Batch()
        for lease in self.leases.due(moment.now):
            self.leases.pop(lease)
            self.labelers.record(lease.labeler).expired += 1
            if lease.item in self.open:
                self.open[lease.item].holders -= {lease.labeler}
                self.engine.release(lease.item, lease.labeler)
            self.lapsed.put(lease.token_hash, (self.name, lease))
            batch.ends.append(LeaseEnd(lease.token_hash, LeaseStatus.EXPIRED, moment.wall))
        self._close_slots(moment, clock)
        self.collect(batch, moment)
        self.check_budget(batch, moment)
        return batch if batch.events or batch.ends else None

    def _close_slots(self, moment: Moment, clock: Clock) -> None:
        """Close the slots that are over, within a time limit.

        Slots that cannot be closed in time are skipped, and the clock stands still for as long as
        this took. The number of slots doubles at each attempt, since idle slots cost nothing.
        """
        slot, count = self.slots.at(moment.now), 1
        while self.engine.slot < slot:
            self.engine.advance(min(slot, self.engine.slot + count))
            count *= 2
            took = clock.monotonic() - moment.now
            if took > CLOSING_SECONDS and self.engine.slot < slot:
                until = clock.monotonic() + took
                self.statistics.slots_skipped += self.slots.fall_behind(self.engine.slot, until)
                return

    def collect(self, batch: Batch, moment: Moment) -> None:
        """Collect the engine's events and exits into the batch."""
        self._record(self.engine.drain(), batch, moment)

    def _record(self, events: Sequence[Event], batch: Batch, moment: Moment) -> None:
        """Collect events; the batch is cut where slots were closed in which many items left."""
        for run in _runs(events):
            if len(batch.exits) + len(batch.revisions) + _size(run) > MAX_PART:
                batch.cut()
            batch.events += encode(self.name, self.n, moment.wall, run)
            self.n += len(run)
            for event in run:
                self._record_event(event, batch, moment)
        settled = self.follow_ups.settle(self.engine)
        if settled:
            batch.last += [SettleFollow(self.name, item, moment.wall) for item in settled]
            self.collect(batch, moment)

    def _record_event(self, event: Event, batch: Batch, moment: Moment) -> None:
        if isinstance(event, Closed):
            for exit in event.exits:
                self._record_exit(exit, ItemStatus.LEFT, batch, moment)
            for revision in event.revisions:
                self._record_revision(revision, batch, moment)
        elif isinstance(event, GoldGiven):
            self.follow_ups.decided(event.item)
            if event.revision is not None:
                self._record_revision(event.revision, batch, moment)
        elif isinstance(event, Revised):
            self._record_revision(event.revision, batch, moment)
        elif isinstance(event, Withdrawn):
            entry = self.open[event.item]
            exit = Exit(event.item, entry.arrived_slot, event.slot, len(entry.labels),
                        Verdict(None, 0.0), ExitReason.WITHDRAWN)  # fmt: skip
            self._record_exit(exit, ItemStatus.WITHDRAWN, batch, moment)

    def _record_exit(self, exit: Exit, status: ItemStatus, batch: Batch, moment: Moment) -> None:
        entry = self.open.pop(exit.item)
        self.payload_chars -= 0 if entry.payload is None else len(entry.payload)
        self.exited.put(exit.item, ExitedItem(entry.digest, entry.labels))
        self.exit_n += 1
        verdict, confidence = _said(exit.verdict)
        row = ExitRow(
            stream=self.name,
            id=exit.item,
            status=status,
            exit_n=self.exit_n,
            exit_slot=exit.slot,
            left_at=moment.wall,
            verdict=verdict,
            confidence=confidence,
            labels=exit.labels,
            reason=exit.reason,
        )
        batch.exits.append(untracked(row))
        said = [(verdict, confidence)] if status == ItemStatus.LEFT else []
        self._queue_deliveries(self.exit_n, "exit", said, batch, moment)
        self._route(exit.item, said, batch, moment)
        self.follow_ups.leave(exit)
        self.statistics.history.went(moment.now, status == ItemStatus.LEFT)
        for labeler in entry.holders:
            lease = self.leases.of_pair(exit.item, labeler)
            if lease is not None:
                self.leases.item_left(lease)
        if status == ItemStatus.LEFT:
            how = self.settings.audit_share, moment.wall, self.settings.audit_at_least
            batch.checks += self.checks.draw(self.name, exit.item, verdict, *how)
        else:
            self.checks.open_gold.discard(exit.item)
        if status == ItemStatus.WITHDRAWN:
            self.statistics.withdrawn += 1
            return
        agree = sum(label == verdict for label in entry.labels.values())
        agreed = agree / len(entry.labels) if entry.labels else 0.0
        self.statistics.add_exit(exit, moment.now - entry.arrived, agreed, moment.now)

    def _record_revision(self, revision: Revision, batch: Batch, moment: Moment) -> None:
        self.revision_n += 1
        before, was_sure = _said(revision.before)
        verdict, sure = _said(revision.verdict)
        batch.revisions.append(
            RevisionRow(
                stream=self.name,
                n=self.revision_n,
                item=revision.item,
                slot=revision.slot,
                at=moment.wall,
                before=before,
                before_confidence=was_sure,
                verdict=verdict,
                confidence=sure,
                labels=revision.labels,
            )
        )
        said = [(before, was_sure), (verdict, sure)]
        self._queue_deliveries(self.revision_n, "revision", said, batch, moment)
        self.follow_ups.revise(revision)

    def _route(self, item: str, said: list[Said], batch: Batch, moment: Moment) -> None:
        """Write down where the verdict of an item sends it; `operations.routing` does that.

        An item that was sent back goes nowhere: its original did.
        """
        again = item in self.follow_ups.original
        batch.routed += [
            RoutedRow(
                stream=self.name,
                item=item,
                kind=kind,
                target=target,
                at=moment.wall,
                verdict=verdict,
                confidence=confidence,
            )
            for verdict, confidence in said
            for kind, target in self.settings.places(verdict, confidence)
            if (target in self.hooks if kind == "webhook" else not again)
        ]

    def _queue_deliveries(
        self, n: int, kind: str, said: list[Said], batch: Batch, moment: Moment
    ) -> None:
        """Queue an exit or a revision for every webhook; `said` are the verdicts that it tells."""
        wanted = {place for one in said for place in self.settings.places(*one)}
        only = self.settings.routed_hooks
        batch.deliveries += [
            untracked(
                DeliveryRow(
                    webhook=hook,
                    stream=self.name,
                    exit_n=n,
                    attempt=0,
                    next_at=moment.wall,
                    kind=kind,
                )
            )
            for hook in self.hooks
            if hook not in only or ("webhook", hook) in wanted
        ]

    # the label budget

    @property
    def budget_left(self) -> int | None:
        """How many more labels may be requested; open leases count as labels."""
        budget = self.settings.label_budget
        if budget is None:
            return None
        return max(0, budget - self.bought - self.leases.in_flight - self.leases.again.total())

    @property
    def bought(self) -> int:
        """How many answers were bought: labels, and those of labelers who were asked again."""
        return self.statistics.labels + self.repeats.answers

    def check_budget(self, batch: Batch, moment: Moment) -> None:
        """Tell the engine once the label budget is spent: items then do not wait for labels."""
        budget = self.settings.label_budget
        spent = budget is not None and self.bought >= budget and not self.leases.in_flight
        if spent == self.spent:
            return
        self.spent = spent
        self.engine.change(bounds=bounds_of(self.settings, spent))
        self.collect(batch, moment)

    # items

    def arrive(self, rows: list[ItemRow], batch: Batch, moment: Moment) -> None:
        cost = self.settings.delay_cost
        entries = [OpenItem.of(row, _item(row, row.weight / cost), moment.now) for row in rows]
        self.engine.arrive([entry.item for entry in entries])
        batch.items += rows
        for entry in entries:
            self.enter(entry)
        self.statistics.history.came(moment.now, len(entries))
        self.collect(batch, moment)

    def enter(self, entry: OpenItem) -> None:
        """Keep an open item, with its payload if there is room."""
        size = 0 if entry.payload is None else len(entry.payload)
        if self.payload_chars + size > MAX_PAYLOADS:
            entry.payload, size = None, 0
        self.payload_chars += size
        self.open[entry.item.id] = untracked(entry)
        if self.settings.student is not None:
            self.pupil.unseen.append(entry.item.id)
        untracked(self.open)  # an insertion makes the collector track it again

    def heard(self, item: str, labeler: str, said: str) -> None:
        """A label or gold of an open item was taken: the item may leave on it alone."""
        if self.settings.leaves_on(said, labeler):
            self.engine.suffice(item, labeler, said)

    def withdraw(self, item: str, batch: Batch, moment: Moment) -> None:
        self.engine.withdraw(item)
        self.collect(batch, moment)

    @property
    def voices(self) -> frozenset[str]:
        return self.pupil.voices(self.settings)

    @property
    def trusted(self) -> frozenset[str]:
        """The labelers whose word is gold; they are given audits, and no other work."""
        return self.settings.trusted

    def posterior(self, item: str) -> dict[str, float]:
        return {str(name): p for name, p in self.engine.posterior(item).items()}


def _runs(events: Iterable[Event]) -> Iterator[Sequence[Event]]:
    """Events that are written together; the parts of a closed slot are on their own."""
    for closed, run in groupby(events, key=lambda event: isinstance(event, Closed)):
        if not closed:
            yield list(run)
            continue
        for event in run:
            assert isinstance(event, Closed)
            yield from ([part] for part in in_parts(event, MAX_PART))


def _size(run: Iterable[Event]) -> int:
    """How many exits and revisions there are in these events."""
    return sum(len(x.exits) + len(x.revisions) for x in run if isinstance(x, Closed))


def _said(verdict: Verdict) -> tuple[str | None, float]:
    return None if verdict.label is None else str(verdict.label), verdict.confidence


def _item(row: ItemRow, weight: float) -> Item:
    """The engine's item for a row."""
    only = None if row.eligible is None else frozenset(json.loads(row.eligible))
    barred = NOBODY if row.excluded == "[]" else frozenset(json.loads(row.excluded))
    return Item(row.id, weight, only, barred, row.min_confidence)
