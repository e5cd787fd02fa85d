"""Servers that share a store prove to each other who they are.

Each has a secret in the table of the servers, which only venire's role may read. Who passes a
request on sends a challenge along, and the answer has a proof: the challenge, signed with the
secret. A connection is asked for one before a key is sent by it, and so is every answer before it
is passed on.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PASSED_ON", "PROOF", "Proving", "challenge", "proves"]

#: The header of a request that another server passed on, with its challenge, and of the answer.
PASSED_ON: Final = b"venire-passed-on"
PROOF: Final = b"venire-proof"

_LONGEST: Final = 64


def challenge() -> bytes:
    """Something that nobody has signed before."""
    return secrets.token_hex(16).encode()


def _signed(secret: str, asked: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"venire answers " + asked, "sha256").hex().encode()


def proves(headers: Iterable[tuple[bytes, bytes]], secret: str, asked: bytes) -> bool:
    """Whether an answer comes from the server that has the secret.

    >>> proves([(PROOF, _signed("s", b"1"))], "s", b"1"), proves([(PROOF, b"x")], "s", b"1")
    (True, False)
    """
    given = next((value for name, value in headers if name == PROOF), b"")
    return bool(secret) and hmac.compare_digest(given, _signed(secret, asked))


class Proving:
    """An ASGI application that answers challenges."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        """By this secret."""
        self._app, self._secret = app, secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, with a proof if it was passed on."""
        asked = next((value for name, value in scope.get("headers", ()) if name == PASSED_ON), b"")
        if not 0 < len(asked) <= _LONGEST:
            await self._app(scope, receive, send)
            return

        async def prove(message: Message) -> None:
            if message["type"] == "http.response.start":
                proof = (PROOF, _signed(self._secret, asked))
                message = {**message, "headers": [*message.get("headers", ()), proof]}
            await send(message)

        await self._app(scope, receive, prove)
