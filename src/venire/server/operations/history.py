"""Bounded history: what a stream need not keep is archived, deleted or erased, in the background.

Everything is done in small transactions, with pauses between them, so that nobody waits long.
Whatever is interrupted is finished at the next round.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from venire.errors import StateError, StoreDown, VenireError
from venire.server.actors import PROGRAM, audit_row
from venire.server.operations import Operations
from venire.server.store import ERASED, ErasePayload, Insert, ItemRow, SetMeta
from venire.server.store.history.segments import (
    SMALL,
    Keep,
    drops,
    next_segment,
    registering,
    write_segment,
)

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


class Stopped(Exception):
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
                except (StoreDown, Stopped):
                    pass  # at the next round
                except (VenireError, OSError) as error:
                    _log.error("the history of stream %r is not archived: %s", live.name, error)

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
            live = await runtime.live_stream(stream)
            changes = await runtime.read(registering, storage, made)
            details = {"segment": made.n, "events": made.next_event, "exits": made.exits}
            action = "history.archive" if made.name else "history.delete"
            entry = audit_row(PROGRAM, at, action, stream, **details)
            await runtime.write([*changes, Insert([entry])])
            live = await runtime.live_stream(stream)
            live.segment = made
            await self._drop_archived(stream)
            _log.info("stream %r: segment %d of its history is archived", stream, made.n)

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
            raise Stopped


def _left_before(time: float, row: ItemRow) -> bool:
    return row.left_at is not None and row.left_at < time
