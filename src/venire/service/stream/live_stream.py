"""A stream in memory: the engine, and what the service keeps beside it.

Everything here is synchronous and happens on one loop. Each step changes the memory at once and
notes in a `Batch` what the store is to keep; whoever called it submits the batch before it lets
anything else happen, so the order on disk is the order in memory.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from venire.engine import Scheduler, untracked
from venire.events import Closed, Withdrawn
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
from venire.service.clock import Clock
from venire.service.messages import Answer
from venire.service.settings import StreamSettings
from venire.service.stream.change_batch import Batch
from venire.service.stream.engine_setup import bounds_of
from venire.service.stream.labelers import People
from venire.service.stream.leases import Held, Leases
from venire.service.stream.slot_clock import LeadTimes, SlotClock
from venire.service.stream.statistics import Figures
from venire.storage import DeliveryRow, ExitRow, ItemRow, LeaseEnd, RevisionRow, encode

__all__ = ["Entry", "Gone", "Live", "Moment", "Recent", "Tokens"]

#: A payload of more characters is not kept in memory but read when it is handed out, ...
LARGE: Final = 4096

#: ... and so are those of a stream beyond so many characters in all.
KEPT: Final = 64 * 2**20

#: So many items that have left lately are remembered with their labels.
GONE: Final = 20_000

#: Slots are closed for about so many seconds in one go.
BUSY: Final = 0.02

#: With so many open items, or so many labels to learn from, a slot may take long to close.
LONG: Final = 1000

K = TypeVar("K")
V = TypeVar("V")


class Moment(NamedTuple):
    """Now, on both clocks."""

    now: float
    wall: float

    @classmethod
    def of(cls, clock: Clock) -> Moment:
        """What the clock says."""
        return cls(clock.monotonic(), clock.wall())


class Recent(OrderedDict[K, V], Generic[K, V]):
    """The last few entries.

    >>> recent = Recent(2)
    >>> for letter in "abc":
    ...     recent.put(letter, ord(letter))
    >>> list(recent)
    ['b', 'c']
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def put(self, key: K, value: V) -> None:
        """Add an entry; the oldest goes if there are too many."""
        self[key] = value
        if len(self) > self.size:
            self.popitem(last=False)


@dataclass(slots=True)
class Entry:
    """An item that has not left. `payload` is None where it is too large to be kept here."""

    item: Item
    digest: str
    payload: str | None
    weight: float
    arrived_slot: int
    arrived_at: float
    arrived: float
    labels: dict[str, str] = field(default_factory=dict)
    holders: frozenset[str] = frozenset()  # mostly empty, and then one for all
    barred: frozenset[str] = frozenset()

    def may(self, labeler: str) -> bool:
        """Whether the labeler is allowed to label it."""
        only = self.item.eligible
        if labeler in self.item.excluded or labeler in self.barred:
            return False
        return only is None or labeler in only

    @classmethod
    def of(cls, row: ItemRow, item: Item, now: float) -> Entry:
        """From what the store keeps, and the item as the engine has it."""
        payload = row.payload if 0 < len(row.payload) <= LARGE else None
        return cls(item, row.digest, payload, row.weight, row.arrived_slot, row.arrived_at, now)


class Gone(NamedTuple):
    """An item that has left lately: the digest of its content, and who said what of it."""

    digest: str
    labels: dict[str, str]


class Tokens:
    """The leases of all streams by the hash of their token.

    `streams` says to which stream an open lease belongs, `answers` what a label was answered
    lately, `lapsed` which leases ended lately without a label.
    """

    def __init__(self) -> None:
        self.streams: dict[str, str] = {}
        self.answers: Recent[str, Answer] = Recent(GONE)
        self.lapsed: Recent[str, tuple[str, Held]] = Recent(GONE)

    def forget(self, stream: str) -> None:
        """A stream is deleted: so are its leases."""
        for token in [token for token, name in self.streams.items() if name == stream]:
            del self.streams[token]
        for token in [token for token, made in self.answers.items() if made.stream == stream]:
            del self.answers[token]
        for token in [token for token, (name, _) in self.lapsed.items() if name == stream]:
            del self.lapsed[token]

    def clear(self) -> None:
        """Forget everything: the store knows it."""
        self.streams.clear()
        self.answers.clear()
        self.lapsed.clear()


class Live:
    """A stream as it is served."""

    def __init__(
        self,
        name: str,
        engine: Scheduler,
        settings: StreamSettings,
        moment: Moment,
        tokens: Tokens,
        *,
        version: int = 1,
        status: StreamStatus = StreamStatus.RUNNING,
        created_at: float = 0.0,
    ) -> None:
        self.name, self.engine, self.settings = name, engine, settings
        self.version, self.status, self.created_at = version, status, created_at
        self.n = self.exit_n = self.revision_n = self.snapshot_n = 0
        self.open: dict[str, Entry] = {}
        self.gone: Recent[str, Gone] = Recent(GONE)
        self.late: Recent[tuple[str, str], str] = Recent(GONE)
        self.classes = frozenset(settings.classes)
        self.leases, self.answers = Leases(tokens.streams, name), tokens.answers
        self.lapsed = tokens.lapsed
        self.people, self.lead, self.figures = People(), LeadTimes(), Figures()
        self.hooks: dict[str, None] = {}
        self.resumed: list[Held] = []
        self.spent = False
        self.kept = 0  # characters of payloads
        self.begins_with: bytes | None = None  # the state, if another version wrote the log
        self.busy: asyncio.Future[None] | None = None  # a thread works on it: do not touch
        self.most_people = 10_000
        self.slots = SlotClock(
            engine.slot, moment.now, settings.slot_seconds, paused=status == StreamStatus.PAUSED
        )

    def rejoin(self, batch: Batch, moment: Moment) -> None:
        """After loading: leases that were open go on, each with its full time before it.

        Nobody keeps a place in the engine who may not be given work.
        """
        for lease in self.resumed:
            s = self.settings
            lease.ttl = self.lead.ttl(lease.labeler, s.lease_floor_seconds, s.lease_ceiling_seconds)
            lease.end = moment.now + lease.ttl
            entry = self.open.get(lease.item)
            lease.of_open = entry is not None
            if entry is not None:
                entry.holders |= {lease.labeler}
            self.leases.add(lease)
        self.resumed = []
        for name in self.engine.seated:
            if name not in self.people.seated:
                self.engine.leave(name)
        bounds = bounds_of(self.settings, self.spent)
        if bounds != self.engine.bounds:  # an older version took the settings for something else
            self.engine.change(bounds=bounds)
        self.gather(batch, moment)

    # time

    def due(self, now: float) -> float:
        """When this stream has to be looked at again, if nothing happens; inf if never."""
        slot = self.slots.next_at(now) if self.open else float("inf")
        return min(slot, self.leases.next_end())

    def is_due(self, now: float) -> bool:
        """Whether a slot has to be closed or a lease has ended."""
        return self.slots.at(now) > self.engine.slot or self.leases.next_end() <= now

    @property
    def is_long(self) -> bool:
        """Whether closing a slot may take so long that others had to wait."""
        return len(self.open) >= LONG or self.figures.labels >= LONG

    def step(self, moment: Moment, clock: Clock) -> Batch | None:
        """Let time pass: leases end, slots close, items leave. None if nothing is to be kept."""
        if not self.is_due(moment.now):
            return None
        batch = Batch()
        for lease in self.leases.due(moment.now):
            self.leases.pop(lease)
            self.people.known(lease.labeler).expired += 1
            if lease.item in self.open:
                self.open[lease.item].holders -= {lease.labeler}
                self.engine.release(lease.item, lease.labeler)
            self.lapsed.put(lease.token_hash, (self.name, lease))
            batch.ends.append(LeaseEnd(lease.token_hash, LeaseStatus.EXPIRED, moment.wall))
        self._close_slots(moment, clock)
        self.gather(batch, moment)
        self.mind_budget(batch, moment)
        return batch if batch.events or batch.ends else None

    def _close_slots(self, moment: Moment, clock: Clock) -> None:
        """Close the slots that are over, but do not keep everybody else waiting for it.

        What cannot be closed in time does not pass, and for as long as this took, no slot
        passes either. Twice as many are tried each time, since idle slots cost nothing.
        """
        slot, count = self.slots.at(moment.now), 1
        while self.engine.slot < slot:
            self.engine.advance(min(slot, self.engine.slot + count))
            count *= 2
            took = clock.monotonic() - moment.now
            if took > BUSY and self.engine.slot < slot:
                until = clock.monotonic() + took
                self.figures.slots_skipped += self.slots.fall_behind(self.engine.slot, until)
                return

    def gather(self, batch: Batch, moment: Moment) -> None:
        """Note what the engine has written down, and who left."""
        events = self.engine.drain()
        if not events:
            return
        batch.events += encode(self.name, self.n, moment.wall, events)
        self.n += len(events)
        for event in events:
            if isinstance(event, Closed):
                for exit in event.exits:
                    self._leaves(exit, ItemStatus.LEFT, batch, moment)
                for revision in event.revisions:
                    self._revised(revision, batch, moment)
            elif isinstance(event, Withdrawn):
                entry = self.open[event.item]
                exit = Exit(event.item, entry.arrived_slot, event.slot, len(entry.labels),
                            Verdict(None, 0.0), ExitReason.WITHDRAWN)  # fmt: skip
                self._leaves(exit, ItemStatus.WITHDRAWN, batch, moment)

    def _leaves(self, exit: Exit, status: ItemStatus, batch: Batch, moment: Moment) -> None:
        entry = self.open.pop(exit.item)
        self.kept -= 0 if entry.payload is None else len(entry.payload)
        self.gone.put(exit.item, Gone(entry.digest, entry.labels))
        self.exit_n += 1
        verdict, confidence = _said(exit.verdict)
        batch.exits.append(
            ExitRow(self.name, exit.item, status, self.exit_n, exit.slot, moment.wall,
                    verdict, confidence, exit.labels, exit.reason)
        )  # fmt: skip
        self._deliver(self.exit_n, "exit", batch, moment)
        for labeler in entry.holders:
            lease = self.leases.of_pair(exit.item, labeler)
            if lease is not None:
                self.leases.let_go(lease)
        if status == ItemStatus.WITHDRAWN:
            self.figures.withdrawn += 1
            return
        agree = sum(label == verdict for label in entry.labels.values())
        share = agree / len(entry.labels) if entry.labels else 0.0
        self.figures.exited(exit, moment.now - entry.arrived, share, moment.now)

    def _revised(self, revision: Revision, batch: Batch, moment: Moment) -> None:
        self.revision_n += 1
        before, now = _said(revision.before), _said(revision.verdict)
        batch.revisions.append(
            RevisionRow(self.name, self.revision_n, revision.item, revision.slot, moment.wall,
                        *before, *now, revision.labels)
        )  # fmt: skip
        self._deliver(self.revision_n, "revision", batch, moment)

    def _deliver(self, n: int, kind: str, batch: Batch, moment: Moment) -> None:
        """Have an exit or a revision sent to every webhook."""
        batch.deliveries += [
            DeliveryRow(hook, self.name, n, 0, moment.wall, kind=kind) for hook in self.hooks
        ]

    # the budget of labels

    @property
    def budget_left(self) -> int | None:
        """How many more labels may be asked for; leases count as labels."""
        budget = self.settings.label_budget
        if budget is None:
            return None
        return max(0, budget - self.figures.labels - self.leases.in_flight)

    def mind_budget(self, batch: Batch, moment: Moment) -> None:
        """Once all labels are there that may be had, nothing is waited for."""
        budget = self.settings.label_budget
        spent = budget is not None and self.figures.labels >= budget and not self.leases.in_flight
        if spent == self.spent:
            return
        self.spent = spent
        self.engine.change(bounds=bounds_of(self.settings, spent))
        self.gather(batch, moment)

    # items

    def arrive(self, rows: list[ItemRow], batch: Batch, moment: Moment) -> None:
        """New items enter."""
        cost = self.settings.delay_cost
        entries = [Entry.of(row, _item(row, row.weight / cost), moment.now) for row in rows]
        self.engine.arrive([entry.item for entry in entries])
        batch.items += rows
        for entry in entries:
            self.enter(entry)
        self.gather(batch, moment)

    def enter(self, entry: Entry) -> None:
        """Keep an item that is open, with its payload if there is room."""
        size = 0 if entry.payload is None else len(entry.payload)
        if self.kept + size > KEPT:
            entry.payload, size = None, 0
        self.kept += size
        self.open[entry.item.id] = untracked(entry)
        untracked(self.open)  # what is put into a dictionary has it tracked again

    def withdraw(self, item: str, batch: Batch, moment: Moment) -> None:
        """An item is taken out."""
        self.engine.withdraw(item)
        self.gather(batch, moment)

    def posterior(self, item: str) -> dict[str, float]:
        """How probable each class is for an open item."""
        return {str(name): p for name, p in self.engine.posterior(item).items()}


def _said(verdict: Verdict) -> tuple[str | None, float]:
    return None if verdict.label is None else str(verdict.label), verdict.confidence


def _item(row: ItemRow, weight: float) -> Item:
    """An item as the engine is to have it."""
    only = None if row.eligible is None else frozenset(json.loads(row.eligible))
    barred = NOBODY if row.excluded == "[]" else frozenset(json.loads(row.excluded))
    return Item(row.id, weight, only, barred)
