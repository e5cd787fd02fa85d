"""What both clients share: the key, and how a request is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from venire.client.servers import Attempts, Servers
from venire.client.wire import Call
from venire.errors import InputError
from venire.tools.http.retries import Backoff
from venire.tools.lazy import library

#: Seconds to connect where there is another server to try.
CONNECT: Final = 5.0


def http_library() -> Any:
    """The HTTP library, or how to install it."""
    return library("httpx2", "client")


class Settings:
    """How a client reaches its servers."""

    def __init__(
        self, url: str | Iterable[str], key: str, timeout: float, retry_seconds: float
    ) -> None:
        """`retry_seconds` is how long one request is retried."""
        self.servers, self.timeout, self.retry_seconds = Servers(url), timeout, retry_seconds
        self.headers = {"authorization": f"Bearer {_clean(key)}", "user-agent": "venire-client"}

    def attempts(self, call: Call[Any]) -> Attempts:
        """The attempts of a call."""
        return Attempts(self.servers, call, Backoff(self.retry_seconds))

    def request(self, call: Call[Any], url: str) -> dict[str, Any]:
        """The arguments of the HTTP library for a call to one of the servers."""
        seconds = self.timeout + call.wait
        connect = seconds if len(self.servers.urls) == 1 else min(CONNECT, seconds)
        return {
            "method": call.method,
            "url": url + call.path,
            "params": dict(call.params),
            "content": call.body,
            "headers": call.headers(),
            "timeout": http_library().Timeout(seconds, connect=connect),
        }


def _clean(key: str | None) -> str:
    r"""The key without surrounding whitespace, as left by a file or a shell.

    The error does not contain the key: errors are logged.

    >>> _clean("vk_abc\n")
    'vk_abc'
    """
    cleaned = (key or "").strip()
    if not cleaned:
        raise InputError("the key is empty, expected vk_..., as printed when it was created")
    if not cleaned.isascii() or not cleaned.isprintable() or " " in cleaned:
        raise InputError("the key contains invalid characters, expected vk_...")
    return cleaned
