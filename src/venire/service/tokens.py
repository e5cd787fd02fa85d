"""Secrets: 256-bit tokens, of which the store keeps only the SHA-256.

A token of 256 random bits cannot be guessed, so a plain hash is as good as a slow one, and a
look-up by hash takes no time that tells anything about the token.
"""

from __future__ import annotations

import hashlib
import secrets

__all__ = ["hashed", "new_id", "new_key", "new_secret", "new_token"]


def new_token() -> str:
    """A token for a lease: 43 characters that need no quoting in an address."""
    return secrets.token_urlsafe(32)


def new_key() -> str:
    """A token for an API key.

    >>> new_key().startswith("vk_")
    True
    """
    return f"vk_{secrets.token_urlsafe(32)}"


def new_secret() -> bytes:
    """What signs the messages to a webhook."""
    return secrets.token_bytes(32)


def new_id(prefix: str) -> str:
    """A short public name for a key or a webhook.

    >>> len(new_id("key"))
    20
    """
    return f"{prefix}_{secrets.token_hex(8)}"


def hashed(token: str) -> str:
    """What the store knows of a token.

    >>> hashed("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
