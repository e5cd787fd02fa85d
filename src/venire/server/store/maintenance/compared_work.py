"""Labels and leases of a log, compared with the tables in the order of time.

The events of a log and the rows of a table have the same times, so both are read side by side.
Where a clock was set back, rows come before their events: they wait for them. What the log says
has its row by then, or is looked up by its name. So memory is for a window, and what differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from venire.events import Observed
from venire.model import Assignment, LeaseStatus
from venire.server.store.base import Said, Storage
from venire.server.store.maintenance.starting import Mark
from venire.server.store.records import LeaseRow

#: The names of an item and of a labeler who has it.
Pair: TypeAlias = tuple[str, str]

#: Names to look up at once.
_CHUNK: Final = 5_000

_AT: Final = 5  # the place of the time in `Said`


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


class LabelsCompared:
    """What was said by the log, against the labels."""

    def __init__(self, storage: Storage, stream: str, start: Mark, where: Whereabouts) -> None:
        self._storage, self._stream, self._start, self._where = storage, stream, start, where
        self._rows = storage.said_in_time(stream, start.at if start.n else None)
        self._next = next(self._rows, None)
        self._read_to = -math.inf
        self._facts: set[Said] = set()
        self._late: set[str] = set()  # items that left before the start, and were labelled since
        self._strange: dict[Pair, Said] = {}  # rows of which the log has said nothing yet
        self._answered: set[Said] = set()  # rows that were looked up before their time came

    def add(self, observed: Sequence[Observed], at: float) -> None:
        """Labels came."""
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
        yield from self._match(set(self._read(until)), facts)

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
        """Compare the rest."""
        while rows := set(islice(self._read(math.inf), _CHUNK)):
            yield from self._match(rows, set())
        for row in self._strange.values():
            item, labeler, at = row[0], row[1], row[_AT]
            before = item not in self._late and self._where.left_before(item)
            if at > self._start.at and not before:
                yield f"the label of {item!r} by {labeler!r} is in the table but not in the log"

    def _read(self, until: float) -> Iterator[Said]:
        self._read_to = until
        while self._next is not None and self._next[_AT] <= until:
            yield self._next
            self._next = next(self._rows, None)

    def _look_up(self, facts: list[Said]) -> Iterator[str]:
        """Labels that have no row of their time: their rows say something else, or are gone."""
        for some in _chunks(facts):
            items = {fact[0] for fact in some}
            rows = {(x.item, x.labeler): x for x in self._storage.labels_among(self._stream, items)}
            gone = self._storage.archived(self._stream, items) if self._start.n else {}
            for fact in some:
                row = rows.get(fact[:2])
                if row is not None:
                    said = row.item, row.labeler, row.said
                    found = (*said, row.slot, row.late, row.at, row.confidence)
                    if row.at > self._read_to:
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
        self._rows = storage.leases_in_time(stream, start.at if start.n else None)
        self._next = next(self._rows, None)
        self._given: set[tuple[str, str, float]] = set()
        self._strange: set[tuple[str, str, float]] = set()  # of which the log said nothing yet
        self.count = 0

    def add(self, work: Iterable[Assignment], at: float) -> None:
        """Work was handed out."""
        self._given.update((one.item, one.labeler, at) for one in work)

    def flush(self, until: float) -> Iterator[str]:
        """Compare what was handed out so far, where `until` is the latest time in the log."""
        read, given, self._given = self._read(until), self._given, set()
        while rows := list(islice(read, _CHUNK)):
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

    def _read(self, until: float) -> Iterator[LeaseRow]:
        while self._next is not None and self._next.given_at <= until:
            self.count += 1
            yield self._next
            self._next = next(self._rows, None)

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


def _chunks(facts: list[Said]) -> Iterator[list[Said]]:
    return (facts[k : k + _CHUNK] for k in range(0, len(facts), _CHUNK))
