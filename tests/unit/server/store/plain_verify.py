"""The plain reference of `verify`: all of the log and the tables at once, in dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from venire import Scheduler
from venire.events import Arrived, Assigned, Closed, Observed, Withdrawn
from venire.model import ExitReason, ItemStatus, LeaseStatus
from venire.server.store import Storage, decode
from venire.server.store.contents import is_content_of


def plain_differences(storage: Storage, stream: str, after: int = 0) -> set[str]:
    """What differs, of a log that replays, in a stream without gold, audits and revisions.

    With `after`, the rows of the events from that number on, which begin at a snapshot.
    """
    log = Whole(storage, stream, after)
    return {*log.items(), *log.labels(), *log.leases()}


class Whole:
    def __init__(self, storage: Storage, stream: str, after: int) -> None:
        self.storage, self.stream, self.after = storage, stream, after
        snapshot = storage.snapshot(stream, after)
        assert snapshot is not None
        engine = Scheduler.restore(snapshot.body)
        self.open = {str(id) for id in engine.outstanding}
        self.since, self.exited = -math.inf, 0
        self.came: dict[str, tuple[int, float]] = {}
        self.left: dict[str, tuple[Any, ...]] = {}
        self.said: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.given: set[tuple[str, str, float]] = set()
        for row in storage.events(stream):
            for event in decode([row]):
                if row.n < after:
                    self.since = row.at
                    self.exited += len(event.exits) if isinstance(event, Closed) else 0
                    self.exited += isinstance(event, Withdrawn)
                else:
                    self.note(event, row.at)
        engine.follow([e for row in storage.events(stream, after - 1) for e in decode([row])])
        self.out = set(engine.in_flight)

    def note(self, event: Any, at: float) -> None:
        match event:
            case Arrived():
                self.came |= {item.id: (event.slot, at) for item in event.items}
            case Assigned():
                self.given |= {(a.item, a.labeler, at) for a in event.assignments}
            case Observed(label=x):
                self.said[x.item, x.labeler] = str(x.said), event.slot, event.late, at, x.confidence
            case Closed():
                for e in event.exits:
                    said = e.verdict.label, e.verdict.confidence, e.labels, e.reason
                    self.leave(e.item, ItemStatus.LEFT, e.slot, at, *said)
            case Withdrawn(item=item):
                labels = sum(i == item for i, _ in self.said)
                how = None, 0.0, None if item in self.open else labels, ExitReason.WITHDRAWN
                self.leave(item, ItemStatus.WITHDRAWN, event.slot, at, *how)

    def leave(self, item: str, status: str, *how: Any) -> None:
        self.left[item] = (status, self.exited + len(self.left) + 1, *how)

    def items(self) -> Iterator[str]:
        missing = {*self.came, *self.open}
        for row in self.storage.items(self.stream):
            if row.id not in missing:
                if self.open and 0 < (row.exit_n or 0) <= self.exited:
                    continue  # it left before
                yield f"item {row.id!r} is in the table but not in the log"
                continue
            missing.discard(row.id)
            slot, at = self.came.get(row.id, (row.arrived_slot, row.arrived_at))
            if slot != row.arrived_slot:
                yield f"item {row.id!r} arrived in slot {row.arrived_slot}, the log says {slot}"
            if at != row.arrived_at:
                yield f"item {row.id!r} arrived at {row.arrived_at!r}, the log says {at!r}"
            if not is_content_of(row):
                yield f"item {row.id!r} does not match the digest of its content"
            wanted = self.left.get(row.id, (ItemStatus.OPEN,))
            how = row.exit_slot, row.left_at, row.verdict, row.confidence, row.labels, row.reason
            found = (row.status, row.exit_n, *how)[: len(wanted)]
            if len(wanted) > 1 and wanted[6] is None and row.status == ItemStatus.WITHDRAWN:
                wanted = (*wanted[:6], row.labels, *wanted[7:])
            if found != wanted:
                yield f"item {row.id!r} is {found}, the log says {wanted}"
        yield from (f"item {id!r} is in the log but not in the table" for id in missing)

    def labels(self) -> Iterator[str]:
        missing = dict(self.said)
        about = {*self.came, *self.open, *(item for item, _ in self.said)}
        for row in self.storage.labels(self.stream):
            name, wanted = f"the label of {row.item!r} by {row.labeler!r}", None
            if row.item in about or not self.open:
                wanted = missing.pop((row.item, row.labeler), None)
                found = row.said, row.slot, row.late, row.at, row.confidence
                late = row.late and self.has_left(row.item)
                if wanted is None and row.at > self.since and not late:
                    yield f"{name} is in the table but not in the log"
                elif wanted is not None and found != wanted:
                    yield f"{name} is {found}, the log says {wanted}"
        for item, labeler in missing:
            yield f"the label of {item!r} by {labeler!r} is in the log but not in the table"

    def has_left(self, item: str) -> bool:
        """As the table of items says, which is compared by itself; before the start, any may."""
        row = self.storage.item(self.stream, item)
        return self.after > 0 if row is None else row.status != ItemStatus.OPEN

    def leases(self) -> Iterator[str]:
        since = None if self.since == -math.inf else self.since
        for row in self.storage.leases(self.stream, None, since):
            given = (row.item, row.labeler, row.given_at) in self.given
            if row.given_at > self.since and not given:
                who = f"{row.labeler!r} has a lease of item {row.item!r}"
                yield f"{who}, given at {row.given_at!r}, which is not in the log"
            pair = row.item, row.labeler
            if row.status == LeaseStatus.DONE and not self.storage.said(self.stream, [pair]):
                item, labeler = pair
                yield f"the lease of item {item!r} by {labeler!r} is done, but there is no label"
        held = [(row.item, row.labeler) for row in self.storage.leases(self.stream)]
        for item, labeler in self.out - set(held):
            yield f"{labeler!r} has item {item!r} by the log, but there is no open lease"
        for item, labeler in set(held) - self.out:
            if not self.has_left(item):
                yield f"{labeler!r} has an open lease of item {item!r}, but not by the log"
        if len(held) != len(set(held)):
            yield "a labeler has two open leases of one item"
