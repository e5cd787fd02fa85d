"""Connections to one API: the key stays in here.

Many requests are in flight at once. A pool of the HTTP library looks at all its connections for
every request, so there are several pools of a few connections each.
"""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import cycle
from typing import Any

from venire.errors import InputError
from venire.tools.extras import library
from venire.tools.untrusted import scrubbed

__all__ = ["Connections", "Lost", "key_of"]

#: Connections to a pool.
POOL = 20

#: Bytes of an answer: those of a batch have some hundred for each item.
MOST = 16 * 1024 * 1024

#: The headers by which an answer comes as it is, not packed.
PLAIN = {"accept-encoding": "identity"}


class Lost(Exception):
    """No response came; `sent` says that the request may have been answered all the same."""

    def __init__(self, why: str, sent: bool) -> None:
        self.sent = sent
        super().__init__(why)


class TooLarge(Exception):
    """A response is longer than any that is asked for."""


async def content_of(response: Any, most: int = MOST) -> bytes:
    """The content of a response that is being read, unpacked: at most so many bytes of either."""
    packed = bytearray()
    async for part in response.aiter_raw():
        packed += part
        if len(packed) > most:
            raise TooLarge(f"the answer is longer than {most:,} bytes")
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    return unpacked(bytes(packed), coding, most)


def unpacked(packed: bytes, coding: str, most: int = MOST) -> bytes:
    """What was packed by gzip or deflate, which few bytes may be that unpack to gigabytes.

    >>> import gzip
    >>> unpacked(gzip.compress(b"{}"), "gzip")
    b'{}'
    >>> unpacked(gzip.compress(b" " * 5_000), "gzip", most=1_000)
    Traceback (most recent call last):
    venire.connectors.judges.http.TooLarge: the answer unpacks to more than 1,000 bytes
    """
    if coding in ("", "identity"):
        return packed
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise TooLarge(f"the answer is encoded as {coding[:40]!r}, expected it as it is")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        found = unpacker.decompress(packed, most)
    except zlib.error as error:
        raise TooLarge(f"the answer cannot be unpacked: {error}") from None
    if unpacker.unconsumed_tail:
        raise TooLarge(f"the answer unpacks to more than {most:,} bytes")
    return found


class Connections:
    """Posts to one address with one key, in a limited time."""

    def __init__(
        self, url: str, timeout: float, parallel: int, key: str = "", header: str = ""
    ) -> None:
        """`header` names the header that holds the key, by default as a bearer token."""
        self._httpx = library("httpx2", "judges")
        self._url, self._timeout, self._key = url, timeout, key
        limits = self._httpx.Limits(max_connections=None, max_keepalive_connections=None)
        headers = {"content-type": "application/json", "user-agent": "venire", **PLAIN}
        if key:
            headers[header or "authorization"] = key if header else f"Bearer {key}"
        self._pools = [
            self._httpx.AsyncClient(headers=headers, limits=limits, timeout=None, verify=_tls())
            for _ in range(-(-parallel // POOL))
        ]
        self._next = cycle(self._pools)

    async def post(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and content of the response; raises `Lost` if there is none."""
        try:
            async with asyncio.timeout(self._timeout):
                sent = json.dumps(body).encode()
                async with next(self._next).stream("POST", self._url, content=sent) as got:
                    content = await content_of(got)
        except TooLarge as fault:
            raise Lost(str(fault), sent=True) from None
        except TimeoutError:
            raise Lost(f"no answer within {self._timeout:g} seconds", sent=True) from None
        except self._httpx.RequestError as fault:
            unsent = isinstance(fault, self._httpx.ConnectError)
            raise Lost(str(fault) or type(fault).__name__, not unsent) from None
        return got.status_code, got.headers, content

    def scrub(self, text: str) -> str:
        """The text without the key, which some servers repeat in their errors, encoded or not."""
        return scrubbed(text, self._key)

    async def close(self) -> None:
        """Close all connections; those of an event loop that has ended are gone already."""
        for pool in self._pools:
            with suppress(RuntimeError):
                await pool.aclose()


@cache
def _tls() -> Any:
    """How certificates are checked; reading them takes a while, so once for all judges."""
    return library("httpx2", "judges").create_ssl_context()


def key_of(owner: str, variable: str | None) -> str:
    """The key out of the environment; the error names the variable, not the key.

    >>> key_of("judge strict", None)
    ''
    """
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InputError(
            f"{owner}: the environment has no {variable}: "
            "set it to the key of the API, or name another variable with api_key_env"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{owner}: {variable} holds no key: it has odd characters")
    return key
