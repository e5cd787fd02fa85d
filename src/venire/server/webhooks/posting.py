"""Posting one signed message to a webhook, over a connection to a checked address."""

from __future__ import annotations

import asyncio
from typing import Any

from venire.errors import FetchError
from venire.server.clock import Clock
from venire.server.settings import ServiceSettings
from venire.server.store import WebhookRow
from venire.server.webhooks.retry_schedule import MAX_RETRY_AFTER
from venire.server.webhooks.signing import headers
from venire.tools.http.connections import resolve
from venire.tools.http.retries import retry_after


class Poster:
    """Posts messages to webhooks."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._client: Any = None

    async def close(self) -> None:
        """Close the connections."""
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
                target = await resolve(hook.url, self._settings.allow_private_webhooks)
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
