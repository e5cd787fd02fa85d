"""A stream out of the store: its last snapshot, the events since, and the rows beside them."""

from __future__ import annotations

from collections.abc import Iterator

from venire.engine import Scheduler
from venire.errors import InputError, StoreError
from venire.model import Event
from venire.service.figures import RECENT
from venire.service.leases import Held
from venire.service.live import Entry, Live, Moment, Tokens
from venire.service.settings import ServiceSettings, of_body
from venire.storage import EventRow, SnapshotRow, Storage, StreamRow, decode

__all__ = ["load", "restored"]


def load(
    storage: Storage, name: str, moment: Moment, tokens: Tokens, settings: ServiceSettings
) -> Live | None:
    """A stream as the store knows it; None if it knows none of that name."""
    row = next((row for row in storage.streams() if row.name == name), None)
    if row is None:
        return None
    engine, n, snapshot_n = restored(storage, name)
    live = _live(storage, row, engine, moment, tokens)
    live.n, live.snapshot_n = n, snapshot_n
    _fill(storage, live, moment)
    return live


def restored(storage: Storage, name: str) -> tuple[Scheduler, int, int]:
    """The engine after the last event, the number of events, and those in the snapshot."""
    for snapshot in reversed(storage.snapshots(name)):
        try:
            engine = Scheduler.restore(snapshot.body)
        except InputError:  # of another version: an older one, and a longer replay, will do
            continue
        return _follow(storage, engine, snapshot)
    raise StoreError(f"stream {name!r} has no snapshot that this version can read")


def _follow(
    storage: Storage, engine: Scheduler, snapshot: SnapshotRow
) -> tuple[Scheduler, int, int]:
    n = snapshot.n
    for row in storage.all_events(snapshot.stream, snapshot.n - 1):
        engine.follow(decoded_from(row, snapshot.n))
        engine.drain()
        n = row.n + row.size
    return engine, n, snapshot.n


def decoded_from(row: EventRow, n: int) -> Iterator[Event]:
    """The events of a row from number `n` on."""
    return iter(decode([row])[max(0, n - row.n) :])


def _live(
    storage: Storage, row: StreamRow, engine: Scheduler, moment: Moment, tokens: Tokens
) -> Live:
    newest = storage.settings(row.name)[-1]
    return Live(
        row.name,
        engine,
        of_body(newest.body)[0],
        moment,
        tokens,
        version=newest.version,
        status=row.status,
        created_at=row.created_at,
    )


def _seated(live: Live) -> set[str]:
    """Who may be given work: the panel and, if it is open, those who came by asking."""
    members = {member.id for member in live.settings.panel}
    if not live.settings.open_panel:
        return members
    return {str(name) for name in live.engine.seated} | members


def _fill(storage: Storage, live: Live, moment: Moment) -> None:
    """What is beside the engine: items, labels, leases, labelers, counts."""
    name, counts = live.name, storage.counts(live.name)
    for row in storage.items(name, status="open"):
        passed = max(0.0, moment.wall - row.arrived_at)
        live.open[row.id] = Entry.of(row, row.weight, moment.now - passed)
    for label in storage.open_labels(name):
        live.open[label.item].labels[label.labeler] = label.said
    for lease in storage.leases(name):
        live.resumed.append(
            Held(lease.token_hash, lease.item, lease.labeler, lease.given_at, None, lease.ttl, 0.0)
        )
    live.people.seat(live.settings.panel, _seated(live))
    for labeler, (labels, late) in storage.labeler_counts(name).items():
        person = live.people.known(labeler)
        person.labels, person.late = labels, late
    for label in reversed(storage.recent_labels(name, 0.0, limit=1000)):
        if label.lead_seconds is not None:
            live.lead.add(label.labeler, label.lead_seconds)
    live.hooks = {hook.id: None for hook in storage.webhooks(name)}
    live.exit_n, live.revision_n = counts.exits, counts.revisions
    figures = live.figures
    figures.labels, figures.late = counts.labels, counts.late
    figures.left, figures.withdrawn = counts.left, counts.withdrawn
    figures.before(storage.recent_exits(name, RECENT))
    budget = live.settings.label_budget
    bounds = live.engine.bounds  # a deadline of 0 said the same in older logs
    live.spent = budget is not None and (bounds.spent or bounds.deadline == 0)
