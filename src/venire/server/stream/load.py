"""Loading a stream from the store: the last snapshot, the events since, and other rows."""

from __future__ import annotations

import logging
from typing import NamedTuple

from venire.engine import Scheduler, engine_version
from venire.errors import InputError, StoreDown, StoreError, VenireError
from venire.events import Closed
from venire.model import Item, NoteKind, StreamStatus
from venire.server.messages import view
from venire.server.settings import of_body
from venire.server.store import Storage, decode
from venire.server.store.log import SlotParts, Writers
from venire.server.stream.leases import HeldLease, LeaseIndex
from venire.server.stream.live_stream import LARGE_PAYLOAD, LiveStream, Moment, OpenItem
from venire.server.stream.statistics import KEPT_EXITS

_log = logging.getLogger("venire.service")


class Restored(NamedTuple):
    """An engine after the last event of its log.

    `events` is the number of events, `snapshot` how many of them the snapshot covers; `writers`
    tells which of the others were recomputed, and which were taken from the log as they are.
    `unwritten` is what the log lacks of its last slot, if that is closed in part.
    """

    engine: Scheduler
    events: int
    snapshot: int
    writers: Writers
    unwritten: Closed | None


def load(storage: Storage, name: str, moment: Moment, lease_index: LeaseIndex) -> LiveStream | None:
    row = storage.stream(name)
    if row is None:
        return None
    found = restored(storage, name)
    newest = storage.settings(name)[-1]
    live = LiveStream(
        name,
        found.engine,
        of_body(newest.body)[0],
        moment,
        lease_index,
        version=newest.version,
        status=StreamStatus.ARCHIVED if row.archived_at else StreamStatus(row.status),
        created_at=row.created_at,
    )
    live.n, live.snapshot_n = found.events, found.snapshot
    if found.writers.version(found.events) != engine_version():
        live.takeover = found.engine.snapshot()
    live.unwritten = found.unwritten
    _load_rows(storage, live, moment)
    return live


def restored(storage: Storage, name: str) -> Restored:
    """The engine from the last readable snapshot and the events since."""
    for n in reversed(storage.snapshot_numbers(name)):
        snapshot = storage.snapshot(name, n)
        try:
            engine = None if snapshot is None else Scheduler.restore(snapshot.body)
        except InputError:  # of a newer version: use an older snapshot and replay more
            continue
        except MemoryError:
            raise
        except Exception as error:  # damaged
            _log.warning("stream %r: the snapshot at event %d cannot be read, an older one is used "
                         "(%s: %s)", name, n, type(error).__name__, error)  # fmt: skip
            continue
        if snapshot is not None and engine is not None:
            return _replay(storage, name, n, engine, snapshot.body)
    raise StoreError(f"stream {name!r} has no snapshot that this version can read")


def _replay(storage: Storage, name: str, n: int, engine: Scheduler, body: bytes) -> Restored:
    """The engine after the events from number `n` on."""
    writers = Writers(storage.engines(name))
    while True:
        end, parts = n, SlotParts()
        try:
            for row in storage.all_events(name, n - 1):
                fresh = decode([row])[max(0, n - row.n) :]
                engine.follow(parts.whole(iter(fresh)), writers.obeys(row.n))
                engine.drain()
                end = row.n + row.size
            unwritten = parts.finish(engine, writers.obeys(end))
            return Restored(engine, end, n, writers, unwritten)
        except StoreDown:
            raise
        except VenireError as error:
            writers.blame(end, error)
            _log.warning("stream %r: from event %d on, decisions are taken from the log: another "
                         "version of the engine made them", name, end)  # fmt: skip
            engine = Scheduler.restore(body)


def _seated(live: LiveStream) -> set[str]:
    """Who may be assigned work: the panel and, if it is open, labelers who joined."""
    members = {member.id for member in live.settings.asked}
    if not live.settings.open_panel:
        return members
    return ({str(name) for name in live.engine.seated} | members) - live.settings.retired


def _load_rows(storage: Storage, live: LiveStream, moment: Moment) -> None:
    """Load what is kept beside the engine: items, labels, leases, labelers, counts."""
    name, counts = live.name, storage.counts(live.name)
    leaving = set() if live.unwritten is None else {exit.item for exit in live.unwritten.exits}
    for row in storage.open_items(name, LARGE_PAYLOAD):
        passed = max(0.0, moment.wall - row.arrived_at)
        known = Item(row.id) if row.id in leaving else live.engine.item(row.id)
        live.enter(OpenItem.of(row, known, moment.now - passed))
    for item, labeler, said in storage.open_said(name):
        live.open[item].labels[labeler] = said
    for lease in storage.leases(name):
        live.resumed.append(view(HeldLease, lease, given=None, end=0.0, of_open=True))
    live.labelers.seat(live.settings.panel, _seated(live))
    for labeler, (labels, late) in storage.labeler_counts(name).items():
        record = live.labelers.record(labeler)
        record.labels, record.late = labels, late
    for labeler, (repeats, same) in storage.repeat_counts(name).items():
        record = live.labelers.record(labeler)
        record.repeats, record.same = repeats, same
        live.repeats.answers += repeats
    for label in reversed(storage.recent_labels(name, 0.0, limit=1000)):
        if label.lead_seconds is not None:
            live.lead_times.add(label.labeler, label.lead_seconds)
    drawn = storage.checks(name)
    live.checks.load(drawn, storage.gold_of(name, [row.item for row in drawn]))
    live.checks.open_gold = set(storage.gold_of(name, live.open))
    for gold in storage.all_gold(name):
        live.checks.gold += 1
        live.checks.corrected += gold.earlier is not None
        who = gold.actor.removesuffix(f" ({gold.key})")
        if gold.source in ("audit", "asked") and who in live.trusted:
            live.labelers.record(who).labels += 1
    live.segment = next(iter(storage.segments(name)[-1:]), None)
    live.hooks = {hook.id: None for hook in storage.webhooks(name)}
    live.exit_n, live.revision_n, live.note_n = counts.exits, counts.revisions, counts.notes
    for kind, by_labeler in storage.note_counts(name).items():
        live.notes[kind] = sum(by_labeler.values())
        for labeler, number in by_labeler.items() if kind == NoteKind.UNSURE else ():
            live.labelers.record(labeler).unsure = number
    told = storage.last_alarms(name)
    live.alarms = {(alarm.rule, alarm.subject): alarm for alarm in told if alarm.raised}
    live.alarm_n = max((alarm.n for alarm in told), default=0)
    live.follow_ups.load(storage, name, storage.follows(name))
    statistics = live.statistics
    statistics.labels, statistics.late = counts.labels, counts.late
    statistics.left, statistics.withdrawn = counts.left, counts.withdrawn
    exits = storage.recent_exits(name, KEPT_EXITS)
    statistics.load_exits(exits)
    statistics.load_history(
        exits, (x.arrived_at for x in live.open.values()), moment.wall - moment.now
    )
    budget = live.settings.label_budget
    bounds = live.engine.bounds  # in older logs a deadline of 0 meant a spent budget
    live.spent = budget is not None and (bounds.spent or bounds.deadline == 0)
