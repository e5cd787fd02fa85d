"""Who is signed in on a page: a token of its own for each browser, that stands for a key.

The key itself is in no cookie. The store keeps the SHA-256 of a session's token, with the id of the
key and the end of the session, so sessions outlive a restart and a copy of the store opens nothing.
A session ends when its time is over, when its key does, and for good when somebody signs out.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from venire.service.keys.keyring import Keyring
from venire.service.messages import KeyView
from venire.service.runtime.runtime import Hub
from venire.service.tokens import hashed, new_token
from venire.storage import SetMeta
from venire.storage.contents import compact

__all__ = ["Sessions"]

#: Under which name the store keeps them.
META: Final = "sessions"

#: Of one key, so many; the oldest goes.
EACH: Final = 50


class Session(NamedTuple):
    """The id of the key, and when it is over."""

    key: str
    until: float


class Sessions:
    """The sessions of a server, by the hash of their token."""

    def __init__(self, hub: Hub, keys: Keyring) -> None:
        self._hub, self._keys = hub, keys
        self._of: dict[str, Session] = {}

    async def start(self) -> None:
        """Read those that were begun before."""
        kept: str | None = await self._hub.read(self._hub.storage.meta, META)
        self._of = {name: Session(*session) for name, session in json.loads(kept or "{}").items()}

    async def begin(self, key: KeyView, seconds: float) -> str:
        """Sign in by a key, for so long; the token of the session."""
        token = new_token()
        theirs = [name for name, session in self._of.items() if session.key == key.id]
        for name in theirs[: max(0, len(theirs) - EACH + 1)]:
            del self._of[name]
        self._of[hashed(token)] = Session(key.id, self._hub.clock.wall() + seconds)
        await self._save()
        return token

    async def end(self, token: str) -> None:
        """Sign out."""
        if self._of.pop(hashed(token), None) is not None:
            await self._save()

    def key_of(self, token: str) -> KeyView | None:
        """The key for which a session stands, if both are in force."""
        session = self._of.get(hashed(token))
        if session is None or session.until <= self._hub.clock.wall():
            return None
        return self._keys.opened(session.key)

    async def _save(self) -> None:
        now = self._hub.clock.wall()
        self._of = {token: one for token, one in self._of.items() if one.until > now}
        await self._hub.write([SetMeta(META, compact(self._of))])
