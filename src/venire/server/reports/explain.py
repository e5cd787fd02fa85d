"""Why an item was given to whom, and why it left, by replaying its stretch of the log.

What has left the store is read from the archive, or an error says where it is (`find`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from venire.engine import Scheduler
from venire.errors import Archived, FileError, InputError, MissingExtra, NotFound, StateError
from venire.events import Arrived, Assigned, Closed, Event, Observed, Sufficed, Withdrawn
from venire.model import ExitReason, ItemStatus
from venire.server.messages import Alternative, Belief, Enough, Explanation, Given
from venire.server.reports.event_json import exit_view, label_view, number
from venire.server.settings import of_body
from venire.server.store import EventRow, ItemRow, Storage, decode
from venire.server.store.history.files import ArchivedItem, find_archived, segment_of
from venire.server.store.log import SlotParts, Writers

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime


def check_cursor(what: str, after: int, archived: int) -> None:
    """Refuse a cursor behind which something is archived: it would be skipped silently.

    >>> check_cursor("exits", 7, archived=7)
    """
    if after < archived:
        raise Archived(
            f"the {what} up to {archived:,} are archived, got the cursor {after:,}: go on from "
            f"{archived}, and read those before from the archive"
        )


async def where(runtime: Runtime, stream: str, item: str) -> Archived | NotFound:
    """The error that says where an item is that is not in the store."""
    try:
        _, segment = await runtime.read(segment_of, runtime.storage, stream, item)
    except NotFound:
        return NotFound("item", item)
    if not segment.name:
        return Archived(f"item {item!r} was deleted by the stream's retention")
    return Archived(
        f"item {item!r} is in segment {segment.name} of the archive of stream {stream!r}: venire "
        "archive --item shows it, --restore brings it back"
    )


async def find(runtime: Runtime, stream: str, item: str) -> ArchivedItem:
    """An item from the archive, if this server has it; else an error that says where it is."""
    archive = runtime.settings.archive
    error = await where(runtime, stream, item)
    if archive is None or isinstance(error, NotFound):
        raise error
    try:
        return await runtime.read(find_archived, runtime.storage, stream, item, archive)
    except (FileError, MissingExtra, NotFound) as fault:
        raise error from fault


#: How many alternatives to list beside the assigned item.
OTHERS: Final = 5

#: Limits: events replayed, events read, and seconds.
MAX_REPLAYED, MAX_READ, MAX_SECONDS = 50_000, 500_000, 10.0

#: Events of which those that name an item say who was assigned it, and when and why it left.
_NAMING_ITEMS: Final = frozenset({"assigned", "closing", "closed", "withdrawn", "leave_on"})

#: ... and those that say what is believed of it.
_MOVING_BELIEFS: Final = frozenset({"arrived", "observed"})

#: Posteriors that differ by less are the same.
SAME: Final = 1e-6


class Stopped(Exception):
    """The caller was cancelled, a limit is reached, or the time is over."""


class AssignmentSearch:
    """The search for the assignments of one item; for use by one thread."""

    def __init__(
        self,
        storage: Storage,
        item: ItemRow,
        stop: threading.Event,
        seconds: Callable[[], float],
        believes: bool = False,
    ) -> None:
        self.beliefs: list[Belief] = []
        self.enough: Enough | None = None
        self._kinds = _NAMING_ITEMS | (_MOVING_BELIEFS if believes else frozenset())
        self._storage, self._item, self._stop = storage, item, stop
        self._seconds, self._until = seconds, seconds() + MAX_SECONDS
        self._costs = [(x.at, of_body(x.body)[0].delay_cost) for x in storage.settings(item.stream)]

    def find(self) -> tuple[list[Given], bool]:
        """Every assignment of the item, and whether all were recomputed."""
        rows, whole = self._read_log(self._first_event())
        gone = self._storage.segments(self._item.stream)[-1:]
        whole = whole and not any(self._item.arrived_at <= part.ended_at for part in gone)
        try:
            return self._recomputed(rows), whole
        except (Stopped, StateError, InputError):  # too long, or another version decided otherwise
            self.beliefs = []
            given = [row for row in rows if row.kind == "assigned"]
            return [made for row in given for made in self._given(row)], False

    def _first_event(self) -> int:
        """The first event of the slot in which the item arrived, by bisection."""
        stream, slot = self._item.stream, self._item.arrived_slot
        low, high = 0, self._storage.counts(stream).events
        while low < high:
            middle = (low + high) // 2
            found = self._storage.events(stream, middle - 1, 1)
            if found and found[0].slot < slot:
                low = found[0].n + found[0].size
            else:
                high = middle
        return low

    def _read_log(self, first: int) -> tuple[list[EventRow], bool]:
        """The rows about the item, and whether the log was read until it left."""
        found = list[EventRow]()
        wanted = json.dumps(self._item.id, ensure_ascii=False)
        try:
            for row in self._rows(first, MAX_READ):
                if row.kind not in self._kinds or wanted not in row.body:
                    continue
                if row.kind in _MOVING_BELIEFS:
                    found.append(row)
                    continue
                [event] = decode([row])
                if isinstance(event, Assigned):
                    given = {made.item for made in event.assignments}
                    found += [row] if self._item.id in given else []
                if isinstance(event, Sufficed) and event.item == self._item.id:
                    told = event.labeler, str(event.said)
                    self.enough = Enough(row.n + 1, row.slot, row.at, *told)
                if _left(event, self._item.id):
                    break
        except Stopped:
            return found, False
        return found, True

    def _rows(self, n: int, most: int) -> Iterator[EventRow]:
        for row in self._storage.all_events(self._item.stream, n - 1):
            self._check()
            if row.n >= n + most:
                raise Stopped
            yield row

    # replayed

    def _recomputed(self, rows: Sequence[EventRow]) -> list[Given]:
        """What the engine saw just before each of these rows."""
        found, engine, n = list[Given](), None, 0
        try:
            for row in rows:
                at = self._snapshot_before(row.n)
                if engine is None or at > n:
                    if engine is not None:
                        engine.dissolve()
                    engine, n = self._restored(at), at
                self._follow(engine, n, row.n)
                n = row.n
                if row.kind in _MOVING_BELIEFS:
                    n = self._believe(engine, row)
                else:
                    found += self._given(row, engine)
        finally:
            if engine is not None:
                engine.dissolve()
        return found

    def _believe(self, engine: Scheduler, row: EventRow) -> int:
        """Follow a row, and record what is believed of the item; the number of the next event."""
        writers = Writers(self._storage.engines(self._item.stream))
        for place, event in enumerate(decode([row]), row.n):
            about = isinstance(event, Observed) and event.label.item == self._item.id
            if isinstance(event, Observed) and about and not event.late:
                said = event.label.labeler, str(event.label.said)
                self._record(engine, "learned", place, row)
                engine.follow([event], writers.obeys(place))
                self._record(engine, "label", place, row, *said)
            else:
                engine.follow([event], writers.obeys(place))
                if isinstance(event, Arrived) and self._item.id in {x.id for x in event.items}:
                    self._record(engine, "arrived", place, row)
            engine.drain()
        return row.n + row.size

    def _record(
        self,
        engine: Scheduler,
        why: Literal["arrived", "label", "learned"],
        place: int,
        row: EventRow,
        *said: str,
    ) -> None:
        now = {str(name): p for name, p in engine.posterior(self._item.id).items()}
        if why == "learned":
            before = self.beliefs[-1].posterior if self.beliefs else now
            if all(abs(now[name] - p) < SAME for name, p in before.items()):
                return
        self.beliefs.append(Belief(place + 1, row.slot, row.at, why, now, *said))

    def _snapshot_before(self, n: int) -> int:
        """How many events the last snapshot before an event holds; `Stopped` if it is too far."""
        before = [x for x in self._storage.snapshot_numbers(self._item.stream) if x <= n]
        if not before or n - before[-1] > MAX_REPLAYED:
            raise Stopped
        return before[-1]

    def _restored(self, n: int) -> Scheduler:
        snapshot = self._storage.snapshot(self._item.stream, n)
        if snapshot is None:  # thinned out meanwhile
            raise Stopped
        return Scheduler.restore(snapshot.body)

    def _follow(self, engine: Scheduler, n: int, end: int) -> None:
        """Bring an engine from event `n` to just before event `end`."""
        parts, writers = SlotParts(), Writers(self._storage.engines(self._item.stream))
        for place, event in self._events(n, end):
            engine.follow(parts.whole([event]), writers.obeys(place))
            engine.drain()

    def _events(self, n: int, end: int) -> Iterator[tuple[int, Event]]:
        for row in self._rows(n, MAX_REPLAYED):
            for place, event in enumerate(decode([row]), row.n):
                self._check()
                if place >= end:
                    return
                if place >= n:
                    yield place, event

    def _check(self) -> None:
        if self._stop.is_set() or self._seconds() > self._until:
            raise Stopped

    def _given(self, row: EventRow, engine: Scheduler | None = None) -> list[Given]:
        """What the engine saw just before it assigned the item; without it, what the log says."""
        scale, price, made = self._scale(row.at), None, []
        if engine is not None:
            engine.advance(row.slot)
            engine.drain()
            price = None if engine.price is None else engine.price * scale
        [event] = decode([row])
        assert isinstance(event, Assigned)
        went = {b.item: str(b.labeler) for b in event.assignments}
        for a in event.assignments:
            if a.item != self._item.id:
                continue
            others = [
                Alternative(name, _scaled(gain, scale), went.get(name))
                for name, gain in (engine.ranking(a.labeler, OTHERS + 1) if engine else ())
                if name != a.item
            ][:OTHERS]
            gain = _scaled(a.gain, scale)
            made.append(Given(row.n + 1, a.slot, row.at, a.labeler, gain, price, tuple(others)))
        return made

    def _scale(self, at: float) -> float:
        """The delay cost at that time, the unit of weights."""
        return ([cost for since, cost in self._costs if since <= at] or [self._costs[0][1]])[-1]


def _scaled(gain: float, scale: float) -> float | None:
    known = number(gain)
    return None if known is None else known * scale


def _left(event: Event, item: str) -> bool:
    if isinstance(event, Closed):
        return any(exit.item == item for exit in event.exits)
    return isinstance(event, Withdrawn) and event.item == item


async def explain(runtime: Runtime, stream: str, item: str, believes: bool = False) -> Explanation:
    """Why the item was assigned to whom, and why it left; on request how the belief moved."""
    await runtime.live_stream(stream)
    row = await runtime.read_committed(runtime.storage.item, stream, item)
    if row is None:
        raise await where(runtime, stream, item)
    stop = threading.Event()

    def search() -> tuple[AssignmentSearch, list[Given], bool]:
        made = AssignmentSearch(runtime.storage, row, stop, runtime.clock.monotonic, believes)
        return made, *made.find()

    try:
        found, given, complete = await runtime.threads.explain(search)
    finally:
        stop.set()  # its caller may have been cancelled
    labels = await runtime.read(runtime.storage.labels_of, stream, item)
    left = None if row.status == ItemStatus.OPEN else exit_view(row)
    why = "it has not left" if left is None or left.reason is None else left.reason.meaning
    enough = found.enough
    if enough is not None and left is not None and left.reason == ExitReason.LEAVE_ON:
        why = f"{enough.labeler} said {enough.said}, and its word is enough for that (leave_on)"
    return Explanation(
        item=item,
        arrived_slot=row.arrived_slot,
        given=tuple(given),
        labels=tuple(label_view(label) for label in labels),
        exit=left,
        why=why,
        complete=complete,
        beliefs=tuple(found.beliefs),
        enough=enough,
    )
