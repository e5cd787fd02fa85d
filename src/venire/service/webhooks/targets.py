"""Where a webhook may be sent: to the open network, not into the one the server stands in.

A name is looked up once, all of its addresses are checked, and the message goes to one of the
addresses that were checked: a name that means something else a moment later changes nothing.
Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from venire.errors import FetchError, InputError

__all__ = ["Target", "check_url", "is_public", "resolve"]

_PORTS: Final = {"http": 80, "https": 443}

#: What IPv6 has assigned to the open network, and what translates to IPv4.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

#: The third quarter of an address that ISATAP made, apart from the bit for global scope.
_ISATAP: Final = 0x00005EFE

#: Of special use, though Python takes them for global: 6to4 relays, protocol assignments, the
#: second range for documentation.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(text) for text in ("192.88.99.0/24", "192.0.0.0/24", "3fff::/20")
)


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, and the address to which it goes."""

    scheme: str
    host: str
    port: int
    path: str
    address: str

    @property
    def url(self) -> str:
        """The URL with the address in place of the name."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.scheme}://{address}:{self.port}{self.path}"

    @property
    def name(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def is_public(address: str) -> bool:
    """Whether an address is one of the open network.

    Of IPv6 that is 2000::/3 and what stands for an IPv4 address of the open network; every other
    way to write an IPv4 address, and every range of special use, leads elsewhere.

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
    """The IPv4 address that an IPv6 address stands for: mapped, by 6to4, NAT64 or ISATAP."""
    last = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip in _NAT64 or (int(ip) >> 32) & 0xFDFFFFFF == _ISATAP:
        return last
    return ip.ipv4_mapped or ip.sixtofour


def check_url(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and path of a URL that a webhook may have.

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
        raise InputError("the address has a name or a password in it: the signature is the proof")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path


async def resolve(url: str, allow_private: bool) -> Target:
    """Look up where a URL goes; `InputError` if that is not on the open network."""
    scheme, host, port, path = check_url(url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(f"cannot find {host!r}: {error}") from None
    addresses = [str(entry[4][0]) for entry in found]
    inside = [address for address in addresses if not is_public(address)]
    if inside and not allow_private:
        raise InputError(
            f"{host!r} is {inside[0]}, which is not on the open network: webhooks may go there "
            "only if the server allows private targets"
        )
    return Target(scheme, host, port, path, addresses[0])
