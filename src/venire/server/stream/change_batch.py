"""The changes that one step makes to the store, collected by kind.

The kinds are written in a fixed order that the store accepts, whatever was collected first: items
before their labels, leases before their ends, exits last. A step with tens of thousands of exits is
cut into several transactions (see `store.log`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from venire.server.store import (
    AuditRow,
    Change,
    CheckRow,
    CorrectGold,
    DeliveryRow,
    EndLeases,
    EventRow,
    ExitRow,
    GoldRow,
    Insert,
    ItemRow,
    LabelRow,
    LeaseEnd,
    LeaseRow,
    LeaveItems,
    NoteRow,
    RepeatRow,
    RevisionRow,
    RoutedRow,
)

#: Rows that are written in another way than by inserting them.
_CHANGES: Final[dict[str, Callable[[Sequence[Any]], Change]]] = {
    "ends": EndLeases,
    "exits": LeaveItems,
    "corrections": CorrectGold,
}


@dataclass(slots=True, eq=False)
class Batch:
    """Rows by kind, in the order in which they are written; `key` is the id of the API key, if any.

    `first` and `last` are changes of other kinds, `earlier` what is written before.

    >>> batch = Batch()
    >>> batch.ends.append(LeaseEnd("5e88", "released", 0.0))
    >>> [type(change).__name__ for change in batch.changes()]
    ['EndLeases']
    >>> batch.cut()
    >>> batch.changes(), len(batch.parts())
    ([], 2)
    """

    key: str | None = None
    earlier: list[Batch] = field(default_factory=list)
    first: list[Change] = field(default_factory=list)
    items: list[ItemRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    labels: list[LabelRow] = field(default_factory=list)
    repeats: list[RepeatRow] = field(default_factory=list)
    leases: list[LeaseRow] = field(default_factory=list)
    notes: list[NoteRow] = field(default_factory=list)
    ends: list[LeaseEnd] = field(default_factory=list)
    exits: list[ExitRow] = field(default_factory=list)
    revisions: list[RevisionRow] = field(default_factory=list)
    checks: list[CheckRow] = field(default_factory=list)
    gold: list[GoldRow] = field(default_factory=list)
    corrections: list[GoldRow] = field(default_factory=list)
    deliveries: list[DeliveryRow] = field(default_factory=list)
    routed: list[RoutedRow] = field(default_factory=list)
    audit: list[AuditRow] = field(default_factory=list)
    last: list[Change] = field(default_factory=list)

    def cut(self) -> None:
        """What was collected so far is a transaction of its own, before what comes now."""
        part = Batch(self.key)
        for name in ("first", "last", *_KINDS):
            setattr(part, name, getattr(self, name))
            setattr(self, name, [])
        self.earlier.append(part)

    def parts(self) -> list[Batch]:
        return [*self.earlier, self]

    @property
    def reached(self) -> tuple[int, int, int]:
        """The numbers of the last event, exit and revision; -1 or 0 if there is none."""
        event = self.events[-1].n + self.events[-1].size - 1 if self.events else -1
        exit = self.exits[-1].exit_n if self.exits else 0
        return event, exit, self.revisions[-1].n if self.revisions else 0

    def changes(self) -> list[Change]:
        """The changes, in order."""
        made = list(self.first)
        for name in _KINDS:
            rows = getattr(self, name)
            if rows:
                made.append(_CHANGES.get(name, Insert)(rows))
        return made + self.last


#: What is inserted or written as `_CHANGES` says, in its order.
_KINDS: Final = tuple(each.name for each in fields(Batch))[3:-1]


class LogPosition:
    """The last event, exit and revision on disk; wakes those who wait for more."""

    def __init__(self) -> None:
        self.event, self.exit, self.revision = -1, 0, 0
        self.ended = False
        self._more: asyncio.Event | None = None

    def advance(self, event: int, exit: int, revision: int) -> None:
        self.event, self.exit = max(self.event, event), max(self.exit, exit)
        self.revision = max(self.revision, revision)
        self.notify()

    def notify(self) -> None:
        if self._more is not None:
            self._more.set()
            self._more = None

    def end(self) -> None:
        """Mark the end: the stream is deleted."""
        self.ended = True
        self.notify()

    async def wait_for_event(self, event: int, seconds: float) -> bool:
        """Wait up to `seconds` for an event after this one; whether there is one."""
        return await self.wait(lambda position: position.event > event, seconds)

    async def wait(self, condition: Callable[[LogPosition], bool], seconds: float) -> bool:
        """Wait up to `seconds` until the condition holds; whether it does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition(self) and not self.ended:
                    self._more = self._more or asyncio.Event()
                    await self._more.wait()
        return condition(self)
