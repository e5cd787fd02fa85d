"""What both clients share: building requests, checking responses, retries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from venire.client.backoff import NOT_PROCESSED, RETRYABLE, Backoff
from venire.client.calls import Answer, Call
from venire.client.types import Unreachable
from venire.errors import InputError, MissingExtra

__all__ = ["Settings", "http_library", "retry_after"]


def http_library() -> Any:
    """The HTTP library, or how to install it."""
    try:
        import httpx2
    except ImportError:
        raise MissingExtra("httpx2", "client") from None
    return httpx2


class Settings:
    """How a client reaches its server."""

    def __init__(self, url: str, key: str, timeout: float, retry_seconds: float) -> None:
        """`retry_seconds` is how long one request is retried."""
        _check_url(url)
        self.url, self.timeout, self.retry_seconds = url.rstrip("/"), timeout, retry_seconds
        self.headers = {"authorization": f"Bearer {_clean(key)}", "user-agent": "venire-client"}

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """The arguments of the HTTP library for a call."""
        return {
            "method": call.method,
            "url": self.url + call.path,
            "params": dict(call.params),
            "content": call.body,
            "headers": call.headers(),
            "timeout": self.timeout + call.wait,
        }

    def check(self, call: Call[Any], answer: Answer, backoff: Backoff) -> float | None:
        """None for success, else the seconds before a retry; raises if there is none."""
        if answer.status < 400:
            return None
        statuses = RETRYABLE if call.idempotent else NOT_PROCESSED
        retry = answer.status in statuses and answer.retryable()
        wait = backoff.wait(retry_after(answer.headers)) if retry else None
        if wait is None:
            raise answer.error()
        return wait

    def retry_wait(
        self, call: Call[Any], fault: Exception, unsent: bool, backoff: Backoff
    ) -> float:
        """Seconds before the retry after a connection error; raises if there is none."""
        wait = backoff.wait() if call.idempotent or unsent else None
        if wait is None:
            raise Unreachable(f"{self.url} cannot be reached: {fault or type(fault).__name__}")
        return wait


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        whole = False
    if not whole:
        raise InputError(f"got the address {url!r}, expected http://... or https://...")


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


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds of the Retry-After header, 0 without one.

    >>> retry_after({"retry-after": "3"}), retry_after({})
    (3.0, 0.0)
    """
    text = headers.get("retry-after", "")
    return float(text) if text.isdigit() else 0.0
