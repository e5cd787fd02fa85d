"""How a store in memory makes each kind of change; what a database refuses is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from tests.store.archiving import ARCHIVING
from tests.store.tables import Tables
from venire.errors import StoreError
from venire.model import ItemStatus
from venire.server.store import changes as c
from venire.server.store.rows import ERASED
from venire.server.store.snapshot_retention import superfluous

__all__ = ["apply"]


def apply(t: Tables, change: c.Change) -> None:
    """Make a change, inside `Tables.transaction`."""
    _APPLY[type(change)](t, change)


def _add_stream(t: Tables, change: c.AddStream) -> None:
    t.new(t.streams, change.row.name, change.row)


def _set_status(t: Tables, change: c.SetStatus) -> None:
    t.check_stream(change.stream)
    row = t.streams[change.stream]
    t.put(t.streams, change.stream, row._replace(status=change.status))


def _add_settings(t: Tables, change: c.AddSettings) -> None:
    t.check_stream(change.row.stream)
    t.new(t.settings, (change.row.stream, change.row.version), change.row)


def _add_events(t: Tables, change: c.AddEvents) -> None:
    for row in change.rows:
        log = t.of(t.logs, row.stream)
        end = t.ends.get(
            row.stream,
            max((x.next_event for x in t.segments.get(row.stream, {}).values()), default=0),
        )
        if row.n != end:
            raise StoreError(f"got event {row.n} of stream {row.stream!r}, expected {end}")
        t.new(log, row.n, row)
        t.put(t.ends, row.stream, row.n + row.size)


def _add_items(t: Tables, change: c.AddItems) -> None:
    for row in change.rows:
        t.new(t.of(t.items, row.stream), row.id, row)


def _leave_items(t: Tables, change: c.LeaveItems) -> None:
    for row in change.rows:
        items = t.of(t.items, row.stream)
        old = items.get(row.id)
        if old is None or old.status != ItemStatus.OPEN:
            raise StoreError(f"item {row.id!r} of stream {row.stream!r} is not open")
        t.put(items, row.id, old._replace(**row._asdict()))
        t.new(t.of(t.exits, row.stream), row.exit_n, row.id)


def _add_revisions(t: Tables, change: c.AddRevisions) -> None:
    for row in change.rows:
        t.new(t.of(t.revisions, row.stream), row.n, row)


def _add_checks(t: Tables, change: c.AddChecks) -> None:
    for row in change.rows:
        t.new(t.of(t.checks, row.stream), row.n, row)


def _add_gold(t: Tables, change: c.AddGold) -> None:
    for row in change.rows:
        t.new(t.of(t.gold, row.stream), row.item, row)


def _correct_gold(t: Tables, change: c.CorrectGold) -> None:
    for row in change.rows:
        rows = t.gold.get(row.stream, {})
        if row.item not in rows:
            raise StoreError("gold to correct is unknown")
        t.put(rows, row.item, row)


def _add_alarms(t: Tables, change: c.AddAlarms) -> None:
    for row in change.rows:
        t.new(t.of(t.alarms, row.stream), row.n, row)


def _drop_alarms(t: Tables, change: c.DropAlarms) -> None:
    rows = t.alarms.get(change.stream, {})
    last = {(rows[n].rule, rows[n].subject): n for n in sorted(rows)}
    for n in [n for n in rows if n <= change.n and n not in set(last.values())]:
        t.drop(rows, n)


def _add_follows(t: Tables, change: c.AddFollows) -> None:
    for row in change.rows:
        t.new(t.of(t.follows, row.stream), row.item, row)


def _settle_follow(t: Tables, change: c.SettleFollow) -> None:
    rows = t.follows.get(change.stream, {})
    if change.item in rows:
        t.put(rows, change.item, rows[change.item]._replace(settled_at=change.at))


def _add_labels(t: Tables, change: c.AddLabels) -> None:
    for row in change.rows:
        t.new(t.of(t.labels, row.stream), (row.item, row.labeler), row)


def _add_notes(t: Tables, change: c.AddNotes) -> None:
    for row in change.rows:
        t.new(t.of(t.notes, row.stream), row.n, row)


def _add_leases(t: Tables, change: c.AddLeases) -> None:
    for row in change.rows:
        t.check_stream(row.stream)
        t.new(t.leases, row.token_hash, row)


def _end_leases(t: Tables, change: c.EndLeases) -> None:
    for end in change.rows:
        old = t.leases.get(end.token_hash)
        if old is None:
            raise StoreError(f"there is no lease {end.token_hash!r}")
        row = old._replace(
            status=end.status, ended_at=end.ended_at, answer=end.answer, ended_key=end.key
        )
        t.put(t.leases, end.token_hash, row)


def _renew_lease(t: Tables, change: c.RenewLease) -> None:
    old = t.leases.get(change.token_hash)
    if old is not None:
        t.put(t.leases, change.token_hash, old._replace(ttl=change.ttl))


def _add_engine(t: Tables, change: c.AddEngine) -> None:
    row = change.row
    t.check_stream(row.stream)
    t.put(t.engines, (row.stream, row.n), row)


def _save_snapshot(t: Tables, change: c.SaveSnapshot) -> None:
    row = change.row
    t.check_stream(row.stream)
    t.put(t.snapshots, (row.stream, row.n), row)
    began = {n for stream, n in t.engines if stream == row.stream}
    began |= {segment.next_event for segment in t.segments.get(row.stream, {}).values()}
    numbers = [n for stream, n in t.snapshots if stream == row.stream]
    for n in superfluous(numbers, began):
        t.drop(t.snapshots, (row.stream, n))


def _add_key(t: Tables, change: c.AddKey) -> None:
    if any(key.hash == change.row.hash for key in t.keys.values()):
        raise StoreError(f"key {change.row.id!r} has the hash of another")
    t.new(t.keys, change.row.id, change.row)


def _revoke_key(t: Tables, change: c.RevokeKey) -> None:
    old = t.keys.get(change.id)
    if old is not None and old.revoked_at is None:
        t.put(t.keys, change.id, old._replace(revoked_at=change.at))


def _touch_key(t: Tables, change: c.TouchKey) -> None:
    if change.id in t.keys:
        t.put(t.keys, change.id, t.keys[change.id]._replace(last_used_at=change.at))


def _expire_key(t: Tables, change: c.ExpireKey) -> None:
    old = t.keys.get(change.id)
    if old is not None and (old.expires_at is None or old.expires_at > change.at):
        t.put(t.keys, change.id, old._replace(expires_at=change.at))


def _add_webhook(t: Tables, change: c.AddWebhook) -> None:
    t.check_stream(change.row.stream)
    t.new(t.webhooks, change.row.id, change.row)


def _rotate_secret(t: Tables, change: c.RotateSecret) -> None:
    old = t.webhooks.get(change.id)
    if old is not None:
        new = old._replace(secret=change.secret, old_secret=old.secret, old_until=change.old_until)
        t.put(t.webhooks, change.id, new)


def _remove_webhook(t: Tables, change: c.RemoveWebhook) -> None:
    if change.id in t.webhooks:
        t.drop(t.webhooks, change.id)
    for key in [key for key in t.deliveries if key[0] == change.id]:
        t.drop(t.deliveries, key)


def _add_deliveries(t: Tables, change: c.AddDeliveries) -> None:
    for row in change.rows:
        if row.webhook not in t.webhooks:
            raise StoreError(f"there is no webhook {row.webhook!r}")
        t.new(t.deliveries, (row.webhook, row.kind, row.exit_n), row)


def _update_delivery(t: Tables, change: c.UpdateDelivery) -> None:
    key = change.row.webhook, change.row.kind, change.row.exit_n
    if key in t.deliveries:
        t.put(t.deliveries, key, change.row)


def _set_meta(t: Tables, change: c.SetMeta) -> None:
    t.put(t.meta, change.key, change.value)


def _drop_meta(t: Tables, change: c.DropMeta) -> None:
    if change.key in t.meta:
        t.drop(t.meta, change.key)


def _add_audit(t: Tables, change: c.AddAudit) -> None:
    for row in change.rows:
        n = len(t.audit) + 1
        t.put(t.audit, n, row._replace(n=n))


def _erase_payload(t: Tables, change: c.ErasePayload) -> None:
    items = t.items.get(change.stream, {})
    if change.item not in items:
        raise StoreError(f"an item to erase is unknown: {change.item!r}")
    erased = items[change.item]._replace(payload="null", digest=ERASED)
    t.put(items, change.item, erased)
    notes = t.notes.get(change.stream, {})
    for n in [n for n, note in notes.items() if note.item == change.item]:
        t.put(notes, n, notes[n]._replace(text=""))


def _retell_audit(t: Tables, change: c.RetellAudit) -> None:
    if change.n in t.audit:
        t.put(t.audit, change.n, t.audit[change.n]._replace(details=change.details))


def _archive_stream(t: Tables, change: c.ArchiveStream) -> None:
    t.check_stream(change.stream)
    row = t.streams[change.stream]
    t.put(t.streams, change.stream, row._replace(archived_at=change.at))


def _mark_deleted(t: Tables, change: c.MarkDeleted) -> None:
    row = t.streams.get(change.stream)
    if row is None:
        raise StoreError(f"a stream to delete is unknown: {change.stream!r}")
    t.put(t.streams, change.stream, row._replace(deleted_at=change.at))


def _purge_stream(t: Tables, change: c.PurgeStream) -> None:
    for table, key in list(islice(t.rows_of(change.stream), change.limit)):
        t.drop(table, key)


def _delete_stream(t: Tables, change: c.DeleteStream) -> None:
    if any(True for _ in t.rows_of(change.stream)):
        raise StoreError(f"rows of stream {change.stream!r} are left")
    for key in [key for key in t.dropped if key[0] == change.stream]:
        t.drop(t.dropped, key)
    for table in (t.streams, t.ends):
        if change.stream in table:
            t.drop(table, change.stream)


_APPLY: dict[type, Callable[[Tables, Any], None]] = {
    c.AddStream: _add_stream,
    c.SetStatus: _set_status,
    c.AddSettings: _add_settings,
    c.AddEvents: _add_events,
    c.AddItems: _add_items,
    c.LeaveItems: _leave_items,
    c.AddRevisions: _add_revisions,
    c.AddChecks: _add_checks,
    c.AddGold: _add_gold,
    c.CorrectGold: _correct_gold,
    c.AddAlarms: _add_alarms,
    c.DropAlarms: _drop_alarms,
    c.AddFollows: _add_follows,
    c.SettleFollow: _settle_follow,
    c.AddLabels: _add_labels,
    c.AddLeases: _add_leases,
    c.AddNotes: _add_notes,
    c.EndLeases: _end_leases,
    c.RenewLease: _renew_lease,
    c.AddEngine: _add_engine,
    c.SaveSnapshot: _save_snapshot,
    c.AddKey: _add_key,
    c.RevokeKey: _revoke_key,
    c.TouchKey: _touch_key,
    c.ExpireKey: _expire_key,
    c.AddWebhook: _add_webhook,
    c.RotateSecret: _rotate_secret,
    c.RemoveWebhook: _remove_webhook,
    c.AddDeliveries: _add_deliveries,
    c.UpdateDelivery: _update_delivery,
    c.SetMeta: _set_meta,
    c.DropMeta: _drop_meta,
    c.AddAudit: _add_audit,
    c.ErasePayload: _erase_payload,
    c.RetellAudit: _retell_audit,
    c.ArchiveStream: _archive_stream,
    c.MarkDeleted: _mark_deleted,
    c.PurgeStream: _purge_stream,
    c.DeleteStream: _delete_stream,
    **ARCHIVING,
}
