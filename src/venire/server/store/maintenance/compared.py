"""What a log says, compared with the tables while the log is read.

Exits and revisions are numbered, in the log and in the table, so both are read side by side. What
is kept of an item is dropped when it has left and its row was read: memory is for the items that
are open, for a window of the log, for gold, and for what differs, not for the length of the log.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from venire.errors import StoreDown, StoreError
from venire.events import Arrived, Assigned, Closed, Event, GoldGiven, Observed, Revised, Withdrawn
from venire.model import (
    Assignment,
    Exit,
    ExitReason,
    Item,
    ItemStatus,
    LeaseStatus,
    Revision,
    Verdict,
)
from venire.server.store.contents import compact, is_content_of
from venire.server.store.records import ERASED, ItemRow, LeaseRow, SettingsRow

if TYPE_CHECKING:
    from venire.server.store.sql.reading import Said
    from venire.server.store.sql.storage import Storage

#: What was gathered is compared after this number of events, exits and leases.
WINDOW: Final = 20_000


class Mark(NamedTuple):
    """A snapshot with which a log agreed: what was before it need not be done again.

    It is after `n` events, `exits` exits and `revisions` revisions, the last of them at `at`;
    `digest` is the SHA-256 of the snapshot.
    """

    n: int = 0
    exits: int = 0
    revisions: int = 0
    at: float = -math.inf
    digest: str = ""


class Compared:
    """The tables of a stream, and the events that are told one after the other.

    `differences` are those found so far, `events` how many were told, and `taken` how many of them
    are decisions of another version of the engine.
    """

    def __init__(
        self, storage: Storage, stream: str, start: Mark, items: Iterable[Item] = ()
    ) -> None:
        self._storage, self._stream, self.start = storage, stream, start
        self.differences: list[str] = []
        self.gold: dict[str, tuple[str, float]] = {}
        self.events, self.taken, self.at = start.n, 0, start.at
        self._latest, self._told = -math.inf, 0
        self._readable = True
        with self._reading():
            drawn = [row.item for row in storage.checks(stream)]
            where = Whereabouts(storage, stream, start)
            self._items = ItemsCompared(storage, stream, start, drawn, items)
            self._revisions = RevisionsCompared(storage, stream, start)
            self._labels = LabelsCompared(storage, stream, start, where)
            self._leases = LeasesCompared(storage, stream, start, where, drawn)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Where a table cannot be read, that is a difference, and the last one."""
        try:
            yield
        except StoreDown:
            raise
        except StoreError as error:
            self.differences.append(str(error))
            self._readable = False

    def tell(self, events: Sequence[Event], at: float) -> None:
        """These happened, at one time; several only where all are labels."""
        self.events += len(events)
        if self._told >= WINDOW and at != self.at:  # what came at one time is compared together
            self._flush()
        self.at, self._latest = at, max(self._latest, at)
        if self._readable:
            self._told += len(events)
            self._tell(events, at)

    def _tell(self, events: Sequence[Event], at: float) -> None:
        match events[0]:
            case Observed():
                observed = cast("Sequence[Observed]", events)
                self._labels.add(observed, at)
                self._items.labelled.update([x.label.item for x in observed if not x.late])
            case Arrived() as event:
                self._items.arrive(event.items, event.slot, at)
            case Assigned() as event:
                self._leases.add(event.assignments, at)
                self._told += len(event.assignments)
            case Closed() as event:
                for e in event.exits:
                    self._items.leave(e, at)
                for revision in event.revisions:
                    self._revisions.add(revision)
                self._told += len(event.exits) + len(event.revisions)
            case GoldGiven() as event:
                self.gold[event.item] = str(event.label), at
                if event.revision is not None:
                    self._revisions.add(event.revision)
            case Revised() as event:
                self._revisions.add(event.revision)
            case Withdrawn() as event:
                self._items.withdraw(event.item, event.slot, at)

    def _flush(self) -> None:
        self._told = 0
        with self._reading():
            self.differences += self._items.flush()
            self.differences += self._revisions.flush()
            self.differences += self._labels.flush(self._latest)
            self.differences += self._leases.flush(self._latest)

    def finish(self, out: set[Pair]) -> None:
        """That was all; `out` is the work that is out after it."""
        if self._readable:
            self._flush()
        if not self._readable:
            return
        with self._reading():
            left = {item: how for item, how in self._items.drawn.items() if how is not None}
            self.differences += self._items.finish()
            self.differences += self._revisions.finish()
            self.differences += gold_differences(
                self._storage, self._stream, self.gold, left, self.start.at
            )
            self.differences += self._labels.finish()
            self.differences += self._leases.finish(out)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many items, exits, revisions and leases there are since the start."""
        if not self._readable:
            return 0, 0, 0, 0
        exits = self._items.exits - self.start.exits
        revisions = self._revisions.count - self.start.revisions
        return self._items.came, exits, revisions, self._leases.count

    @property
    def reached(self) -> Mark:
        _, exits, revisions, _ = self.counts
        exits, revisions = exits + self.start.exits, revisions + self.start.revisions
        return Mark(self.events, exits, revisions, self.at)


def gold_differences(
    storage: Storage,
    stream: str,
    gold: Mapping[str, tuple[str, float]],
    exits: Mapping[str, tuple[Any, ...]],
    since: float = -math.inf,
) -> Iterator[str]:
    """What of the gold, and of the verdicts drawn to be audited, is not as the log says.

    `gold` is label and time by item, `exits` how items left: status, number, slot, time, verdict;
    both only of what came after `since`.
    """
    missing = dict(gold)
    for row in storage.all_gold(stream):
        expected = missing.pop(row.item, None)
        if expected is None and row.at <= since:
            continue
        if expected is None:
            yield f"the gold of item {row.item!r} is in the table but not in the log"
        elif expected != (row.label, row.at):
            yield f"the gold of item {row.item!r} is {(row.label, row.at)}, the log says {expected}"
    for item in missing:
        yield f"the gold of item {item!r} is in the log but not in the table"
    for number, check in enumerate(storage.checks(stream), 1):
        if check.n != number:
            yield f"the audits continue with number {check.n}, expected {number}"
        left = exits.get(check.item)
        if left is None and check.at <= since:
            continue
        if left is None or left[0] != ItemStatus.LEFT:
            yield f"item {check.item!r} was drawn to be audited, but has not left"
        elif (check.verdict, check.at) != (left[4], left[3]):
            yield (
                f"item {check.item!r} was drawn to be audited as {check.verdict!r}, the log says "
                f"that it left as {left[4]!r}"
            )


#: The names of an item and of a labeler who has it.
Pair: TypeAlias = tuple[str, str]

#: Names to look up at once.
_CHUNK: Final = 5_000

_AT: Final = 5  # the place of the time in `Said`

R = TypeVar("R")


class Whereabouts:
    """Which items have left by the end, as their table says, which is compared by itself."""

    def __init__(self, storage: Storage, stream: str, start: Mark) -> None:
        self._storage, self._stream, self._start = storage, stream, start
        self._open = {row.id for row in storage.open_items(stream, 0)}

    def left(self, items: Iterable[str]) -> set[str]:
        """Those that have left; before the start there were others than the table has."""
        gone = set(items) - self._open
        return gone if self._start.n else gone & set(self._storage.known_ids(self._stream, gone))

    def left_before(self, item: str) -> bool:
        """Whether an item left before the start, and may be archived."""
        row = self._storage.item(self._stream, item) if self._start.n else None
        return self._start.n > 0 and (row is None or 0 < (row.exit_n or 0) <= self._start.exits)


class _InTime(Generic[R]):
    """Rows in the order of time, read up to one."""

    def __init__(self, rows: Iterator[R], time: Callable[[R], float]) -> None:
        self._rows, self._time = rows, time
        self._next = next(rows, None)
        self.read_to = -math.inf

    def until(self, time: float) -> Iterator[R]:
        self.read_to = time
        while self._next is not None and self._time(self._next) <= time:
            yield self._next
            self._next = next(self._rows, None)


class LabelsCompared:
    """What was said by the log, against the labels."""

    def __init__(self, storage: Storage, stream: str, start: Mark, where: Whereabouts) -> None:
        self._storage, self._stream, self._start, self._where = storage, stream, start, where
        self._rows = _InTime(
            storage.said_in_time(stream, start.at if start.n else None), lambda row: row[_AT]
        )
        self._facts: set[Said] = set()
        self._late: set[str] = set()  # items that left before the start, and were labelled since
        self._strange: dict[Pair, Said] = {}  # rows of which the log has said nothing yet
        self._answered: set[Said] = set()  # rows that were looked up before their time came

    def add(self, observed: Sequence[Observed], at: float) -> None:
        self._facts.update(
            [
                (x.item, x.labeler, str(x.said), event.slot, event.late, at, x.confidence)
                for event in observed
                for x in (event.label,)
            ]
        )
        if self._start.n:
            self._late.update(event.label.item for event in observed if event.late)

    def flush(self, until: float) -> Iterator[str]:
        """Compare what was said so far, where `until` is the latest time in the log."""
        facts, self._facts = self._facts, set()
        yield from self._match(set(self._rows.until(until)), facts)

    def _match(self, rows: set[Said], facts: set[Said]) -> Iterator[str]:
        if rows == facts and not self._strange:
            return
        self._strange |= {row[:2]: row for row in rows - facts - self._answered}
        unknown = []
        for fact in facts - rows:
            row = self._strange.pop(fact[:2], None)
            if row is None:
                unknown.append(fact)
            elif row != fact:
                yield _differ(row, fact)
        yield from self._look_up(unknown)
        self._drop_late()

    def finish(self) -> Iterator[str]:
        while rows := set(islice(self._rows.until(math.inf), _CHUNK)):
            yield from self._match(rows, set())
        for row in self._strange.values():
            item, labeler, at = row[0], row[1], row[_AT]
            before = item not in self._late and self._where.left_before(item)
            if at > self._start.at and not before:
                yield f"the label of {item!r} by {labeler!r} is in the table but not in the log"

    def _look_up(self, facts: list[Said]) -> Iterator[str]:
        """Labels that have no row of their time: their rows say something else, or are gone."""
        for start in range(0, len(facts), _CHUNK):
            some = facts[start : start + _CHUNK]
            items = {fact[0] for fact in some}
            rows = {(x.item, x.labeler): x for x in self._storage.labels_among(self._stream, items)}
            gone = self._storage.archived(self._stream, items) if self._start.n else {}
            for fact in some:
                row = rows.get(fact[:2])
                if row is not None:
                    said = row.item, row.labeler, row.said
                    found = (*said, row.slot, row.late, row.at, row.confidence)
                    if row.at > self._rows.read_to:
                        self._answered.add(found)
                    if found != fact:
                        yield _differ(found, fact)
                elif fact[0] not in gone:
                    item, labeler, *_ = fact
                    yield f"the label of {item!r} by {labeler!r} is in the log but not in the table"

    def _drop_late(self) -> None:
        """The engine forgets items that left long ago; a label for one is kept all the same."""
        late = {pair: row for pair, row in self._strange.items() if row[4]}
        left = self._where.left(item for item, _ in late) if late else set()
        for pair in late:
            if pair[0] in left:
                del self._strange[pair]


class LeasesCompared:
    """What was handed out by the log, against the leases."""

    def __init__(
        self, storage: Storage, stream: str, start: Mark, where: Whereabouts, drawn: Iterable[str]
    ) -> None:
        self._storage, self._stream, self._start, self._where = storage, stream, start, where
        self._drawn = set(drawn)  # leased to trusted labelers, as others that have left are
        self._rows = _InTime(
            storage.leases_in_time(stream, start.at if start.n else None), lambda row: row.given_at
        )
        self._given: set[tuple[str, str, float]] = set()
        self._strange: set[tuple[str, str, float]] = set()  # of which the log said nothing yet
        self.count = 0

    def add(self, work: Iterable[Assignment], at: float) -> None:
        self._given.update((one.item, one.labeler, at) for one in work)

    def flush(self, until: float) -> Iterator[str]:
        """Compare what was handed out so far, where `until` is the latest time in the log."""
        read, given, self._given = self._rows.until(until), self._given, set()
        while rows := list(islice(read, _CHUNK)):
            self.count += len(rows)
            self._strange.update(
                (row.item, row.labeler, row.given_at)
                for row in rows
                if row.given_at > self._start.at and row.item not in self._drawn
            )
            self._strange -= given
            yield from self._done(rows)
        self._strange -= given

    def finish(self, out: set[Pair]) -> Iterator[str]:
        """Compare the rest, and the work that is out."""
        yield from self.flush(math.inf)
        for item, labeler, at in sorted(self._strange):
            if self._left_by(item, at):  # a trusted labeler was asked about it
                continue
            who = f"{labeler!r} has a lease of item {item!r}"
            yield f"{who}, given at {at!r}, which is not in the log"
        pairs = [(row.item, row.labeler) for row in self._storage.leases(self._stream)]
        held = set(pairs)
        for item, labeler in sorted(out - held):
            yield f"{labeler!r} has item {item!r} by the log, but there is no open lease"
        left = self._where.left(item for item, _ in held - out)
        for item, labeler in sorted(held - out):
            if item not in left:
                yield f"{labeler!r} has an open lease of item {item!r}, but not by the log"
        if len(pairs) != len(held):
            yield "a labeler has two open leases of one item"

    def _done(self, rows: list[LeaseRow]) -> Iterator[str]:
        """Leases that are done without a label."""
        done = {
            (row.item, row.labeler): row.given_at for row in rows if row.status == LeaseStatus.DONE
        }
        there = self._storage.said(self._stream, list(done))
        bare = [(*pair, at) for pair, at in done.items() if pair not in there]
        items = [item for item, *_ in bare]
        golden = self._storage.gold_of(self._stream, items)
        gone = self._storage.archived(self._stream, items) if self._start.n else {}
        for item, labeler, at in bare:
            asked = item in self._drawn or self._left_by(item, at)
            if item not in gone and not (asked and item in golden):
                yield f"the lease of item {item!r} by {labeler!r} is done, but there is no label"

    def _left_by(self, item: str, at: float) -> bool:
        """Whether the item had left by then: only trusted labelers are leased such items."""
        row = self._storage.item(self._stream, item)
        if row is None:
            return self._start.n > 0 and bool(self._storage.archived(self._stream, [item]))
        return row.left_at is not None and row.left_at <= at


def _differ(row: Said, fact: Said) -> str:
    return f"the label of {row[0]!r} by {row[1]!r} is {row[2:]}, the log says {fact[2:]}"


#: Rows to read at once; with their payloads.
_ROWS: Final = 2_000

#: An item, and when it came: slot and time, which are not known of one that was open at the start.
Came: TypeAlias = tuple[Item, int | None, float | None]


class ItemsCompared:
    """How items came and left, by the log, against their rows.

    `drawn` are items of which it is remembered how they left, `items` those open at the start.
    """

    def __init__(
        self,
        storage: Storage,
        stream: str,
        start: Mark,
        drawn: Iterable[str],
        items: Iterable[Item],
    ) -> None:
        self._storage, self._stream = storage, stream
        self._costs = {_delay_cost(row) for row in storage.settings(stream)}
        self.open: dict[str, Came] = {str(item.id): (item, None, None) for item in items}
        self.labelled: Counter[str] = Counter()  # labels since the start, of items that are open
        self.came, self.exits, self._read = len(self.open), start.exits, start.exits
        self.drawn: dict[str, tuple[Any, ...] | None] = dict.fromkeys(drawn)
        self.left: dict[str, tuple[Came, tuple[Any, ...]]] = {}  # whose rows were not read yet
        self._strange: dict[str, ItemRow] = {}  # rows of items that have not left yet

    def arrive(self, items: Iterable[Item], slot: int, at: float) -> None:
        for item in items:
            self.open[item.id] = item, slot, at
            self.came += 1

    def leave(self, e: Exit, at: float) -> None:
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
        while self._read < self.exits:
            rows = self._exits(min(_ROWS, self.exits - self._read))
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
        while rows := self._exits(_ROWS):
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
        self.count += 1
        what = (*said(r.before), *said(r.verdict), r.labels)
        self._expected[self.count] = (self.count, r.item, r.slot, *what)

    def flush(self, rest: bool = False) -> Iterator[str]:
        """Compare what was revised so far; at last, all rows."""
        while rest or self._read < self.count:
            limit = _ROWS if rest else min(_ROWS, self.count - self._read)
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
        yield from self.flush(rest=True)
        for n in self._strange:
            yield f"revision {n} is in the table but not in the log"
        for n in self._expected:
            yield f"revision {n} is in the log but not in the table"


def said(verdict: Verdict) -> tuple[str | None, float]:
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
