"""Items and revisions of a log, compared with the tables in the order in which they are numbered.

Exits are numbered, in the log and in the table, so both are read side by side. What is kept of an
item is dropped when it has left and its row was read: memory is for the items that are open, a
window of exits, and what differs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from venire.errors import StoreError
from venire.model import Exit, ExitReason, Item, ItemStatus, Revision, Verdict
from venire.server.store.base import Storage
from venire.server.store.contents import compact, is_content_of
from venire.server.store.maintenance.marks import Mark
from venire.server.store.records import ERASED, ItemRow, SettingsRow

#: Rows to read at once; with their payloads.
_CHUNK: Final = 2_000

#: An item, and when it came: slot and time, which are not known of one that was open at the start.
Came: TypeAlias = tuple[Item, int | None, float | None]


class ItemsCompared:
    """How items came and left, by the log, against their rows.

    `drawn` are items of which it is remembered how they left.
    """

    def __init__(
        self, storage: Storage, stream: str, start: Mark, drawn: Iterable[str] = ()
    ) -> None:
        self._storage, self._stream = storage, stream
        self._costs = {_delay_cost(row) for row in storage.settings(stream)}
        self.open: dict[str, Came] = {}
        self.labelled: Counter[str] = Counter()  # labels since the start, of items that are open
        self.came, self.exits, self._read = 0, start.exits, start.exits
        self.drawn: dict[str, tuple[Any, ...] | None] = dict.fromkeys(drawn)
        self.left: dict[str, tuple[Came, tuple[Any, ...]]] = {}  # whose rows were not read yet
        self._strange: dict[str, ItemRow] = {}  # rows of items that have not left yet

    def start_with(self, items: Iterable[Item]) -> None:
        """These were open at the start."""
        self.open |= {str(item.id): (item, None, None) for item in items}
        self.came += len(self.open)

    def arrive(self, items: Iterable[Item], slot: int, at: float) -> None:
        """Items came."""
        for item in items:
            self.open[item.id] = item, slot, at
            self.came += 1

    def leave(self, e: Exit, at: float) -> None:
        """An item left with a verdict."""
        how = (*said(e.verdict), e.labels, e.reason)
        self._leave(e.item, ItemStatus.LEFT, e.slot, at, *how)

    def withdraw(self, item: str, slot: int, at: float) -> None:
        """An item was withdrawn; one that was open at the start may have had labels before."""
        labels = None if self.open[item][1] is None else self.labelled[item]
        self._leave(item, ItemStatus.WITHDRAWN, slot, at, None, 0.0, labels, ExitReason.WITHDRAWN)

    def _leave(self, item: str, status: str, *how: Any) -> None:
        self.labelled.pop(item, None)
        self.exits += 1
        left = (status, self.exits, *how)
        self.left[item] = self.open.pop(item), left
        if item in self.drawn:
            self.drawn[item] = left

    def flush(self) -> Iterator[str]:
        """Compare what has left so far."""
        while self._read < self.exits:
            rows = self._exits(min(_CHUNK, self.exits - self._read))
            if not rows:
                break
            for row in rows:
                yield from self._content(row)
                if row.id in self.left:
                    yield from self._differences(row, *self.left.pop(row.id))
                else:
                    self._strange[row.id] = row._replace(payload="")
        for id in self.left.keys() & self._strange.keys():
            yield from self._differences(self._strange.pop(id), *self.left.pop(id))

    def finish(self) -> Iterator[str]:
        """Compare the rest: all that is open, and what was not found in its place."""
        yield from self.flush()
        while rows := self._exits(_CHUNK):
            for row in rows:
                yield from self._content(row)
                self._strange[row.id] = row._replace(payload="")
        for row in self._strange.values():
            yield from self._placed(row)
        for row in self._storage.stray_items(self._stream):
            yield from (*self._content(row), *self._placed(row))
        for row in self._storage.open_items(self._stream, sys.maxsize):
            if row.exit_n is None:  # else it was read with those that left
                yield from (*self._content(row), *self._placed(row))
        for id in (*self.left, *self.open):
            yield f"item {id!r} is in the log but not in the table"

    def _exits(self, limit: int) -> list[ItemRow]:
        rows = self._storage.exits(self._stream, self._read, limit, True)
        if rows:
            self._read = rows[-1].exit_n or 0
        return rows

    def _placed(self, row: ItemRow) -> Iterator[str]:
        """A row is that of an item which left, or is open; or there is none in the log."""
        if row.id in self.left:
            yield from self._differences(row, *self.left.pop(row.id))
        elif row.id in self.open:
            yield from self._differences(row, self.open.pop(row.id), (ItemStatus.OPEN,))
        else:
            yield f"item {row.id!r} is in the table but not in the log"

    def _content(self, row: ItemRow) -> Iterator[str]:
        if row.digest != ERASED and not is_content_of(row):
            yield f"item {row.id!r} does not match the digest of its content"

    def _differences(self, row: ItemRow, came: Came, expected: tuple[Any, ...]) -> Iterator[str]:
        yield from _arrival(row, *came, self._costs)
        found = _how(row)[: len(expected)]
        if found == expected:
            return
        if len(expected) > 1 and expected[6] is None and row.status == ItemStatus.WITHDRAWN:
            expected = (*expected[:6], row.labels, *expected[7:])
        if found != expected:
            yield f"item {row.id!r} is {found}, the log says {expected}"


class RevisionsCompared:
    """The revisions in the table are those of the log, number for number."""

    def __init__(self, storage: Storage, stream: str, start: Mark) -> None:
        self._storage, self._stream = storage, stream
        self.count, self._read = start.revisions, start.revisions
        self._expected: dict[int, tuple[Any, ...]] = {}
        self._strange: dict[int, tuple[Any, ...]] = {}

    def add(self, r: Revision) -> None:
        """A verdict was revised."""
        self.count += 1
        what = (*said(r.before), *said(r.verdict), r.labels)
        self._expected[self.count] = (self.count, r.item, r.slot, *what)

    def flush(self, rest: bool = False) -> Iterator[str]:
        """Compare what was revised so far; at last, all rows."""
        while rest or self._read < self.count:
            limit = _CHUNK if rest else min(_CHUNK, self.count - self._read)
            rows = self._storage.revisions(self._stream, self._read, limit)
            if not rows:
                break
            self._read = rows[-1].n
            for row in rows:
                told = row.before, row.before_confidence, row.verdict, row.confidence, row.labels
                self._strange[row.n] = (row.n, row.item, row.slot, *told)
        for n in sorted(self._strange.keys() & self._expected.keys()):
            found, wanted = self._strange.pop(n), self._expected.pop(n)
            if found != wanted:
                yield f"revision {n} is {found}, the log says {wanted}"

    def finish(self) -> Iterator[str]:
        """Compare the rest."""
        yield from self.flush(rest=True)
        for n in self._strange:
            yield f"revision {n} is in the table but not in the log"
        for n in self._expected:
            yield f"revision {n} is in the log but not in the table"


def said(verdict: Verdict) -> tuple[str | None, float]:
    """A verdict as tables have it."""
    return None if verdict.label is None else str(verdict.label), verdict.confidence


def _arrival(
    row: ItemRow, item: Item, slot: int | None, at: float | None, costs: set[float]
) -> Iterator[str]:
    """How an item came; the engine was told its weight in slots of waiting (see delay_cost)."""
    if slot is not None and slot != row.arrived_slot:
        yield f"item {row.id!r} arrived in slot {row.arrived_slot}, the log says {slot}"
    if at is not None and at != row.arrived_at:
        yield f"item {row.id!r} arrived at {row.arrived_at!r}, the log says {at!r}"
    if all(row.weight / cost != item.weight for cost in costs):
        yield f"item {row.id!r} has weight {row.weight!r}, the log says {item.weight!r}"
    if row.min_confidence != item.min_confidence:
        told = item.min_confidence
        yield f"item {row.id!r} has min_confidence {row.min_confidence}, the log says {told}"
    for name, kept, names in (
        ("eligible", row.eligible, item.eligible),
        ("excluded", row.excluded, item.excluded),
    ):
        if kept != (None if names is None else compact(sorted(names)) if names else "[]"):
            yield f"item {row.id!r} has {name} {kept}, the log says {names}"


def _delay_cost(row: SettingsRow) -> float:
    try:
        return float(json.loads(row.body).get("settings", {}).get("delay_cost", 1.0))
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"version {row.version} of the settings cannot be read: {error}") from None


def _how(row: ItemRow) -> tuple[Any, ...]:
    how = row.exit_slot, row.left_at, row.verdict, row.confidence, row.labels, row.reason
    return row.status, row.exit_n, *how
