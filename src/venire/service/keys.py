"""API keys: 256-bit tokens of which the store keeps only the SHA-256.

All keys are in memory, so that asking whose token this is takes no time; they are read again
every few seconds, so that a key made or revoked by another process is noticed. When a key was
last used is written down lazily, at most once a minute each.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import logging
from typing import Final, cast, get_args

from venire.errors import InputError, NotFound, StoreError
from venire.service.actors import PROGRAM, Actor, done_by
from venire.service.hub import Hub
from venire.service.tokens import hashed, new_id, new_key
from venire.service.views import KeyView, NewKey, Role
from venire.storage import AddAudit, AddKey, Change, KeyRow, RevokeKey, TouchKey

__all__ = ["Keyring"]

#: The last use of a key is written at most so often, in seconds.
LAZY: Final = 60.0

_log = logging.getLogger("venire.service")


class Keyring:
    """The keys of a server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._by_hash: dict[str, KeyView] = {}
        self._used: dict[str, float] = {}
        self._written: dict[str, float] = {}
        self._turn = asyncio.Lock()  # what was read before a write must not replace it

    async def start(self) -> str | None:
        """Read the keys; the token of a first admin key if there was none at all."""
        await self.refresh()
        first = None
        if not self._by_hash:
            first = (await self.create("first admin", "admin", actor="the first start")).token
        self._hub.spawn(self._refresh_forever())
        return first

    async def stop(self) -> None:
        """Write down the last uses."""
        with contextlib.suppress(StoreError):
            await self._write_uses(lazy=0.0)

    async def create(
        self, name: str, role: Role, labeler: str | None = None, actor: Actor | str = PROGRAM
    ) -> NewKey:
        """Make a key; its token is seen only now."""
        if role not in get_args(Role):
            raise InputError(f"got the role {role!r}, expected one of {', '.join(get_args(Role))}")
        if (role == "labeler") != (labeler is not None):
            raise InputError(
                f"got the role {role!r} and the labeler {labeler!r}, expected a labeler's name "
                "for the role labeler, and for no other"
            )
        token, at = new_key(), self._hub.clock.wall()
        row = KeyRow(new_id("key"), hashed(token), role, labeler, name, at)
        async with self._turn:
            told = done_by(actor, at, "key.create", None, row.id, role=role, labeler=labeler)
            await self._hub.write([AddKey(row), AddAudit([told])])
            self._by_hash[row.hash] = _view(row)
        return NewKey(token, _view(row))

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
        view = self._by_hash.get(hashed(token))
        if view is None or view.revoked_at is not None:
            return None
        self._used[view.id] = self._hub.clock.wall()
        return view

    async def refresh(self) -> None:
        """Read all keys again."""
        async with self._turn:
            rows = await self._hub.read_committed(self._hub.storage.keys)
            self._by_hash = {row.hash: _view(row) for row in rows}

    def _seen(self, view: KeyView) -> KeyView:
        """With the last use, if that is later than what the store knows."""
        used = self._used.get(view.id)
        if used is None or (view.last_used_at or 0.0) >= used:
            return view
        return KeyView(
            view.id, view.name, view.role, view.labeler, view.created_at, used, view.revoked_at
        )

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


def _view(row: KeyRow) -> KeyView:
    role = cast("Role", row.role)
    return KeyView(
        row.id, row.name, role, row.labeler, row.created_at, row.last_used_at, row.revoked_at
    )
