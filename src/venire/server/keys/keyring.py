"""API keys, and the browser sessions that stand for them.

Both have tokens of 256 bits, of which the store keeps only the SHA-256. All keys are in memory, so
authentication needs no I/O; they are reloaded every few seconds to pick up keys created or revoked
by another process. The time of last use is written lazily, at most once a minute for each key.

The key itself is in no cookie. The store keeps the id of the key and the expiry time of a session,
so sessions survive a restart, and a copy of the store grants no access. A session ends when it
expires, when its key becomes invalid, or when somebody signs out.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.errors import InputError, NotFound, StoreError
from venire.model import Role
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.admin_messages import KeyView, NewKey
from venire.server.store import (
    Change,
    DropMeta,
    ExpireKey,
    Insert,
    KeyRow,
    RevokeKey,
    SetMeta,
    TouchKey,
)
from venire.server.store.contents import compact
from venire.server.tokens import hashed, new_id, new_key, new_token

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime


_log = logging.getLogger("venire.service")

#: Seconds between two writes of a key's last use.
LAST_USE_SECONDS: Final = 60.0

#: Seconds in a day, and the longest validity of a key in days.
DAY, MAX_DAYS = 86_400.0, 36_500


class Keyring:
    """The keys of a server."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._by_hash: dict[str, KeyView] = {}
        self._by_id: dict[str, KeyView] = {}
        self._used: dict[str, float] = {}
        self._written: dict[str, float] = {}
        self._lock = asyncio.Lock()  # a read begun before a write must not replace it

    async def start(self) -> str | None:
        """Load the keys; returns the token of a first admin key if there were none."""
        await self.refresh()
        first = None
        if not self._by_hash:
            first = (await self.create("first admin", Role.ADMIN, actor="the first start")).token
        self._runtime.spawn(self._refresh_forever())
        return first

    async def stop(self) -> None:
        with contextlib.suppress(StoreError):
            await self._write_uses(0.0)

    async def create(
        self,
        name: str,
        role: str,
        labeler: str | None = None,
        actor: Actor | str = PROGRAM,
        days: float | None = None,
    ) -> NewKey:
        """Create a key, valid for `days` if given; its token cannot be shown again."""
        if role not in set(Role):
            raise InputError(f"got the role {role!r}, expected one of {', '.join(Role)}")
        if (role == Role.LABELER) != (labeler is not None):
            raise InputError(
                f"got the role {role!r} and the labeler {labeler!r}, expected a labeler's name "
                "for the role labeler, and for no other"
            )
        at = self._runtime.clock.wall()
        if days is not None and not 0 < days <= MAX_DAYS:
            raise InputError(f"got {days!r} days, expected more than 0, at most {MAX_DAYS:,}")
        token, row = new_row(name, role, labeler, at, days)
        entry = audit_row(actor, at, "key.create", None, row.id, role=role, labeler=labeler)
        return await self._add(token, row, [Insert([entry])])

    async def rotate(
        self, key: str, actor: Actor | str = PROGRAM, overlap: float = 86_400.0
    ) -> NewKey:
        """Replace a key; the old one stays valid for `overlap` seconds, or until it expires.

        The new key has the same validity period as the old one.
        """
        await self.refresh()
        old = self.valid(key)
        if old is None:
            raise NotFound("key", key, "it is unknown, revoked or expired")
        at = self._runtime.clock.wall()
        days = None if old.expires_at is None else (old.expires_at - old.created_at) / DAY
        token, row = new_row(old.name, old.role, old.labeler, at, days)
        entry = audit_row(actor, at, "key.rotate", None, key, new=row.id)
        return await self._add(token, row, [ExpireKey(key, at + overlap), Insert([entry])])

    async def _add(self, token: str, row: KeyRow, more: builtins.list[Change]) -> NewKey:
        view = _key_view(row)
        async with self._lock:
            await self._runtime.write([Insert([row]), *more])
            self._by_hash[row.hash] = self._by_id[row.id] = view
        with contextlib.suppress(StoreError):  # other changes are picked up soon in any case
            await self.refresh()
        return NewKey(token, view)

    async def list(self) -> builtins.list[KeyView]:
        """All keys, including revoked ones, oldest first."""
        await self.refresh()
        views = [self._seen(view) for view in self._by_hash.values()]
        return sorted(views, key=lambda view: (view.created_at, view.id))

    async def revoke(self, key: str, actor: Actor | str = PROGRAM) -> KeyView:
        await self.refresh()
        known = next((view for view in self._by_hash.values() if view.id == key), None)
        if known is None:
            raise NotFound("key", key)
        if known.revoked_at is None:
            async with self._lock:
                at = self._runtime.clock.wall()
                entry = audit_row(actor, at, "key.revoke", None, key)
                await self._runtime.write([RevokeKey(key, at), Insert([entry])])
            await self.refresh()
        return next(view for view in self._by_hash.values() if view.id == key)

    def authenticate(self, token: str) -> KeyView | None:
        """The valid key of a token, or None; needs no I/O."""
        return self._if_valid(self._by_hash.get(hashed(token)))

    def known(self, token: str) -> KeyView | None:
        """The key of a token, even if it is revoked or expired: for the log, never to let it in."""
        return self._by_hash.get(hashed(token))

    def valid(self, key: str) -> KeyView | None:
        return self._if_valid(self._by_id.get(key))

    def _if_valid(self, view: KeyView | None) -> KeyView | None:
        now = self._runtime.clock.wall()
        if view is None or view.revoked_at is not None:
            return None
        if view.expires_at is not None and view.expires_at <= now:
            return None
        self._used[view.id] = now
        return view

    async def refresh(self) -> None:
        async with self._lock:
            rows = await self._runtime.read_committed(self._runtime.storage.keys)
            self._by_hash = {row.hash: _key_view(row) for row in rows}
            self._by_id = {view.id: view for view in self._by_hash.values()}

    def _seen(self, view: KeyView) -> KeyView:
        """The view with the time of last use, if that is later than the stored one."""
        used = self._used.get(view.id)
        if used is None or (view.last_used_at or 0.0) >= used:
            return view
        return replace(view, last_used_at=used)

    async def _refresh_forever(self) -> None:
        while True:
            await asyncio.sleep(self._runtime.settings.key_refresh_seconds)
            try:
                await self.refresh()
                await self._write_uses(LAST_USE_SECONDS)
            except StoreError:
                pass  # the store is down: go on with the keys in memory
            except Exception:
                _log.exception("reloading the keys failed; retrying")

    async def _write_uses(self, at_least: float) -> None:
        now = self._runtime.clock.monotonic()
        due: builtins.list[Change] = []
        for key, at in tuple(self._used.items()):
            if now - self._written.get(key, -LAST_USE_SECONDS) >= at_least:
                due.append(TouchKey(key, at))
                self._written[key] = now
                del self._used[key]
        if due:
            await self._runtime.write(due)


def new_row(
    name: str, role: str, labeler: str | None, at: float, days: float | None
) -> tuple[str, KeyRow]:
    """A new key: its token, and its row in the store.

    >>> token, row = new_row("a screen", "viewer", None, 0.0, days=1)
    >>> row.expires_at, row.hash == hashed(token)
    (86400.0, True)
    """
    token, until = new_key(), None if days is None else at + days * DAY
    row = KeyRow(
        id=new_id("key"),
        hash=hashed(token),
        role=role,
        labeler=labeler,
        name=name,
        created_at=at,
        expires_at=until,
    )
    return token, row


def _key_view(row: KeyRow) -> KeyView:
    role = Role(row.role)
    times = row.created_at, row.last_used_at, row.revoked_at, row.expires_at
    return KeyView(row.id, row.name, role, row.labeler, *times)


#: The store keeps each under a name of its own, so that several servers may write them; those of
#: older versions are together under one name.
PREFIX: Final = "session "
TOGETHER: Final = "sessions"

#: Maximum number of sessions of one key; the oldest is dropped.
MAX_PER_KEY: Final = 50


class Session(NamedTuple):
    """The id of the key, and the expiry time."""

    key: str
    until: float


class Sessions:
    """The sessions of a server, by the hash of their token."""

    def __init__(self, runtime: Runtime, keys: Keyring) -> None:
        self._runtime, self._keys = runtime, keys
        self._of: dict[str, Session] = {}
        self._lock = asyncio.Lock()  # a read begun before a write must not replace it

    async def start(self) -> None:
        """Load the stored sessions; where servers share the store, again and again."""
        kept: str | None = await self._runtime.read(self._runtime.storage.meta, TOGETHER)
        if kept:
            old = [_change(name, Session(*one)) for name, one in json.loads(kept).items()]
            await self._runtime.write([*old, DropMeta(TOGETHER)])
        await self.refresh()
        if self._runtime.storage.shared:
            self._runtime.spawn(self._refresh_forever())

    async def refresh(self) -> None:
        async with self._lock:
            rows = await self._runtime.read_committed(self._runtime.storage.metas, PREFIX)
            found = {name.removeprefix(PREFIX): json.loads(one) for name, one in rows.items()}
            by_age = sorted(found.items(), key=lambda pair: float(pair[1][1]))
            self._of = {name: Session(*one) for name, one in by_age}

    async def _refresh_forever(self) -> None:
        while True:
            await asyncio.sleep(self._runtime.settings.key_refresh_seconds)
            with contextlib.suppress(StoreError):  # the store is down: go on with what is known
                await self.refresh()

    async def begin(self, key: KeyView, seconds: float) -> str:
        """Start a session for a key; returns the session's token."""
        token, now = new_token(), self._runtime.clock.wall()
        async with self._lock:
            theirs = [name for name, session in self._of.items() if session.key == key.id]
            over = set(theirs[: max(0, len(theirs) - MAX_PER_KEY + 1)])
            over |= {name for name, session in self._of.items() if session.until <= now}
            session = self._of[hashed(token)] = Session(key.id, now + seconds)
            for name in over:
                del self._of[name]
            dropped = [DropMeta(f"{PREFIX}{name}") for name in sorted(over)]
            await self._runtime.write([*dropped, _change(hashed(token), session)])
        return token

    async def end(self, token: str) -> None:
        async with self._lock:
            if self._of.pop(hashed(token), None) is not None:
                await self._runtime.write([DropMeta(f"{PREFIX}{hashed(token)}")])

    async def exchange(self, token: str) -> str | None:
        """Replace the token of a session by a new one, which is returned: the old one works once.

        The session expires when it would have. None if there is no such session.
        """
        async with self._lock:
            if self.key_of(token) is None:
                return None
            fresh = new_token()
            session = self._of[hashed(fresh)] = self._of.pop(hashed(token))
            old = DropMeta(f"{PREFIX}{hashed(token)}")
            await self._runtime.write([old, _change(hashed(fresh), session)])
        return fresh

    def key_of(self, token: str) -> KeyView | None:
        """The key of a session, if both are valid."""
        session = self._of.get(hashed(token))
        if session is None or session.until <= self._runtime.clock.wall():
            return None
        return self._keys.valid(session.key)


def _change(name: str, session: Session) -> SetMeta:
    return SetMeta(f"{PREFIX}{name}", compact(list(session)))
