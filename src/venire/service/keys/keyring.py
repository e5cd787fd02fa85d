"""API keys: 256-bit tokens of which the store keeps only the SHA-256; they may have an end.

All keys are in memory, so that asking whose token this is takes no time; they are read again
every few seconds, so that a key made or revoked by another process is noticed. When a key was
last used is written down lazily, at most once a minute each.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import logging
from dataclasses import replace
from typing import Final

from venire.errors import InputError, NotFound, StoreError
from venire.model import Role
from venire.service.actors import PROGRAM, Actor, done_by
from venire.service.messages import KeyView, NewKey
from venire.service.runtime.runtime import Hub
from venire.service.tokens import hashed, new_id, new_key
from venire.storage import AddAudit, AddKey, Change, ExpireKey, KeyRow, RevokeKey, TouchKey

__all__ = ["DAY", "LONGEST", "Keyring", "new_row"]

#: The last use of a key is written at most so often, in seconds.
LAZY: Final = 60.0

#: Seconds in a day, and the most days for which a key is made.
DAY, LONGEST = 86_400.0, 36_500

_log = logging.getLogger("venire.service")


class Keyring:
    """The keys of a server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._by_hash: dict[str, KeyView] = {}
        self._by_id: dict[str, KeyView] = {}
        self._used: dict[str, float] = {}
        self._written: dict[str, float] = {}
        self._turn = asyncio.Lock()  # what was read before a write must not replace it

    async def start(self) -> str | None:
        """Read the keys; the token of a first admin key if there was none at all."""
        await self.refresh()
        first = None
        if not self._by_hash:
            first = (await self.create("first admin", Role.ADMIN, actor="the first start")).token
        self._hub.spawn(self._refresh_forever())
        return first

    async def stop(self) -> None:
        """Write down the last uses."""
        with contextlib.suppress(StoreError):
            await self._write_uses(lazy=0.0)

    async def create(
        self,
        name: str,
        role: str,
        labeler: str | None = None,
        actor: Actor | str = PROGRAM,
        days: float | None = None,
    ) -> NewKey:
        """Make a key, for so many days if that is told; its token is seen only now."""
        if role not in set(Role):
            raise InputError(f"got the role {role!r}, expected one of {', '.join(Role)}")
        if (role == Role.LABELER) != (labeler is not None):
            raise InputError(
                f"got the role {role!r} and the labeler {labeler!r}, expected a labeler's name "
                "for the role labeler, and for no other"
            )
        at = self._hub.clock.wall()
        if days is not None and not 0 < days <= LONGEST:
            raise InputError(f"got {days!r} days, expected more than 0, at most {LONGEST:,}")
        token, row = new_row(name, role, labeler, at, days)
        told = done_by(actor, at, "key.create", None, row.id, role=role, labeler=labeler)
        return await self._add(token, row, [AddAudit([told])])

    async def rotate(
        self, key: str, actor: Actor | str = PROGRAM, overlap: float = 86_400.0
    ) -> NewKey:
        """A new key in place of one, which opens for `overlap` more seconds; or less, as before.

        The new one lasts as long as the old one was made for.
        """
        await self.refresh()
        old = self.opened(key)
        if old is None:
            raise NotFound("key", key, "it has ended, or was never made")
        at = self._hub.clock.wall()
        days = None if old.expires_at is None else (old.expires_at - old.created_at) / DAY
        token, row = new_row(old.name, old.role, old.labeler, at, days)
        told = done_by(actor, at, "key.rotate", None, key, new=row.id)
        return await self._add(token, row, [ExpireKey(key, at + overlap), AddAudit([told])])

    async def _add(self, token: str, row: KeyRow, more: builtins.list[Change]) -> NewKey:
        view = _view(row)
        async with self._turn:
            await self._hub.write([AddKey(row), *more])
            self._by_hash[row.hash] = self._by_id[row.id] = view
        with contextlib.suppress(StoreError):  # what else has changed is noticed soon in any case
            await self.refresh()
        return NewKey(token, view)

    async def list(self) -> builtins.list[KeyView]:
        """All keys, revoked ones too, oldest first."""
        await self.refresh()
        views = [self._seen(view) for view in self._by_hash.values()]
        return sorted(views, key=lambda view: (view.created_at, view.id))

    async def revoke(self, key: str, actor: Actor | str = PROGRAM) -> KeyView:
        """Make a key useless; a revoked one stays revoked."""
        await self.refresh()
        known = next((view for view in self._by_hash.values() if view.id == key), None)
        if known is None:
            raise NotFound("key", key)
        if known.revoked_at is None:
            async with self._turn:
                at = self._hub.clock.wall()
                told = done_by(actor, at, "key.revoke", None, key)
                await self._hub.write([RevokeKey(key, at), AddAudit([told])])
            await self.refresh()
        return next(view for view in self._by_hash.values() if view.id == key)

    def authenticate(self, token: str) -> KeyView | None:
        """Whose token this is, without waiting for anything; None if nobody's."""
        return self._in_force(self._by_hash.get(hashed(token)))

    def opened(self, key: str) -> KeyView | None:
        """A key by its id, if it is in force."""
        return self._in_force(self._by_id.get(key))

    def _in_force(self, view: KeyView | None) -> KeyView | None:
        now = self._hub.clock.wall()
        if view is None or view.revoked_at is not None:
            return None
        if view.expires_at is not None and view.expires_at <= now:
            return None
        self._used[view.id] = now
        return view

    async def refresh(self) -> None:
        """Read all keys again."""
        async with self._turn:
            rows = await self._hub.read_committed(self._hub.storage.keys)
            self._by_hash = {row.hash: _view(row) for row in rows}
            self._by_id = {view.id: view for view in self._by_hash.values()}

    def _seen(self, view: KeyView) -> KeyView:
        """With the last use, if that is later than what the store knows."""
        used = self._used.get(view.id)
        if used is None or (view.last_used_at or 0.0) >= used:
            return view
        return replace(view, last_used_at=used)

    async def _refresh_forever(self) -> None:
        while True:
            await asyncio.sleep(self._hub.settings.key_refresh_seconds)
            try:
                await self.refresh()
                await self._write_uses(LAZY)
            except StoreError:
                pass  # the store is down: the keys are those we know
            except Exception:
                _log.exception("the reading of keys stumbled, and goes on")

    async def _write_uses(self, lazy: float) -> None:
        now = self._hub.clock.monotonic()
        due: builtins.list[Change] = []
        for key, at in tuple(self._used.items()):
            if now - self._written.get(key, -LAZY) >= lazy:
                due.append(TouchKey(key, at))
                self._written[key] = now
                del self._used[key]
        if due:
            await self._hub.write(due)


def new_row(
    name: str, role: str, labeler: str | None, at: float, days: float | None
) -> tuple[str, KeyRow]:
    """A new key: its token, and what the store keeps.

    >>> token, row = new_row("a screen", "viewer", None, 0.0, days=1)
    >>> row.expires_at, row.hash == hashed(token)
    (86400.0, True)
    """
    token, until = new_key(), None if days is None else at + days * DAY
    row = KeyRow(new_id("key"), hashed(token), role, labeler, name, at, expires_at=until)
    return token, row


def _view(row: KeyRow) -> KeyView:
    role = Role(row.role)
    times = row.created_at, row.last_used_at, row.revoked_at, row.expires_at
    return KeyView(row.id, row.name, role, row.labeler, *times)
