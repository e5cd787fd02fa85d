"""Browser sessions: each has a token of its own, which stands for an API key.

The key itself is in no cookie. The store keeps the SHA-256 of a session's token, with the id of the
key and the expiry time, so sessions survive a restart, and a copy of the store grants no access. A
session ends when it expires, when its key becomes invalid, or when somebody signs out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.errors import StoreError
from venire.server.store import DropMeta, SetMeta
from venire.server.store.contents import compact
from venire.server.tokens import hashed, new_token

if TYPE_CHECKING:
    from venire.server.admin_messages import KeyView
    from venire.server.keys.keyring import Keyring
    from venire.server.runtime.runtime import Runtime

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
        """Reload all sessions."""
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
        """Sign out."""
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
