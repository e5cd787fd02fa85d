"""Browser sessions: each has a token of its own, which stands for an API key.

The key itself is in no cookie. The store keeps the SHA-256 of a session's token, with the id of the
key and the expiry time, so sessions survive a restart, and a copy of the store grants no access. A
session ends when it expires, when its key becomes invalid, or when somebody signs out.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from venire.service.admin_messages import KeyView
from venire.service.keys.keyring import Keyring
from venire.service.runtime.runtime import Runtime
from venire.service.tokens import hashed, new_token
from venire.storage import SetMeta
from venire.storage.contents import compact

__all__ = ["Sessions"]

#: The name under which the store keeps them.
META: Final = "sessions"

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

    async def start(self) -> None:
        """Load the stored sessions."""
        kept: str | None = await self._runtime.read(self._runtime.storage.meta, META)
        self._of = {name: Session(*session) for name, session in json.loads(kept or "{}").items()}

    async def begin(self, key: KeyView, seconds: float) -> str:
        """Start a session for a key; returns the session's token."""
        token = new_token()
        theirs = [name for name, session in self._of.items() if session.key == key.id]
        for name in theirs[: max(0, len(theirs) - MAX_PER_KEY + 1)]:
            del self._of[name]
        self._of[hashed(token)] = Session(key.id, self._runtime.clock.wall() + seconds)
        await self._save()
        return token

    async def end(self, token: str) -> None:
        """Sign out."""
        if self._of.pop(hashed(token), None) is not None:
            await self._save()

    async def exchange(self, token: str) -> str | None:
        """Replace the token of a session by a new one, which is returned: the old one works once.

        The session expires when it would have. None if there is no such session.
        """
        if self.key_of(token) is None:
            return None
        fresh = new_token()
        self._of[hashed(fresh)] = self._of.pop(hashed(token))
        await self._save()
        return fresh

    def key_of(self, token: str) -> KeyView | None:
        """The key of a session, if both are valid."""
        session = self._of.get(hashed(token))
        if session is None or session.until <= self._runtime.clock.wall():
            return None
        return self._keys.valid(session.key)

    async def _save(self) -> None:
        now = self._runtime.clock.wall()
        self._of = {token: one for token, one in self._of.items() if one.until > now}
        await self._runtime.write([SetMeta(META, compact(self._of))])
