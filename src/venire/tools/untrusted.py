"""What others wrote or will read: JSON of any depth, names for files, cells of tables, secrets.

**Where a webhook or a fetch may go: to public addresses, not into the server's own network.**

A name is resolved once, all of its addresses are checked, and the message goes to one of the
checked addresses, so a name that resolves differently a moment later (DNS rebinding) changes
nothing.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import socket
from dataclasses import dataclass
from html import escape
from typing import Any, Final
from urllib.parse import quote, urlsplit

from venire.errors import FetchError, InputError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

#: How a text begins that a spreadsheet takes for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; whatever is wrong with it is a `json.JSONDecodeError`.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    json.decoder.JSONDecodeError: Nested too deeply: line 1 column 1 (char 0)
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("Nested too deeply", "", 0) from None
    except ValueError as error:  # a number of thousands of digits, or no UTF-8
        raise json.JSONDecodeError(str(error)[:100], "", 0) from None


def is_file_name(name: object) -> bool:
    """Whether a name is that of a stream or segment, so that no path leads out of their folder.

    >>> is_file_name("posts-1.2"), is_file_name(".."), is_file_name("../x"), is_file_name("a/b")
    (True, False, False, False)
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def harmless(value: Any) -> Any:
    """The cell of a CSV file: a text that a spreadsheet would take for a formula gets a quote.

    >>> harmless("=1+1"), harmless("-1"), harmless("- no"), harmless(-1)
    ("'=1+1", '-1', "'- no", -1)
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
        return value  # a number does nothing, and classes are called -1 and +1
    except ValueError:
        return f"'{value}"


def scrubbed(text: str, secret: str) -> str:
    """The text without a secret, however it is written there: in a URL, JSON, HTML or base64.

    >>> scrubbed("no such key: sk%2D1234567 or sk-1234567", "sk-1234567")
    'no such key: *** or ***'
    >>> scrubbed("Basic " + base64.b64encode(b"me:sk-1234567").decode(), "sk-1234567")
    'Basic bWU6***'
    """
    if not secret:
        return text
    forms = ["".join(map(_written, secret)), re.escape(secret.encode().hex())]
    for shift in range(3):  # by what stands before it, base64 writes it in three ways
        coded = base64.b64encode(b"\0" * shift + secret.encode()).decode().rstrip("=")
        whole = coded[-(-shift * 4 // 3) : len(coded) - 1 if (shift + len(secret)) % 3 else None]
        if len(whole) > 7:
            end = "[A-Za-z0-9+/_-]?=*"
            forms += [re.escape(x) + end for x in (whole, whole.translate(_URL_SAFE))]
    return re.sub("|".join(forms), "***", text, flags=re.I)


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _written(letter: str) -> str:
    code = ord(letter)
    coded = "".join(f"%{byte:02x}" for byte in letter.encode())
    twice = quote(coded, safe="")
    named = re.escape(escape(letter))  # &amp;
    return (
        f"(?:{named}|\\\\?{re.escape(letter)}|{coded}|{twice}|\\\\u{code:04x}|\\\\x{code:02x}"
        f"|&#0*{code};|&#x0*{code:x};)"
    )


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
    import asyncio  # not needed to read files

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
