"""Posting one signed message to a webhook, over a connection to a checked address."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, Final, Literal

from venire.errors import FetchError
from venire.server.admin_messages import AlarmView
from venire.server.clock import Clock
from venire.server.messages import ExitView, RevisionView
from venire.server.reports.alarm_rules import title_of
from venire.server.settings import ServiceSettings
from venire.server.store import WebhookRow
from venire.tools.http import retry_after
from venire.tools.untrusted import resolve

#: The longest that a receiver may ask to wait, in seconds.
MAX_RETRY_AFTER: Final = 86_400.0

#: What the refusal of an address within a private network says.
PRIVATE: Final = (
    "webhooks may go there only if the server runs with VENIRE_ALLOW_PRIVATE_WEBHOOKS=true"
)


class Poster:
    """Posts messages to webhooks."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._client: Any = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def post(self, hook: WebhookRow, message: str, body: bytes) -> tuple[int, float]:
        """Post a message; the status, and the seconds that Retry-After asked for."""
        import httpx2

        timeout = self._settings.webhook_timeout_seconds
        if self._client is None:
            self._client = httpx2.AsyncClient(
                follow_redirects=False,
                timeout=timeout,
                trust_env=False,
                limits=httpx2.Limits(max_keepalive_connections=0),  # each name is resolved again
            )
        now = self._clock.wall()
        sent = headers(_secrets(hook, now), message, int(now), body)
        try:
            async with asyncio.timeout(timeout):  # overall: an answer may also trickle in
                target = await resolve(hook.url, self._settings.allow_private_webhooks, PRIVATE)
                sent["host"] = target.name
                extensions = {"sni_hostname": target.host} if target.scheme == "https" else None
                async with self._client.stream(
                    "POST", target.url, content=body, headers=sent, extensions=extensions
                ) as response:
                    asked = retry_after(response.headers, now) or 0.0
                    return int(response.status_code), min(asked, MAX_RETRY_AFTER)
        except (TimeoutError, httpx2.TimeoutException):
            raise FetchError(f"no answer within {timeout:g} s") from None
        except (httpx2.HTTPError, OSError) as error:
            raise _unreached(error) from None


def _unreached(error: Exception) -> FetchError:
    """Why there is no answer; some errors have no message but their type."""
    if isinstance(error, FetchError):
        return error
    return FetchError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _secrets(hook: WebhookRow, now: float) -> list[str]:
    """The secrets that sign a message: the current one, and the previous while it is valid."""
    if hook.old_secret is None or hook.old_until is None or hook.old_until <= now:
        return [hook.secret]
    return [hook.secret, hook.old_secret]


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


Format = Literal["json", "text"]

_TEXT: Final = "#format=text"


def kept_as(url: str, format: Format) -> str:
    """The address of a webhook as the store keeps it.

    >>> kept_as("https://hooks.slack.com/x#y", "text")
    'https://hooks.slack.com/x#format=text'
    """
    bare = url.partition("#")[0]
    return f"{bare}{_TEXT}" if format == "text" else bare


def format_of(kept: str) -> Format:
    return "text" if kept.endswith(_TEXT) else "json"


def address_of(kept: str) -> str:
    return kept.removesuffix(_TEXT)


def text_of(stream: str, about: ExitView | RevisionView | AlarmView | None) -> str:
    """What to tell people; without a subject it is a test.

    >>> alarm = AlarmView(1, 0.0, "queue", None, False, 0.0, 500.0, "0 open items, back below 500")
    >>> text_of("posts", alarm)
    'posts: alarm queue cleared: 0 open items, back below 500'
    """
    if about is None:
        return f"{stream}: this is a test of the webhook, and it works"
    if isinstance(about, AlarmView):
        alarm = f"alarm {title_of(about.rule)}{'' if about.raised else ' cleared'}"
        return f"{stream}: {alarm}: {about.message}"
    if isinstance(about, RevisionView):
        return f"{stream}: the verdict on {about.item} is now {about.verdict}, not {about.before}"
    return f"{stream}: {about.item} left as {about.verdict}"
