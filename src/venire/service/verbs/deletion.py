"""What can be deleted: the payload of an item, and a stream with all that belongs to it.

The log of a stream holds ids, weights and labels, but no payloads, so it replays without them. A
stream goes in pieces, with room for others in between; what was begun is finished after a
restart. Both leave a line in the audit trail, by which `venire verify` checks that they are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Final

from venire.errors import NotFound, StateError, StoreDown
from venire.model import StreamStatus
from venire.service.actors import Actor, done_by
from venire.service.messages import AuditView, Deleted, Erased
from venire.service.reports.skill_report import Skills
from venire.service.runtime.runtime import Hub
from venire.service.stream.change_batch import Batch
from venire.service.stream.live_stream import Live
from venire.storage import ERASED, DeleteStream, ErasePayload, ItemRow, MarkDeleted, PurgeStream

__all__ = ["EraseVerbs"]

#: So many rows of each table go at a time.
ROWS: Final = 500

#: What could not be done is tried again after so many seconds.
LATER: Final = 1.0


class EraseVerbs:
    """The part of `Service` that deletes, and that says who did what."""

    hub: Hub
    skills: Skills

    async def audit(
        self, after: int = 0, limit: int = 1000, stream: str | None = None
    ) -> list[AuditView]:
        """Who did what after line `after`, the earliest first; of one stream, or everything."""
        storage = self.hub.storage
        rows = await self.hub.read_committed(storage.audit, after, limit, stream)
        return [AuditView(*row[:-1], details=json.loads(row.details)) for row in rows]

    async def erase_payload(self, stream: str, item: str, actor: Actor | str) -> Erased:
        """Delete what an item holds, for good; one that is open is withdrawn first.

        What was said of it, and how it left, stays.
        """
        hub = self.hub
        await hub.live(stream)
        row = await hub.read_committed(hub.storage.item, stream, item)
        if row is None:
            raise NotFound("item", item)
        size = 0
        if row.digest != ERASED:
            size = len(row.payload.encode())
            await self._erase(await hub.live(stream), row, actor)
        await self._scrub()
        return Erased(stream, item, size)

    async def _erase(self, live: Live, row: ItemRow, actor: Actor | str) -> None:
        moment, batch = self.hub.moment(), Batch(Actor.of(actor).key)
        if row.id in live.open:
            live.withdraw(row.id, batch, moment)
        if row.id in live.gone:
            live.gone[row.id] = live.gone[row.id]._replace(digest=ERASED)
        batch.last = [ErasePayload(row.stream, row.id)]
        size = len(row.payload.encode())
        batch.audit = [done_by(actor, moment.wall, "item.erase", row.stream, row.id, bytes=size)]
        await self.hub.commit(live, batch)

    async def delete_stream(self, name: str, actor: Actor | str) -> Deleted:
        """Delete a stream that is closed, with all that belongs to it, for good."""
        hub, live = self.hub, await self.hub.live(name)
        if live.status != StreamStatus.CLOSED:
            raise StateError(f"stream {name!r} is {live.status}: close it before it is deleted")
        figures, at = live.figures, hub.clock.wall()
        had = {"items": len(live.open) + live.exit_n, "labels": figures.labels, "events": live.n}
        batch = Batch()
        batch.first = [MarkDeleted(name, at)]
        batch.audit = [done_by(actor, at, "stream.delete", name, **had)]
        done = hub.commit(live, batch)
        hub.forget(live)
        self.skills.forget(name)
        going = hub.deleting[name] = hub.spawn(self._purge(name, done))
        await asyncio.shield(done)
        await asyncio.shield(going)
        await self._scrub()
        return Deleted(name, **had)

    async def resume_deletions(self) -> None:
        """Go on with what was being deleted when the server stopped."""
        for row in await self.hub.read(self.hub.storage.deleted_streams):
            self.hub.deleting[row.name] = self.hub.spawn(self._purge(row.name))

    async def _purge(self, name: str, begun: asyncio.Future[None] | None = None) -> None:
        """Delete all rows of a stream, a few at a time, however often the store goes away.

        If the store did not take that the stream is deleted, or all of it is gone already, there
        is nothing to do.
        """
        hub = self.hub
        try:
            if begun is not None:
                await asyncio.wait({begun})
            while True:
                try:
                    rows = await hub.read_committed(hub.storage.deleted_streams)
                    if name not in {row.name for row in rows}:
                        return
                    while await hub.read(hub.storage.remains, name):
                        await hub.write([PurgeStream(name, ROWS)])
                    await hub.write([DeleteStream(name)])
                except StoreDown:
                    await asyncio.sleep(LATER)
        finally:
            hub.deleting.pop(name, None)

    async def _scrub(self) -> None:
        """Leave nothing of it in the files beside the store; a reader may be in the way."""
        if not await self._scrubbed():
            self.hub.spawn(self._scrub_later())

    async def _scrub_later(self) -> None:
        while not await self._scrubbed():
            await asyncio.sleep(LATER)

    async def _scrubbed(self) -> bool:
        with contextlib.suppress(StoreDown):
            return await self.hub.read(self.hub.storage.scrub) is not False
        return False
