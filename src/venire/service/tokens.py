"""Secrets: 256-bit tokens; the store keeps only their SHA-256.

A token of 256 random bits cannot be guessed, so a fast hash is enough, and the time of a lookup by
hash reveals nothing about the token.
"""

from __future__ import annotations

import hashlib
import secrets

__all__ = ["hashed", "new_id", "new_key", "new_secret", "new_token"]


def new_token() -> str:
    """A lease token: 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


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
