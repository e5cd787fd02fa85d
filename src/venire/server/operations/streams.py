"""Streams: creating, changing, pausing, closing and archiving them."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import ValidationError

from venire.engine import engine_version
from venire.errors import (
    Conflict,
    InputError,
    NotFound,
    StateError,
    StoreDown,
    StreamElsewhere,
    StreamLoading,
    VenireError,
)
from venire.model import StreamStatus
from venire.server.actors import Actor, audit_row
from venire.server.messages import ArchivedStream, SettingsVersion, StreamView
from venire.server.operations import Operations
from venire.server.operations.routing import Graph, check_routes, graph_of
from venire.server.settings import (
    STREAM_NAME,
    Block,
    Practice,
    StreamSettings,
    as_body,
    changed,
    check_retention,
    first_fault,
    of_body,
)
from venire.server.store import (
    ArchiveStream,
    Change,
    EngineRow,
    Insert,
    SetStatus,
    SettingsRow,
    SnapshotRow,
    Storage,
    StreamRow,
)
from venire.server.stream.change_batch import Batch
from venire.server.stream.engine_setup import apply_settings, check_new, new_engine
from venire.server.stream.live_stream import LiveStream

_NAME: Final = re.compile(STREAM_NAME)

#: Seconds for which a request waits until what its stream runs on is compiled.
COMPILING: Final = 10.0

#: The action that leads to a status, for the audit trail.
_ACTIONS: Final = {
    StreamStatus.PAUSED: "pause",
    StreamStatus.RUNNING: "resume",
    StreamStatus.CLOSED: "close",
    StreamStatus.ARCHIVED: "archive",
}


class StreamOperations(Operations):
    """Creates and changes streams."""

    async def create_stream(
        self, name: str, settings: StreamSettings, actor: Actor | str
    ) -> StreamView:
        """Create a stream; idempotent for the same name and settings."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"got the stream name {name!r}, expected letters, digits, '.', '_' and '-', "
                "at most 64, the first a letter or a digit"
            )
        async with self.runtime.sharing.creating(name):
            return await self._create_here(name, settings, actor)

    async def _create_here(
        self, name: str, settings: StreamSettings, actor: Actor | str
    ) -> StreamView:
        runtime = self.runtime
        try:
            return await self._existing(await runtime.live_stream(name), settings)
        except NotFound:
            check_new(settings)
            check_retention(settings.retention, self.settings.archive)
            graph = await self._graph() if settings.routes else {}
            await runtime.threads.warm(settings, COMPILING)
            engine = await runtime.threads.compute(
                new_engine, settings, self.settings.remember_items
            )
        with contextlib.suppress(NotFound):  # or somebody else was faster
            return await self._existing(await runtime.live_stream(name), settings)
        if name in runtime.deleting:
            raise Conflict(f"stream {name!r} is being deleted: create it again when that is done")
        other = runtime.streams.get(name)
        if other is not None:
            return await self._existing(other, settings)
        if not runtime.sharing.holds(name):
            raise StreamElsewhere(name)
        if not runtime.accepting:
            raise StoreDown("the store does not accept writes at the moment: try again")
        check_routes(name, settings, self._latest(graph), {})
        live = LiveStream(name, engine, settings, runtime.moment(), runtime.lease_index)
        done = self._create(live, actor)
        await done
        return stream_view(live)

    async def _graph(self) -> Graph:
        """To which streams each stream sends items, by the store."""
        return await self.runtime.read_committed(graph_of, self.runtime.storage)

    def _latest(self, graph: Graph) -> Graph:
        """The same, with what is in memory, where a change is seen first."""
        here = {
            live.name: [route.stream for route in live.settings.routes if route.stream is not None]
            for live in self.runtime.loaded()
        }
        return {**graph, **here}

    def _create(self, live: LiveStream, actor: Actor | str) -> asyncio.Future[None]:
        """Write a new stream: the first version of its settings, and an empty snapshot."""
        settings, at = live.settings, self.runtime.clock.wall()
        live.created_at = at
        names = {member.id for member in settings.asked}
        live.labelers.seat(settings.panel, names)
        batch = Batch()
        batch.first = [
            Insert([StreamRow(name=live.name, created_at=at)]),
            _settings_row(live, actor, at),
            Insert([EngineRow(stream=live.name, n=0, version=engine_version(), at=at)]),
            Insert([SnapshotRow(stream=live.name, n=0, at=at, body=live.engine.snapshot())]),
        ]
        batch.audit = [audit_row(actor, at, "stream.create", live.name)]
        self.runtime.loading.void(live.name)  # who looks for it in the store is too early
        self.runtime.add(live)
        return self.runtime.commit(live, batch)

    async def _existing(self, live: LiveStream, settings: StreamSettings) -> StreamView:
        """The existing stream, once it is on disk; `Conflict` if its settings differ."""
        view, same = stream_view(live), live.settings == settings
        await self.runtime.flush()
        if not same:
            raise Conflict(
                f"stream {live.name!r} exists with other settings: change them, or choose "
                "another name"
            )
        return view

    async def stream(self, name: str) -> StreamView:
        """A stream as it is now."""
        live = await self.runtime.live_stream(name)
        view = stream_view(live)
        await self.runtime.flush()
        return view

    async def layout(self, name: str) -> tuple[Block, ...]:
        """What the labelling page shows of a stream's payloads, block by block."""
        return (await self.runtime.live_stream(name)).settings.layout

    async def practice(self, name: str) -> tuple[Practice, ...]:
        """The items of a stream to practise with."""
        return (await self.runtime.live_stream(name)).settings.practice

    async def streams(self) -> list[StreamView]:
        """All streams in service on this server, by name; those that are archived are not."""
        if not await self.runtime.loading.settled():
            raise StreamLoading
        rows = await self.runtime.read_committed(self.runtime.storage.streams)
        rows = [row for row in rows if row.archived_at is None]
        aside, ours = self.runtime.set_aside, self.runtime.sharing.holds
        views = []
        for name in [row.name for row in rows if row.name not in aside and ours(row.name)]:
            with contextlib.suppress(StreamElsewhere):  # it was given up meanwhile
                views.append(stream_view(await self.runtime.live_stream(name)))
        await self.runtime.flush()
        return views

    async def archived(self) -> list[ArchivedStream]:
        """The streams that are archived, by name."""
        rows = await self.runtime.read_committed(self.runtime.storage.streams)
        return await self.runtime.read(_archived, self.runtime.storage, rows)

    async def change_stream(
        self,
        name: str,
        changes: dict[str, Any] | Callable[[StreamSettings], dict[str, Any]],
        actor: Actor | str,
        action: str = "stream.change",
        subject: str | None = None,
    ) -> StreamView:
        """Change some of the settings of a running stream; each change is a new version.

        `changes` may be a function of the current settings. The audit trail records `action` and
        `subject`.
        """
        runtime, live = self.runtime, await self.runtime.writable(name)
        new = _new_settings(live, changes)
        if not runtime.threads.is_warm(new):
            await runtime.threads.warm(new, COMPILING)
            live = await runtime.writable(name)
            new = _new_settings(live, changes)
        if new.routes != live.settings.routes:
            graph = await self._graph()
            live = await runtime.writable(name)
            new = _new_settings(live, changes)
            check_routes(name, new, self._latest(graph), live.hooks)
        if new.retention != live.settings.retention:
            check_retention(new.retention, self.settings.archive)
        if new == live.settings:
            view = stream_view(live)
            await runtime.flush()
            return view
        changed_names = sorted(x for x in type(new).model_fields if _differ(live.settings, new, x))
        try:
            self._apply(live, new)
        except VenireError:
            runtime.drop(live)  # the engine may be half changed
            raise
        moment, batch = runtime.moment(), Batch()
        live.slots.rate(moment.now, new.slot_seconds)
        batch.first = [self._new_version(live, actor)]
        details = {"version": live.version, "changed": changed_names}
        batch.audit = [audit_row(actor, moment.wall, action, name, subject, **details)]
        live.collect(batch, moment)
        return await self._commit(live, batch)

    def _apply(self, live: LiveStream, new: StreamSettings) -> None:
        budget = new.label_budget
        spent = budget is not None and live.bought >= budget
        live.spent = spent and not live.leases.in_flight
        seated = apply_settings(live.engine, live.settings, new, live.labelers.seated, live.spent)
        live.labelers.seat(new.panel, seated)
        live.settings = new

    def _new_version(self, live: LiveStream, actor: Actor | str) -> Insert:
        live.version += 1
        return _settings_row(live, actor, self.runtime.clock.wall())

    async def _commit(self, live: LiveStream, batch: Batch) -> StreamView:
        view, done = stream_view(live), self.runtime.commit(live, batch)
        self.runtime.offers.wake(live.name)
        await done
        return view

    async def settings_history(self, name: str) -> list[SettingsVersion]:
        """Every version of a stream's settings, oldest first."""
        await self.runtime.live_stream(name)
        rows = await self.runtime.read_committed(self.runtime.storage.settings, name)
        return [
            SettingsVersion(
                row.version, row.at, row.actor, status, settings.model_dump(mode="json")
            )
            for row, (settings, status) in ((row, of_body(row.body)) for row in rows)
        ]

    async def pause(self, name: str, actor: Actor | str) -> StreamView:
        """Stop handing out work and stop the slot clock; labels and items are still accepted."""
        live = await self.runtime.writable(name)
        if live.status == StreamStatus.CLOSED:
            raise StateError(f"stream {name!r} is closed: it cannot be paused")
        return await self._set_status(live, StreamStatus.PAUSED, actor)

    async def resume(self, name: str, actor: Actor | str) -> StreamView:
        """Resume a paused stream; a closed stream stays closed."""
        live = await self.runtime.writable(name)
        if live.status == StreamStatus.CLOSED:
            raise StateError(f"stream {name!r} is closed: it cannot be resumed")
        return await self._set_status(live, StreamStatus.RUNNING, actor)

    async def close(self, name: str, actor: Actor | str) -> StreamView:
        """Drain the stream: no new items, the open ones are finished."""
        return await self._set_status(await self.runtime.writable(name), StreamStatus.CLOSED, actor)

    async def archive(self, name: str, actor: Actor | str) -> StreamView:
        """Put a closed stream away: it can only be read, and is loaded when it is."""
        live = await self.runtime.live_stream(name)
        if live.status != StreamStatus.ARCHIVED and (
            live.status != StreamStatus.CLOSED or live.open
        ):
            raise StateError(
                f"stream {name!r} is {live.status} and has {len(live.open):,} open items, expected "
                "a closed one without any: close it, and wait until its items have left"
            )
        view = await self._set_status(live, StreamStatus.ARCHIVED, actor)
        await self.runtime.snapshot(live)
        await self.runtime.flush()
        self.runtime.put_away(live)
        return view

    async def restore(self, name: str, actor: Actor | str) -> StreamView:
        """Bring an archived stream back, closed as it was."""
        live = await self.runtime.live_stream(name)
        if live.status != StreamStatus.ARCHIVED:
            raise StateError(f"stream {name!r} is {live.status}, expected an archived one")
        return await self._set_status(live, StreamStatus.CLOSED, actor)

    async def _set_status(
        self, live: LiveStream, status: StreamStatus, actor: Actor | str
    ) -> StreamView:
        batch = Batch()
        if status != live.status:
            at, before = self.runtime.clock.wall(), live.status
            live.status = status
            switch = live.slots.pause if status == StreamStatus.PAUSED else live.slots.resume
            switch(self.runtime.clock.monotonic())
            written: Change = SetStatus(live.name, status)
            if StreamStatus.ARCHIVED in (before, status):
                written = ArchiveStream(live.name, at if status == StreamStatus.ARCHIVED else None)
            batch.first = [written, self._new_version(live, actor)]
            action = "restore" if before == StreamStatus.ARCHIVED else _ACTIONS[status]
            batch.audit = [audit_row(actor, at, f"stream.{action}", live.name)]
        return await self._commit(live, batch)


def _settings_row(live: LiveStream, actor: Actor | str, at: float) -> Insert:
    """The version of the settings that a stream has now."""
    body = as_body(live.settings, live.status)
    row = SettingsRow(stream=live.name, version=live.version, at=at, actor=str(actor), body=body)
    return Insert([row])


def _archived(storage: Storage, rows: Sequence[StreamRow]) -> list[ArchivedStream]:
    return [
        ArchivedStream(row.name, row.created_at, row.archived_at, counts.exits, counts.labels)
        for row in rows
        if row.archived_at is not None
        for counts in [storage.counts(row.name)]
    ]


def _differ(old: StreamSettings, new: StreamSettings, name: str) -> bool:
    return bool(getattr(old, name) != getattr(new, name))


def _new_settings(
    live: LiveStream, changes: dict[str, Any] | Callable[[StreamSettings], dict[str, Any]]
) -> StreamSettings:
    """The settings of a stream after a change, validated."""
    try:
        new = changed(live.settings, changes(live.settings) if callable(changes) else changes)
    except ValidationError as error:
        raise InputError(first_fault(error)) from None
    if new.classes != live.settings.classes:
        raise InputError("the classes of a stream cannot be changed: create another stream")
    return new


def stream_view(live: LiveStream) -> StreamView:
    """A stream as it is now."""
    return StreamView(
        name=live.name,
        status=live.status,
        version=live.version,
        settings=live.settings.model_dump(mode="json"),
        created_at=live.created_at,
        slot=live.engine.slot,
        open_items=len(live.open),
        leases=len(live.leases),
        labels=live.statistics.labels,
        exits=live.exit_n,
        student=live.pupil.record(live),
    )
