"""Making, changing, pausing and closing streams, and the items that enter them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from venire.engine import engine_version
from venire.errors import Conflict, InputError, NotFound, StateError, TooMuch, VenireError
from venire.model import ItemStatus, StreamStatus
from venire.service.actors import PROGRAM, Actor, done_by
from venire.service.messages import Added, ItemIn, ItemView, SettingsVersion, StreamView
from venire.service.runtime.runtime import BEHIND, PIECE, Hub, written
from venire.service.settings import (
    STREAM_NAME,
    ServiceSettings,
    StreamSettings,
    as_body,
    changed,
    first_fault,
    of_body,
)
from venire.service.stream.change_batch import Batch
from venire.service.stream.engine_setup import apply_settings, check_new, new_engine
from venire.service.stream.live_stream import Live, Moment
from venire.service.verbs.intake import Content, contents, sort_out
from venire.service.verbs.reads import item_view, stream_view
from venire.storage import (
    AddEngine,
    AddSettings,
    AddStream,
    EngineRow,
    SaveSnapshot,
    SetStatus,
    SettingsRow,
    SnapshotRow,
    StreamRow,
)

__all__ = ["StreamVerbs"]

_NAME: Final = re.compile(STREAM_NAME)

#: What makes a stream so, for the audit trail.
_VERBS: Final = {
    StreamStatus.PAUSED: "pause",
    StreamStatus.RUNNING: "resume",
    StreamStatus.CLOSED: "close",
}


class StreamVerbs:
    """The part of `Service` that makes and changes streams."""

    hub: Hub
    settings: ServiceSettings

    async def create_stream(
        self, name: str, settings: StreamSettings, actor: Actor | str
    ) -> StreamView:
        """Make a stream; the same name with the same settings again is no error."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"got the stream name {name!r}, expected letters, digits, '.', '_' and '-', "
                "at most 64, the first a letter or a digit"
            )
        hub = self.hub
        try:
            return await self._same(await hub.live(name), settings)
        except NotFound:
            check_new(settings)
            await hub.warm(settings)
            engine = await hub.think(new_engine, settings, self.settings.remember_items)
        async with hub.loading:
            if name in hub.deleting:
                raise Conflict(f"stream {name!r} is being deleted: make it when that is done")
            other = next((live for live in hub.loaded() if live.name == name), None)
            if other is not None:  # somebody else was quicker
                return await self._same(other, settings)
            live = Live(name, engine, settings, hub.moment(), hub.tokens)
            done = self._begin(live, actor)
        await done
        return stream_view(live)

    def _begin(self, live: Live, actor: Actor | str) -> asyncio.Future[None]:
        """A new stream, with the first version of its settings and a snapshot of nothing."""
        settings, at = live.settings, self.hub.clock.wall()
        live.created_at = at
        live.people.seat(settings.panel, {member.id for member in settings.panel})
        batch = Batch()
        batch.first = [
            AddStream(StreamRow(live.name, at)),
            AddSettings(SettingsRow(live.name, 1, at, str(actor), as_body(settings, live.status))),
            AddEngine(EngineRow(live.name, 0, engine_version(), at)),
            SaveSnapshot(SnapshotRow(live.name, 0, at, live.engine.snapshot())),
        ]
        batch.audit = [done_by(actor, at, "stream.create", live.name)]
        self.hub.adopt(live)
        return self.hub.commit(live, batch)

    async def _same(self, live: Live, settings: StreamSettings) -> StreamView:
        """The stream that is there already, once it is on disk; `Conflict` if it is another."""
        view, same = stream_view(live), live.settings == settings
        await self.hub.flush()
        if not same:
            raise Conflict(
                f"there is a stream {live.name!r} with other settings: change it, or take "
                "another name"
            )
        return view

    async def stream(self, name: str) -> StreamView:
        """A stream as it is now."""
        live = await self.hub.live(name)
        view = stream_view(live)
        await self.hub.flush()
        return view

    async def streams(self) -> list[StreamView]:
        """All streams that are served, by name."""
        rows = await self.hub.read_committed(self.hub.storage.streams)
        served = [row.name for row in rows if row.name not in self.hub.aside]
        views = [stream_view(await self.hub.live(name)) for name in served]
        await self.hub.flush()
        return views

    async def change_stream(
        self, name: str, changes: dict[str, Any], actor: Actor | str
    ) -> StreamView:
        """Change some of the settings, live; the change is a new version."""
        hub, live = self.hub, await self.hub.live(name)
        new = _new_settings(live, changes)
        if not hub.is_warm(new):
            await hub.warm(new)
            live = await hub.live(name)
            new = _new_settings(live, changes)
        if new == live.settings:
            view = stream_view(live)
            await hub.flush()
            return view
        try:
            self._apply(live, new)
        except VenireError:
            hub.drop(live)  # the engine may have taken half of it
            raise
        moment, batch = hub.moment(), Batch()
        live.slots.rate(moment.now, new.slot_seconds)
        batch.first = [self._version(live, actor)]
        told = {"version": live.version, "changed": sorted(changes)}
        batch.audit = [done_by(actor, moment.wall, "stream.change", name, **told)]
        live.gather(batch, moment)
        return await self._changed(live, batch)

    def _apply(self, live: Live, new: StreamSettings) -> None:
        budget = new.label_budget
        spent = budget is not None and live.figures.labels >= budget
        live.spent = spent and not live.leases.in_flight
        seated = apply_settings(live.engine, live.settings, new, live.people.seated, live.spent)
        live.people.seat(new.panel, seated)
        live.settings = new

    def _version(self, live: Live, actor: Actor | str) -> AddSettings:
        """A new version of what a stream is told."""
        live.version += 1
        body = as_body(live.settings, live.status)
        return AddSettings(
            SettingsRow(live.name, live.version, self.hub.clock.wall(), str(actor), body)
        )

    async def _changed(self, live: Live, batch: Batch) -> StreamView:
        view, done = stream_view(live), self.hub.commit(live, batch)
        self.hub.wake(live.name)
        await done
        return view

    async def settings_history(self, name: str) -> list[SettingsVersion]:
        """Every version of a stream's settings, the oldest first."""
        await self.hub.live(name)
        rows = await self.hub.read_committed(self.hub.storage.settings, name)
        return [
            SettingsVersion(
                row.version, row.at, row.actor, status, settings.model_dump(mode="json")
            )
            for row, (settings, status) in ((row, of_body(row.body)) for row in rows)
        ]

    async def pause(self, name: str, actor: Actor | str) -> StreamView:
        """No work is handed out and no slot passes; labels and items are still taken."""
        live = await self.hub.live(name)
        if live.status == StreamStatus.CLOSED:
            raise StateError(f"stream {name!r} is closed: it cannot be paused")
        return await self._status(live, StreamStatus.PAUSED, actor)

    async def resume(self, name: str, actor: Actor | str) -> StreamView:
        """Go on after a pause; a closed stream stays closed."""
        live = await self.hub.live(name)
        if live.status == StreamStatus.CLOSED:
            raise StateError(f"stream {name!r} is closed: it cannot be resumed")
        return await self._status(live, StreamStatus.RUNNING, actor)

    async def close(self, name: str, actor: Actor | str) -> StreamView:
        """Drain: no new items; those that are there are finished."""
        return await self._status(await self.hub.live(name), StreamStatus.CLOSED, actor)

    async def _status(self, live: Live, status: StreamStatus, actor: Actor | str) -> StreamView:
        batch = Batch()
        if status != live.status:
            live.status = status
            turn = live.slots.pause if status == StreamStatus.PAUSED else live.slots.resume
            turn(self.hub.clock.monotonic())
            batch.first = [SetStatus(live.name, status), self._version(live, actor)]
            at, action = self.hub.clock.wall(), f"stream.{_VERBS[status]}"
            batch.audit = [done_by(actor, at, action, live.name)]
        return await self._changed(live, batch)

    # items

    async def add_items(
        self, stream: str, items: Sequence[ItemIn], actor: Actor | str = PROGRAM
    ) -> list[Added]:
        """Items enter. An id that is there with the same content is no error, other content is."""
        hub, key = self.hub, Actor.of(actor).key
        await hub.live(stream)
        self._limit(len(items))
        sent = await hub.scan(len(items) > PIECE, contents, items)
        known = await hub.read(hub.storage.known_ids, stream, list(sent))
        added: list[Added] = []
        commits: list[asyncio.Future[None]] = []
        async with hub.intake.setdefault(stream, asyncio.Lock()):
            try:
                count, moment = 0, hub.moment()
                async for live, part in hub.pieces(stream, len(items)):
                    count += len(sort_out(live, items[part], sent, known, moment)[0])
            except Conflict:
                await hub.flush()  # what speaks against it must be on disk
                raise
            if count:
                self._check_room(await hub.live(stream), count)
            async for live, part in hub.pieces(stream, len(items)):
                batch, moment = Batch(key), hub.moment()
                step = partial(_enter, live, items[part], sent, known, batch, moment, actor)
                more, done = await hub.take(live, batch, part.stop - part.start, step)
                added += more
                commits.append(done)
                await written(commits, BEHIND)
        await written(commits)
        return added

    def _check_room(self, live: Live, count: int) -> None:
        if live.status == StreamStatus.CLOSED:
            raise StateError(f"stream {live.name!r} is closed: it takes no new items")
        most = self.settings.max_open_items
        if len(live.open) + count > most:
            raise TooMuch(
                f"{len(live.open):,} items are open and {count:,} came, at most {most:,} may be "
                "open",
                retry_after=10,
            )

    def _limit(self, count: int) -> None:
        if count > self.settings.max_batch:
            raise TooMuch(f"got {count:,} at once, at most {self.settings.max_batch:,} may come")

    async def withdraw(self, stream: str, item: str, actor: Actor | str = PROGRAM) -> ItemView:
        """Take an item out without a verdict; withdrawn twice is withdrawn."""
        live = await self.hub.live(stream)
        if item in live.open:
            batch, moment = Batch(Actor.of(actor).key), self.hub.moment()
            live.withdraw(item, batch, moment)
            batch.audit = [done_by(actor, moment.wall, "item.withdraw", stream, item)]
            await self.hub.commit(live, batch)
        view = await item_view(self.hub, stream, item)
        if view.status == ItemStatus.LEFT:
            raise StateError(f"item {item!r} has left already, as {view.verdict!r}")
        return view


def _enter(
    live: Live,
    items: Sequence[ItemIn],
    sent: Mapping[str, Content],
    known: Mapping[str, str],
    batch: Batch,
    moment: Moment,
    actor: Actor | str,
) -> list[Added]:
    """Items of a request enter; what became of each."""
    fresh, added = sort_out(live, items, sent, known, moment, batch.key)
    live.arrive(fresh, batch, moment)
    if fresh:
        told = done_by(actor, moment.wall, "items.add", live.name, created=len(fresh))
        batch.audit.append(told)
    return added


def _new_settings(live: Live, changes: dict[str, Any]) -> StreamSettings:
    """The settings of a stream after a change, if they can be."""
    try:
        new = changed(live.settings, changes)
    except ValidationError as error:
        raise InputError(first_fault(error)) from None
    if new.classes != live.settings.classes:
        raise InputError("the classes of a stream cannot be changed: make another stream")
    return new
