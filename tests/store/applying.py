"""How a store in memory makes each kind of change; what a database refuses is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from tests.store.archiving import ARCHIVING, erase_texts
from tests.store.tables import Tables
from venire.errors import StoreError
from venire.model import ItemStatus
from venire.server.store import changes as c
from venire.server.store import records as r
from venire.server.store.record import Record
from venire.server.store.records import ERASED
from venire.server.store.sql.storage import superfluous

__all__ = ["apply"]


def apply(t: Tables, change: c.Change) -> None:
    """Make a change, inside `Tables.transaction`."""
    if isinstance(change, c.Insert):
        for row in change.rows:
            _insert(t, row)
    else:
        _APPLY[type(change)](t, change)


def _insert(t: Tables, row: Record) -> None:
    """Add a row to its table, unless its key, or what it belongs to, is not as it must be."""
    match row:
        case r.AuditRow():
            n = len(t.audit) + 1
            t.put(t.audit, n, row._replace(n=n))
            return
        case r.EventRow():
            gone = t.segments.get(row.stream, {}).values()
            end = t.ends.get(row.stream, max((x.next_event for x in gone), default=0))
            if row.n != end:
                raise StoreError(f"got event {row.n} of stream {row.stream!r}, expected {end}")
            t.put(t.ends, row.stream, row.n + row.size)
        case r.ItemRow() if row.exit_n is not None:
            t.new(t.of(t.exits, row.stream), row.exit_n, row.id)
        case r.KeyRow() if any(key.hash == row.hash for key in t.keys.values()):
            raise StoreError(f"key {row.id!r} has the hash of another")
        case r.DeliveryRow() if row.webhook not in t.webhooks:
            raise StoreError(f"there is no webhook {row.webhook!r}")
    table, key = t.place(row)
    (t.put if row.TABLE.replaces else t.new)(table, key, row)
    if isinstance(row, r.SnapshotRow):
        _thin_out(t, row.stream)


def _thin_out(t: Tables, stream: str) -> None:
    began = {n for name, n in t.engines if name == stream}
    began |= {segment.next_event for segment in t.segments.get(stream, {}).values()}
    for n in superfluous([n for name, n in t.snapshots if name == stream], began):
        t.drop(t.snapshots, (stream, n))


def _set_status(t: Tables, change: c.SetStatus) -> None:
    t.check_stream(change.stream)
    row = t.streams[change.stream]
    t.put(t.streams, change.stream, row._replace(status=change.status))


def _leave_items(t: Tables, change: c.LeaveItems) -> None:
    for row in change.rows:
        items = t.of(t.items, row.stream)
        old = items.get(row.id)
        if old is None or old.status != ItemStatus.OPEN:
            raise StoreError(f"item {row.id!r} of stream {row.stream!r} is not open")
        t.put(items, row.id, old._replace(**row._asdict()))
        t.new(t.of(t.exits, row.stream), row.exit_n, row.id)


def _correct_gold(t: Tables, change: c.CorrectGold) -> None:
    for row in change.rows:
        rows = t.gold.get(row.stream, {})
        if row.item not in rows:
            raise StoreError("gold to correct is unknown")
        t.put(rows, row.item, row)


def _drop_alarms(t: Tables, change: c.DropAlarms) -> None:
    rows = t.alarms.get(change.stream, {})
    last = {(rows[n].rule, rows[n].subject): n for n in sorted(rows)}
    for n in [n for n in rows if n <= change.n and n not in set(last.values())]:
        t.drop(rows, n)


def _settle_follow(t: Tables, change: c.SettleFollow) -> None:
    rows = t.follows.get(change.stream, {})
    if change.item in rows:
        t.put(rows, change.item, rows[change.item]._replace(settled_at=change.at))


def _settle_route(t: Tables, change: c.SettleRoute) -> None:
    row = change.row
    rows, key = t.routed.get(row.stream, {}), (row.item, row.kind, row.target)
    if key in rows:
        t.put(rows, key, row)


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


def _update_delivery(t: Tables, change: c.UpdateDelivery) -> None:
    key = change.row.webhook, change.row.kind, change.row.exit_n
    if key in t.deliveries:
        t.put(t.deliveries, key, change.row)


def _set_meta(t: Tables, change: c.SetMeta) -> None:
    t.put(t.meta, change.key, change.value)


def _drop_meta(t: Tables, change: c.DropMeta) -> None:
    if change.key in t.meta:
        t.drop(t.meta, change.key)


def _erase_payload(t: Tables, change: c.ErasePayload) -> None:
    items = t.items.get(change.stream, {})
    if change.item not in items:
        raise StoreError(f"an item to erase is unknown: {change.item!r}")
    erased = items[change.item]._replace(payload="null", digest=ERASED)
    t.put(items, change.item, erased)
    erase_texts(t, change.stream, change.item)


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
    c.SetStatus: _set_status,
    c.LeaveItems: _leave_items,
    c.CorrectGold: _correct_gold,
    c.DropAlarms: _drop_alarms,
    c.SettleFollow: _settle_follow,
    c.SettleRoute: _settle_route,
    c.EndLeases: _end_leases,
    c.RenewLease: _renew_lease,
    c.RevokeKey: _revoke_key,
    c.TouchKey: _touch_key,
    c.ExpireKey: _expire_key,
    c.RotateSecret: _rotate_secret,
    c.RemoveWebhook: _remove_webhook,
    c.UpdateDelivery: _update_delivery,
    c.SetMeta: _set_meta,
    c.DropMeta: _drop_meta,
    c.ErasePayload: _erase_payload,
    c.RetellAudit: _retell_audit,
    c.ArchiveStream: _archive_stream,
    c.MarkDeleted: _mark_deleted,
    c.PurgeStream: _purge_stream,
    c.DeleteStream: _delete_stream,
    **ARCHIVING,
}
