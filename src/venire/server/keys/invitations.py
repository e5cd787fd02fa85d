"""Invitations: links by which people come to label a stream, without a key.

A link is for one person. Who opens it, and gives a name unless the invitation has one, gets a
session of a labeler's key of that name, which ends when the invitation does; the key's own token is
known to nobody. Until then the link signs in again, unless it is for `once`. The store keeps the
SHA-256 of a link's token, under the name of the stream; to revoke an invitation revokes its key.

Who is invited by name is on the panel from then on: items that need more labels wait for them as
for others who are away. Who never comes is given up when the invitation ends or is revoked.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from venire.errors import Conflict, InputError, NotFound, StateError, TooMuch, VenireError
from venire.model import Role, StreamStatus
from venire.scheduling.by_name import KNOWN
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.admin_messages import InvitationView, NewInvitation, invitations_of
from venire.server.keys.keyring import DAY, Keyring
from venire.server.settings import Member, Name, of_body
from venire.server.store import DropMeta, Insert, SetMeta, Storage
from venire.server.store.contents import compact
from venire.server.tokens import hashed, new_id, new_token

if TYPE_CHECKING:
    from venire.server.keys.keyring import Sessions
    from venire.server.runtime.runtime import Runtime

#: The longest validity of an invitation in days, and how many a stream may have.
MOST_DAYS: Final = 366.0
MOST: Final = 1000

#: How the names of all invitations begin in the store.
EVERYWHERE: Final = "invitation "

#: Puts somebody on the panel of a stream; gives somebody no more work.
Add = Callable[[str, Member, Actor | str], Awaitable[object]]
Retire = Callable[[str, str, Actor | str], Awaitable[object]]

#: Seconds between two looks for invitations that ended unused.
CHECK_SECONDS: Final = 60.0

_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)


class Invitations:
    """The invitations of a service."""

    def __init__(
        self, runtime: Runtime, keys: Keyring, sessions: Sessions, add_labeler: Add, retire: Retire
    ) -> None:
        self._runtime, self._keys, self._sessions = runtime, keys, sessions
        self._add_labeler, self._retire = add_labeler, retire
        self._lock = asyncio.Lock()  # one uses a link at a time

    def start(self) -> None:
        """Give up those who did not come while their invitations held, until the service stops."""
        self._runtime.spawn(self._check_forever())

    async def _check_forever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            with contextlib.suppress(VenireError):  # the store is down: the next look comes
                await self.check()

    async def check(self) -> None:
        """Give up those whose invitations have ended unused."""
        now, over = self._runtime.clock.wall(), dict[str, InvitationView]()
        rows = await self._runtime.read_committed(self._runtime.storage.metas, EVERYWHERE)
        for name, kept in rows.items():
            if kept and (view := InvitationView(**json.loads(kept))).expires_at <= now:
                over[name] = view
        for name, view in over.items():
            with contextlib.suppress(VenireError):  # its stream is archived, or on another server
                await self._give_up(view, PROGRAM)
                await self._runtime.write([DropMeta(name)])

    async def _give_up(self, view: InvitationView, actor: Actor | str) -> None:
        if view.labeler is None or view.used_at is not None:
            return
        live = await self._runtime.writable(view.stream)
        came = view.labeler in live.labelers and live.labelers[view.labeler].labels
        if not came and view.labeler in {one.id for one in live.settings.asked}:
            await self._retire(view.stream, view.labeler, actor)

    async def create(
        self,
        stream: str,
        labeler: str | None,
        days: float,
        once: bool = False,
        actor: Actor | str = PROGRAM,
    ) -> NewInvitation:
        """Invite somebody to label a stream; the token of the link cannot be shown again."""
        live = await self._runtime.writable(stream)
        if labeler is not None and labeler in live.voices:
            raise InputError(f"{labeler!r} is the student of this stream: use another name")
        if not 0 < days <= MOST_DAYS:
            raise InputError(f"got {days!r} days, expected more than 0, at most {MOST_DAYS:g}")
        at, known = self._runtime.clock.wall(), await self._kept(stream)
        over = [name for name, one in known.items() if one.expires_at <= at]
        if len(known) - len(over) >= MOST:
            raise TooMuch(f"{stream} has {MOST:,} invitations: revoke some of them")
        token, id = new_token(), new_id("inv")
        view = InvitationView(id, stream, labeler, once, at, at + days * DAY)
        entry = audit_row(actor, at, "invitation.create", stream, id, labeler=labeler, once=once)
        changes = [DropMeta(name) for name in over]
        if labeler is not None and live.settings.learning != KNOWN:
            known_there = live.labelers.seated | {one.id for one in live.settings.panel}
            if labeler in live.settings.retired or labeler not in known_there:
                await self._add_labeler(stream, Member(id=labeler), actor)
        await self._runtime.write([*changes, _change(hashed(token), view), Insert([entry])])
        return NewInvitation(token, f"/join/{stream}#{token}", view)

    async def list(self, stream: str) -> builtins.list[InvitationView]:
        """The invitations to a stream, oldest first, without those that expired."""
        await self._runtime.live_stream(stream)
        now, known = self._runtime.clock.wall(), await self._kept(stream)
        valid = [one for one in known.values() if one.expires_at > now]
        return sorted(valid, key=lambda one: (one.created_at, one.id))

    async def revoke(
        self, stream: str, invitation: str, actor: Actor | str = PROGRAM
    ) -> InvitationView:
        """Revoke an invitation, and the key of who came by it: their sessions end."""
        async with self._lock:
            known = await self._kept(stream)
            found = next((pair for pair in known.items() if pair[1].id == invitation), None)
            if found is None:
                raise NotFound("invitation", invitation)
            name, view = found
            entry = audit_row(
                actor, self._runtime.clock.wall(), "invitation.revoke", stream, invitation
            )
            await self._runtime.write([DropMeta(name), Insert([entry])])
        with contextlib.suppress(StateError):  # an archived stream waits for nobody
            await self._give_up(view, actor)
        if view.key is not None:
            await self._keys.revoke(view.key, actor)
        return view

    async def look(self, stream: str, token: str) -> InvitationView | None:
        """The invitation of a link, if it can be used now."""
        kept = await self._runtime.read_committed(
            self._runtime.storage.meta, f"{invitations_of(stream)}{hashed(token)}"
        )
        if not kept:
            return None
        view = InvitationView(**json.loads(kept))
        gone = view.expires_at <= self._runtime.clock.wall() or (view.once and view.used_at)
        return None if gone else view

    async def accept(self, stream: str, token: str, name: str | None, seconds: float) -> str | None:
        """Use a link, as somebody of this name unless the invitation has one.

        Returns the token of a session of at most `seconds`; None if the link cannot be used.
        """
        async with self._lock:
            view = await self.look(stream, token)
            if view is None:
                return None
            labeler = view.labeler
            if labeler is None:
                labeler = await self._free(stream, name)
            await self._join(stream, labeler, view)
            now = self._runtime.clock.wall()
            key = None if view.key is None else self._keys.valid(view.key)
            if view.key is not None and key is None:
                return None  # it was revoked
            actor = f"invitation {view.id}"
            if key is None:
                days = (view.expires_at - now) / DAY
                key = (await self._keys.create(labeler, Role.LABELER, labeler, actor, days)).key
            used = replace(view, labeler=labeler, used_at=now, key=key.id)
            entry = audit_row(actor, now, "invitation.use", stream, view.id, labeler=labeler)
            await self._runtime.write([_change(hashed(token), used), Insert([entry])])
            return await self._sessions.begin(key, min(seconds, view.expires_at - now))

    async def _join(self, stream: str, labeler: str, view: InvitationView) -> None:
        """Put who was invited on a panel that is closed to others."""
        live = await self._runtime.live_stream(stream)
        if live.status in (StreamStatus.CLOSED, StreamStatus.ARCHIVED) and not live.open:
            raise Conflict(f"there is nothing left to label in {stream}")
        if live.settings.open_panel or labeler in {one.id for one in live.settings.panel}:
            return
        await self._add_labeler(stream, Member(id=labeler), f"invitation {view.id}")

    async def _free(self, stream: str, name: str | None) -> str:
        """The name that somebody chose, if it is one and nobody has it."""
        name = " ".join((name or "").split())
        try:
            _NAME.validate_python(name)
        except ValidationError:
            raise InputError("a name has 1 to 200 characters: write yours") from None
        runtime, lower = self._runtime, name.casefold()
        live = await runtime.live_stream(stream)
        known = {*live.labelers, *live.voices, *(one.id for one in live.settings.panel)}
        known |= {key.labeler for key in await self._keys.list() if key.labeler is not None}
        known |= await runtime.read(_members, runtime.storage)
        invited = {one.labeler for one in (await self._kept(stream)).values() if one.labeler}
        if lower in {one.casefold() for one in known | invited}:
            raise Conflict(f"somebody is called {name!r} already: choose another name")
        return name

    async def _kept(self, stream: str) -> dict[str, InvitationView]:
        rows = await self._runtime.read_committed(
            self._runtime.storage.metas, invitations_of(stream)
        )
        return {name: InvitationView(**json.loads(one)) for name, one in rows.items() if one}


def _members(storage: Storage) -> set[str]:
    """Everybody on the panel of some stream: a labeler's key is good for all of them."""

    def names() -> Iterator[str]:
        for row in storage.streams():
            settings, _ = of_body(storage.settings(row.name)[-1].body)
            yield from (member.id for member in settings.panel)

    return set(names())


def _change(hash: str, view: InvitationView) -> SetMeta:
    return SetMeta(f"{invitations_of(view.stream)}{hash}", compact(asdict(view)))
