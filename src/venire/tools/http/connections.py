"""Requests with limits of time and size, and the addresses that they may go to.

**Where a webhook may be sent: to public addresses, not into the server's own network.**

A name is resolved once, all of its addresses are checked, and the message goes to one of the
checked addresses, so a name that resolves differently a moment later (DNS rebinding) changes
nothing. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import cycle
from typing import Any, Final, Self
from urllib.parse import urlsplit

from venire.errors import FetchError, InputError, VenireError
from venire.tools.http.retries import Backoff, retry_after
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json, scrubbed

#: Connections to a pool.
POOL = 20

#: Bytes of an answer: those of a batch have some hundred for each item.
MOST = 16 * 1024 * 1024

#: Bytes of an answer of a JSON API: a page may hold a hundred documents.
MOST_OF_PAGE: Final = 128 * 1024 * 1024

#: The headers by which an answer comes as it is, not packed.
PLAIN = {"accept-encoding": "identity", "user-agent": "venire"}

#: Statuses of a JSON API after which the same request may succeed.
AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class Lost(Exception):
    """No response came; `sent` says that the request may have been answered all the same."""

    def __init__(self, why: str, sent: bool) -> None:
        self.sent = sent
        super().__init__(why)


class TooLarge(Exception):
    """A response is longer than any that is asked for."""


async def content_of(response: Any, most: int = MOST) -> bytes:
    """The content of a response that is being read, unpacked; `most` limits the bytes of both."""
    packed = bytearray()
    async for part in response.aiter_raw():
        packed += part
        if len(packed) > most:
            raise TooLarge(f"the answer is longer than {most:,} bytes")
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    return unpacked(bytes(packed), coding, most)


def unpacked(packed: bytes, coding: str, most: int = MOST) -> bytes:
    """What gzip or deflate packed: a few bytes may unpack to gigabytes.

    >>> import gzip
    >>> unpacked(gzip.compress(b"{}"), "gzip")
    b'{}'
    >>> unpacked(gzip.compress(b" " * 5_000), "gzip", most=1_000)
    Traceback (most recent call last):
    venire.tools.http.connections.TooLarge: the answer unpacks to more than 1,000 bytes
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


class Closing:
    """What has connections, which are closed at the end of `async with`."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class Connections:
    """Posts to one address with one key, in a limited time, many at once.

    A pool of the HTTP library looks at all its connections for every request, so there are several
    pools of a few connections each.
    """

    def __init__(
        self, url: str, timeout: float, parallel: int, key: str = "", header: str = ""
    ) -> None:
        """`header` names the header that holds the key, by default as a bearer token."""
        self._httpx = library("httpx2", "judges")
        self._url, self._timeout, self._key = url, timeout, key
        limits = self._httpx.Limits(max_connections=None, max_keepalive_connections=None)
        headers = {"content-type": "application/json", **PLAIN}
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
    """How certificates are checked; reading them takes a while, so once for all."""
    return library("httpx2", "judges").create_ssl_context()


class ApiError(VenireError):
    """An API refused a request; `status` is that of its response."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)


class ApiDown(VenireError):
    """An API cannot be reached, or cannot answer now; `wait` is how many seconds it asked for."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        self.wait = wait
        super().__init__(message)


class JsonApi(Closing):
    """The JSON API of another program.

    async with JsonApi("Phoenix", "http://127.0.0.1:6006", {}) as api:
        projects = await api.call("GET", "/v1/projects")

    `name` is what errors call it, `headers` hold the key, which `secret` keeps out of errors, and
    `hints` say what can be done about a status. Requests that change nothing are repeated for
    `retry_seconds`; what a lost one that changes something did is for the caller to find out.
    """

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        *,
        secret: str = "",
        hints: Mapping[int, str] | None = None,
        timeout: float = 60.0,
        retry_seconds: float = 0.0,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise InputError(f"got the address {url!r}, expected that of {name}: http://...")
        self.name, self.url, self._secret, self._hints = name, url.rstrip("/"), secret, hints or {}
        self._httpx, self._retry_seconds = library("httpx2", "client"), retry_seconds
        self._http = self._httpx.AsyncClient(
            timeout=timeout, headers={**PLAIN, **headers}, verify=_tls()
        )
        self._date = ""

    async def close(self) -> None:
        await self._http.aclose()

    @property
    def now(self) -> datetime:
        """What time the other program has, by its last answer, which may be a second old."""
        try:
            return parsedate_to_datetime(self._date).astimezone(UTC) - timedelta(seconds=1)
        except (ValueError, TypeError, OverflowError):
            return datetime.now(UTC)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        reads: bool = False,
        files: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None,
        raw: bool = False,
    ) -> Any:
        """The JSON of the answer, None if it is empty; raises `ApiError` or `ApiDown`.

        `reads` says that a request which is not a GET changes nothing; `files` and `data` are those
        of a form; `raw` asks for the bytes of the answer.
        """
        backoff = Backoff(self._retry_seconds if reads or method == "GET" else 0.0)
        while True:
            try:
                sent = {"json": body, "params": params, "headers": headers}
                form = {"files": files, "data": data} if files or data else {}
                return await self._once(method, path, sent | form, raw)
            except ApiDown as down:
                wait = backoff.wait(down.wait)
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def _once(
        self, method: str, path: str, sent: Mapping[str, Any], raw: bool = False
    ) -> Any:
        what = f"{method} {self.url}{path}"
        try:
            async with self._http.stream(method, f"{self.url}{path}", **sent) as got:
                content = await content_of(got, MOST_OF_PAGE)
        except TooLarge as fault:
            raise ApiError(f"{what}: {fault}") from None
        except self._httpx.RequestError as fault:
            why = scrubbed(str(fault) or type(fault).__name__, self._secret)
            raise ApiDown(f"{self.name} at {self.url} cannot be reached: {why}") from None
        if got.status_code in AGAIN:
            detail = self._detail(got.status_code, content)
            wait = retry_after(got.headers) or 0.0
            raise ApiDown(f"{self.name} cannot answer {method} {path}: {detail}", wait)
        self._date = got.headers.get("date", "")
        if got.status_code >= 300:
            raise self._error(what, got, content)
        if not content or raw:
            return content or None
        try:
            return parse_json(content)
        except ValueError:
            kind = got.headers.get("content-type", "no type")
            raise ApiError(
                f"{what}: got {kind}, expected JSON: is this the address of {self.name}?"
            ) from None

    def odd(self, path: str, version: str) -> ApiError:
        return ApiError(
            f"{self.url}{path} answers with something else than {self.name} does: is this its "
            f"address, and is it of version {version} or later?"
        )

    def _error(self, what: str, got: Any, content: bytes) -> ApiError:
        told = f"{what}: got {got.status_code}, {self._detail(got.status_code, content)}"
        if 300 <= got.status_code < 400:
            hint = f"it redirects to {got.headers.get('location')}: give the final address"
        else:
            hint = self._hints.get(got.status_code, "")
        return ApiError(f"{told}{': ' if hint else ''}{hint}", got.status_code)

    def _detail(self, status: int, content: bytes) -> str:
        """What the other program says is wrong, without the key."""
        try:
            said = parse_json(content)
            text = said.get("validation_errors") or said.get("detail") or said.get("message")
            return scrubbed(str(text or said), self._secret)[:300]
        except (ValueError, AttributeError):
            text = content[:100].decode(errors="replace")
            return scrubbed(f"{status} {text!r}", self._secret)


def are(rows: Any, fields: Mapping[str, Any]) -> bool:
    """Whether these are objects that have the fields, each of its type.

    >>> are([{"id": 7}], {"id": int}), are([{"id": "7"}], {"id": int}), are("x", {})
    (True, False, False)
    """
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(name in row and isinstance(row[name], kind) for name, kind in fields.items())
        for row in rows
    )


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


_PORTS: Final = {"http": 80, "https": 443}

#: Global unicast in IPv6, and the NAT64 prefix, which translates to IPv4.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

#: The third 32-bit word of an ISATAP address, apart from the bit for global scope.
_ISATAP: Final = 0x00005EFE

#: Special-use ranges that Python considers global: 6to4 relays, protocol assignments, the second
#: documentation range.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(text) for text in ("192.88.99.0/24", "192.0.0.0/24", "3fff::/20")
)


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, and the address that it resolved to."""

    scheme: str
    host: str
    port: int
    path: str
    address: str

    @property
    def url(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.scheme}://{address}:{self.port}{self.path}"

    @property
    def name(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def is_public(address: str) -> bool:
    """Whether an address is public.

    For IPv6 that is 2000::/3, and addresses that embed a public IPv4 address; every other way to
    embed an IPv4 address, and every special-use range, is not.

    >>> [is_public(a) for a in ("8.8.8.8", "127.0.0.1", "10.1.2.3", "169.254.169.254", "::1")]
    [True, False, False, False, False]
    >>> is_public("::ffff:127.0.0.1"), is_public("64:ff9b::7f00:1"), is_public("2002:7f00:1::")
    (False, False, False)
    >>> [is_public(a) for a in ("::7f00:1", "fec0::1", "64:ff9b:1::7f00:1", "::ffff:0:7f00:1")]
    [False, False, False, False]
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if any(ip in network for network in _SPECIAL if network.version == ip.version):
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _inner(ip)
        if inner is not None:
            return is_public(str(inner))
        if ip.teredo is not None or ip not in _UNICAST:
            return False
    return ip.is_global and not ip.is_multicast


def _inner(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address embedded in an IPv6 address: mapped, 6to4, NAT64 or ISATAP."""
    last = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip in _NAT64 or (int(ip) >> 32) & 0xFDFFFFFF == _ISATAP:
        return last
    return ip.ipv4_mapped or ip.sixtofour


def check_url(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and path of a webhook's URL, validated.

    >>> check_url("https://example.org/hook?x=1")
    ('https', 'example.org', 443, '/hook?x=1')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(f"got the address {url!r}: {error}") from None
    bad = any(ord(letter) < 33 or ord(letter) > 126 for letter in url)
    if bad or parts.scheme not in _PORTS or not parts.hostname or len(url) > 2000:
        raise InputError(f"got the address {url!r}, expected http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "the address contains credentials: messages are authenticated by signature"
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path


async def resolve(url: str, allow_private: bool, unless: str = "") -> Target:
    """Resolve a URL; `InputError` if the address is not public, with what would allow it."""
    scheme, host, port, path = check_url(url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"cannot resolve {host!r}: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    inside = [address for address in addresses if not is_public(address)]
    if inside and not allow_private:
        raise InputError(
            f"{host}{'' if host == inside[0] else f' is {inside[0]}, which'} is not a public "
            f"address{unless and f': {unless}'}"
        )
    return Target(scheme, host, port, path, addresses[0])
