"""Secrets: 256-bit tokens; the store keeps only their SHA-256.

A token of 256 random bits cannot be guessed, so a fast hash is enough, and the time of a lookup by
hash reveals nothing about the token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets

from venire.server.store.ownership import lock_of


def new_token() -> str:
    """The token of a session: 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


def lease_token(stream: str) -> str:
    """A lease token: a new token, and by what servers that share a store find the owner.

    >>> len(lease_token("posts")), lease_token("posts")[43:]
    (55, '.dETW42vSlD8')
    """
    number = lock_of(stream).to_bytes(8, "big", signed=True)
    return f"{new_token()}.{base64.urlsafe_b64encode(number)[:11].decode()}"


def lock_in(token: str) -> int | None:
    """The number of the lock of a lease's stream; None if the token does not say.

    >>> lock_in(lease_token("posts")) == lock_of("posts"), lock_in("vt_of_an_older_version")
    (True, None)
    """
    _, dot, tail = token.rpartition(".")
    if not dot or len(tail) != 11:
        return None
    try:
        return int.from_bytes(base64.urlsafe_b64decode(f"{tail}="), "big", signed=True)
    except (binascii.Error, ValueError):
        return None


def new_key() -> str:
    """A token for an API key.

    >>> new_key().startswith("vk_")
    True
    """
    return f"vk_{secrets.token_urlsafe(32)}"


def new_secret() -> bytes:
    """The key that signs the messages to a webhook."""
    return secrets.token_bytes(32)


def new_id(prefix: str) -> str:
    """A short public id for a key or a webhook.

    >>> len(new_id("key"))
    20
    """
    return f"{prefix}_{secrets.token_hex(8)}"


def hashed(token: str) -> str:
    """The hash by which the store knows a token.

    >>> hashed("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
