"""Signatures as specified by Standard Webhooks.

    webhook-id          the same for every attempt to deliver a message
    webhook-timestamp   seconds since 1970
    webhook-signature   v1,base64(HMAC-SHA256(secret, id.timestamp.body))

The secret is shown as `whsec_` and the base64 of its bytes. While a secret is being rotated, a
message carries two signatures, separated by a space; a receiver that knows either secret can
verify it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence


def shown(secret: bytes) -> str:
    """A secret in the form shown to the receiver.

    >>> shown(bytes(24))
    'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    return f"whsec_{base64.b64encode(secret).decode()}"


def signature(secret: str, message: str, timestamp: int, body: bytes) -> str:
    """The signature of a message; the example is from the specification.

    >>> signature(
    ...     "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ...     "msg_p5jXN8AQM9LWM0D4loKWxJek",
    ...     1614265330,
    ...     b'{"test": 2432232314}',
    ... )
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message}.{timestamp}.".encode() + body
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(secrets: Sequence[str], message: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a message, signed with each of the secrets.

    >>> signed = headers([shown(bytes(24)), shown(bytes(32))], "msg_1", 0, b"{}")
    >>> [each.partition(",")[0] for each in signed["webhook-signature"].split(" ")]
    ['v1', 'v1']
    """
    signatures = [signature(secret, message, timestamp, body) for secret in secrets]
    return {
        "content-type": "application/json",
        "user-agent": "venire",
        "webhook-id": message,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
