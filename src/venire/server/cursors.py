"""Cursors that tell nothing: places in a listing, encrypted under a secret of the store.

A place may be that of an item, or its confidence, which not everybody may see. The tag is the
HMAC-SHA256 of the place, and with it begins what the place is added to (bit by bit): the same
place has the same cursor, and one that was changed is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any, Final

from venire.errors import InputError

_TAG: Final = 16


def sealed(secret: bytes, place: tuple[Any, ...] | None) -> str:
    """A place as text for a URL.

    >>> opened(b"secret", sealed(b"secret", (1e9, "post 1")))
    [1000000000.0, 'post 1']
    """
    told = json.dumps(place, ensure_ascii=False).encode()
    tag = hmac.digest(secret, b"cursor" + told, hashlib.sha256)[:_TAG]
    return base64.urlsafe_b64encode(tag + _mixed(secret, tag, told)).decode().rstrip("=")


def opened(secret: bytes, cursor: str) -> Any:
    """The place that a cursor names."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        told = _mixed(secret, raw[:_TAG], raw[_TAG:])
        tag = hmac.digest(secret, b"cursor" + told, hashlib.sha256)[:_TAG]
        if hmac.compare_digest(tag, raw[:_TAG]):
            return json.loads(told)
    except (ValueError, binascii.Error):
        pass
    raise InputError(f"got the cursor {cursor[:40]!r}, expected the `next` of an earlier answer")


def _mixed(secret: bytes, tag: bytes, text: bytes) -> bytes:
    """The text added to a stream of bytes that only the secret and the tag yield."""
    key = hmac.digest(secret, b"stream" + tag, hashlib.sha256)
    stream = hashlib.shake_256(key).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream, strict=True))
