"""Bounded history, and deletion: what is archived or erased in the background, and on request.

What a stream need not keep is archived, deleted or erased in small transactions, with pauses
between them, so that nobody waits long. Whatever is interrupted is finished at the next round.

The log of a stream holds ids, weights and labels, but no payloads, so it replays without them. A
stream is purged in chunks, so that other requests are served in between; a purge that was
interrupted is finished after a restart. Both kinds of deletion leave an audit entry, by which
`venire verify` checks that the data is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from venire.errors import StateError, StoreDown, VenireError
from venire.model import StreamStatus
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.admin_messages import AuditView, invitations_of
from venire.server.messages import Deleted, Erased
from venire.server.operations import Operations
from venire.server.reports.explain import find
from venire.server.runtime.students import kept_under, lessons_under
from venire.server.store import (
    ERASED,
    AuditRow,
    Change,
    DeleteStream,
    DropMeta,
    ErasePayload,
    Insert,
    ItemRow,
    MarkDeleted,
    PurgeStream,
    RetellAudit,
    SetMeta,
    Storage,
)
from venire.server.store.history.files import erase_archived, remove_files
from venire.server.store.history.segments import (
    SMALL,
    Keep,
    drops,
    next_segment,
    registering,
    write_segment,
)
from venire.server.stream.change_batch import Batch

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream

#: Seconds between two rounds, and the least pause between two transactions.
ROUND_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.01

#: Payloads to erase in one transaction.
ERASE_ITEMS: Final = 50

DAY: Final = 86_400.0

_log = logging.getLogger("venire.service")


def erased_upto(stream: str) -> str:
    """The name under which the store keeps up to which exit payloads are erased."""
    return f"payloads-erased:{stream}"


class ServiceStopping(Exception):
    """The service stops."""


class HistoryOperations(Operations):
    """Keeps to the retention of every stream.

    `_dropping` is held while rows are dropped: what is read inside it is there until it is written.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._dropping, self._keeping = asyncio.Lock(), asyncio.Lock()

    async def _keep_history_forever(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            for live in self.runtime.loaded():
                try:
                    await self.keep_history(live.name)
                except (StoreDown, ServiceStopping):
                    pass  # at the next round
                except (VenireError, OSError) as error:
                    _log.error("the retention of stream %r cannot be kept: %s", live.name, error)

    async def keep_history(self, stream: str) -> None:
        """Erase, archive and delete what the stream's retention does not keep; one at a time."""
        async with self._keeping:
            await self._keep(stream)

    async def _keep(self, stream: str) -> None:
        live = await self.runtime.live_stream(stream)
        retention, wall = live.settings.retention, self.runtime.clock.wall()
        if retention.payload_days is not None:
            await self._erase_payloads(live, wall - DAY * retention.payload_days)
        archive = self.settings.archive
        if not retention.bounds_items or (retention.archives and archive is None):
            return
        days = retention.item_days
        keep = Keep(None if days is None else wall - DAY * days, retention.items)
        await self._archive_items(stream, keep, None if retention.delete else archive)

    # payloads

    async def _erase_payloads(self, live: LiveStream, before: float) -> None:
        """Erase the payloads of items that left before a time."""
        runtime, name, count = self.runtime, live.name, 0
        after = int(await runtime.read_committed(runtime.storage.meta, erased_upto(name)) or 0)
        while True:
            async with self._dropping:
                rows = await runtime.read(runtime.storage.exits, name, after, ERASE_ITEMS)
                old = list(takewhile(partial(_left_before, before), rows))
                if not old:
                    break
                after = old[-1].exit_n or after
                full = [row.id for row in old if row.digest != ERASED]
                for id in full:
                    if id in live.exited:
                        live.exited[id] = live.exited[id]._replace(digest=ERASED)
                erasing = [ErasePayload(name, id) for id in full]
                await runtime.write([*erasing, SetMeta(erased_upto(name), str(after))])
            count += len(full)
            await asyncio.sleep(PAUSE_SECONDS)
        if count:
            entry = audit_row(PROGRAM, runtime.clock.wall(), "retention.erase", name, items=count)
            await runtime.write([Insert([entry])])
            await runtime.read(runtime.storage.scrub)

    # items

    async def _archive_items(self, stream: str, keep: Keep, archive: Path | None) -> None:
        """Archive segment after segment; first finish what was interrupted."""
        runtime, storage = self.runtime, self.runtime.storage
        await self._drop_archived(stream)
        while True:
            await runtime.flush()
            at, check = runtime.clock.wall(), self._check_running
            planned = await asyncio.to_thread(next_segment, storage, stream, keep, at, check)
            if planned is None:
                return
            made = await asyncio.to_thread(write_segment, storage, planned, archive, check)
            await runtime.live_stream(stream)  # unless it was deleted meanwhile
            changes = await runtime.read(registering, storage, made)
            details = {"segment": made.n, "events": made.next_event, "exits": made.exits}
            action = "history.archive" if made.name else "history.delete"
            entry = audit_row(PROGRAM, at, action, stream, **details)
            await runtime.write([*changes, Insert([entry])])
            live = await runtime.live_stream(stream)
            live.segment = made
            await self._drop_archived(stream)
            done = "archived" if made.name else "deleted"
            _log.info("stream %r: segment %d of its history is %s", stream, made.n, done)

    async def _drop_archived(self, stream: str) -> None:
        """Drop the rows that are in the last segment, a few at a time."""
        runtime = self.runtime
        live = await runtime.live_stream(stream)
        last, archive = live.segment, runtime.settings.archive
        if last is not None and last.name and archive is None:
            raise StateError(f"segment {last.n} is in an archive, and this server has none")
        found = drops(runtime.storage, stream, archive, SMALL)
        self._forget_leases(live)
        while True:
            began = runtime.clock.monotonic()
            async with self._dropping:
                change = await runtime.read(next, found, None)
                if change is None:
                    return
                await runtime.write([change])
            await asyncio.sleep(max(PAUSE_SECONDS, runtime.clock.monotonic() - began))

    def _forget_leases(self, live: LiveStream) -> None:
        """Look up leases that ended in the store again: their rows may go."""
        lapsed = self.runtime.lease_index.lapsed
        for token, (name, lease) in list(lapsed.items()):
            if name == live.name and lease.item not in live.open:
                del lapsed[token]

    def _check_running(self) -> None:
        if not self.runtime.running:
            raise ServiceStopping


def _left_before(time: float, row: ItemRow) -> bool:
    return row.left_at is not None and row.left_at < time


#: Rows of each table to delete in one transaction.
PURGE_ROWS: Final = 500

#: Seconds before a retry.
PURGE_RETRY_SECONDS: Final = 1.0


class DeletionOperations(HistoryOperations):
    """Deletes payloads and streams, and reads the audit trail."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        runtime.sharing.purge = self._resume_deletion

    async def audit(
        self, after: int = 0, limit: int = 1000, stream: str | None = None
    ) -> list[AuditView]:
        """Audit entries after number `after`, oldest first; of one stream, or of all."""
        storage = self.runtime.storage
        rows = await self.runtime.read_committed(storage.audit, after, limit, stream)
        return [_audit_view(row) for row in rows]

    async def recent_audit(
        self,
        before: int | None = None,
        limit: int = 100,
        stream: str | None = None,
        action: str | None = None,
    ) -> list[AuditView]:
        """Audit entries before number `before`, newest first; of one stream, one action, or all."""
        read = self.runtime.storage.recent_audit
        rows = await self.runtime.read_committed(read, before, limit, stream, action)
        return [_audit_view(row) for row in rows]

    async def erase_payload(self, stream: str, item: str, actor: Actor | str) -> Erased:
        """Erase the payload of an item permanently; an open item is withdrawn first.

        Its labels and its exit are kept.
        """
        runtime = self.runtime
        await runtime.live_stream(stream)
        async with self._dropping:
            row = await runtime.read_committed(runtime.storage.item, stream, item)
            size = 0
            if row is None:
                size = await self._erase_archived(stream, item, actor)
            elif row.digest != ERASED:
                size = len(row.payload.encode())
                told = await runtime.read(_note_erasures, runtime.storage, stream, item)
                await self._erase(await runtime.live_stream(stream), row, told, actor)
        again = (await runtime.live_stream(stream)).follow_ups.latest.get(item)
        if again is not None:  # it was sent back, and holds the same
            await self.erase_payload(stream, again, actor)
        await self._scrub()
        return Erased(stream, item, size)

    async def _erase(
        self, live: LiveStream, row: ItemRow, told: list[Change], actor: Actor | str
    ) -> None:
        """Erase a payload, the notes of labelers, and those of reviewers in the audit trail."""
        moment, batch = self.runtime.moment(), Batch(Actor.of(actor).key)
        if row.id in live.open:
            live.withdraw(row.id, batch, moment)
        if row.id in live.exited:
            live.exited[row.id] = live.exited[row.id]._replace(digest=ERASED)
        batch.last += [ErasePayload(row.stream, row.id), *told]
        size = len(row.payload.encode())
        batch.audit = [audit_row(actor, moment.wall, "item.erase", row.stream, row.id, bytes=size)]
        await self.runtime.commit(live, batch)

    async def _erase_archived(self, stream: str, item: str, actor: Actor | str) -> int:
        """Erase the payload of an item in the archive; how many bytes it had."""
        runtime, archive = self.runtime, self.runtime.settings.archive
        found = await find(runtime, stream, item)
        if archive is None or found.item.digest == ERASED:
            return 0
        size = len(found.item.payload.encode())
        changes = await runtime.read(erase_archived, runtime.storage, stream, item, archive)
        changes += await runtime.read(_note_erasures, runtime.storage, stream, item)
        wall = runtime.clock.wall()
        entry = audit_row(actor, wall, "item.erase", stream, item, bytes=size, archived=True)
        await runtime.write([*changes, Insert([entry])])
        return size

    async def delete_stream(self, name: str, actor: Actor | str) -> Deleted:
        """Delete a closed stream permanently, with everything that belongs to it."""
        runtime, kept = self.runtime, kept_under(name)
        taught = await runtime.read_committed(runtime.storage.meta, kept)
        invited = await runtime.read(runtime.storage.metas, invitations_of(name))
        live = await runtime.live_stream(name)
        if live.status not in (StreamStatus.CLOSED, StreamStatus.ARCHIVED):
            raise StateError(f"stream {name!r} is {live.status}: close it before deleting it")
        statistics, at = live.statistics, runtime.clock.wall()
        had = {"items": len(live.open) + live.exit_n, "labels": statistics.labels, "events": live.n}
        batch = Batch()
        batch.first = [MarkDeleted(name, at), SetMeta(erased_upto(name), "")]
        batch.first += [DropMeta(one) for one in invited]
        if taught or live.pupil.version or live.settings.student is not None:
            batch.first += [SetMeta(kept, ""), SetMeta(lessons_under(name), "")]
        batch.audit = [audit_row(actor, at, "stream.delete", name, **had)]
        done = runtime.commit(live, batch)
        runtime.let_go(name)
        self._forget(name)
        purge = runtime.deleting[name] = runtime.spawn(self._purge(name, done))
        await asyncio.shield(done)
        await asyncio.shield(purge)
        await self._scrub()
        return Deleted(name, **had)

    async def _resume_deletions(self) -> None:
        """Resume the deletions that were in progress when the server stopped."""
        for row in await self.runtime.read(self.runtime.storage.deleted_streams):
            if self.runtime.sharing.holds(row.name) and row.name not in self.runtime.deleting:
                self._resume_deletion(row.name)

    def _resume_deletion(self, name: str) -> None:
        self.runtime.deleting[name] = self.runtime.spawn(self._purge(name))

    async def _purge(self, name: str, begun: asyncio.Future[None] | None = None) -> None:
        """Delete all rows of a stream in chunks, retrying whenever the store is down.

        Does nothing if the deletion mark was not committed, or if no rows remain.
        """
        runtime = self.runtime
        try:
            if begun is not None:
                await asyncio.wait({begun})
            while True:
                try:
                    rows = await runtime.read_committed(runtime.storage.deleted_streams)
                    if name not in {row.name for row in rows}:
                        return
                    if runtime.settings.archive is not None:
                        archive, storage = runtime.settings.archive, runtime.storage
                        await runtime.read(remove_files, storage, name, archive)
                    while await runtime.read(runtime.storage.remains, name):
                        await runtime.write([PurgeStream(name, PURGE_ROWS)])
                    await runtime.write([DeleteStream(name)])
                except StoreDown:
                    await asyncio.sleep(PURGE_RETRY_SECONDS)
        finally:
            runtime.deleting.pop(name, None)

    async def _scrub(self) -> None:
        """Remove the remains from the store's auxiliary files; retried if a reader blocks it."""
        if not await self._scrubbed():
            self.runtime.spawn(self._scrub_later())

    async def _scrub_later(self) -> None:
        while not await self._scrubbed():
            await asyncio.sleep(PURGE_RETRY_SECONDS)

    async def _scrubbed(self) -> bool:
        with contextlib.suppress(StoreDown):
            return await self.runtime.read(self.runtime.storage.scrub) is not False
        return False


def _note_erasures(storage: Storage, stream: str, item: str) -> list[Change]:
    """The changes that erase the notes on an item from the audit trail."""
    found: list[Change] = []
    for row in storage.all_audit(stream):
        if row.subject == item and row.action in ("item.review", "item.send_back", "gold.correct"):
            details = json.loads(row.details)
            if details.pop("note", None):
                found.append(RetellAudit(row.n, json.dumps({**details, "note": ""})))
    return found


def _audit_view(row: AuditRow) -> AuditView:
    return AuditView(**{**row._asdict(), "details": json.loads(row.details)})
