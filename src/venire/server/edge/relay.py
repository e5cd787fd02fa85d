"""Connections to other servers: HTTP/1.1 that is kept alive, parsed by httptools.

One request at a time on a connection, and no task of its own for either: what arrives settles a
future. A short answer is awaited as a whole, one of unknown length is read as it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httptools
import httpx2

Headers = list[tuple[bytes, bytes]]

#: Seconds to connect, and those for which a connection is kept: fewer than servers keep theirs.
CONNECT: Final = 2.0
IDLE: Final = 30.0

#: How many connections to one server are kept while nobody uses them.
KEPT: Final = 200

#: Bytes of an answer that wait for a slow reader before the connection is no longer read.
AHEAD: Final = 256 * 1024


class Lost(Exception):
    """The connection ended before the answer did; what was sent may have been done."""


class Reply(NamedTuple):
    """An answer; the body is None if its length is unknown: `Connection.chunk` has its parts."""

    status: int
    headers: Headers
    body: bytes | None


def request_bytes(
    method: str, path: bytes, headers: Sequence[tuple[bytes, bytes]], body: bytes
) -> bytes:
    r"""A request as it is sent.

    >>> request_bytes("POST", b"/v1/x", [(b"host", b"a")], b"{}")
    b'POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}'
    >>> request_bytes("GET", b"/v1/x", [(b"host", b"a\r\nb: c")], b"")
    Traceback (most recent call last):
    ValueError: a header or the path contains a line break
    """
    lines = [b"%s %s HTTP/1.1" % (method.encode(), path)]
    lines += [b"%s: %s" % pair for pair in headers]
    if body or method != "GET":
        lines.append(b"content-length: %d" % len(body))
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1:
        raise ValueError("a header or the path contains a line break")
    return b"%s\r\n\r\n%s" % (head, body)


class Connection(asyncio.Protocol):
    """A connection to another server: `ask`, then `leave`."""

    _transport: asyncio.Transport

    def __init__(self, home: deque[Connection]) -> None:
        """`home` is where it waits for the next request."""
        self._loop, self._home = asyncio.get_running_loop(), home
        self._parser = httptools.HttpResponseParser(self)
        self._reply: asyncio.Future[Reply] | None = None
        self._woken: asyncio.Future[None] | None = None
        self._headers: Headers = []
        self._parts: list[bytes] = []
        self._size = 0
        self._streams = self._complete = self._lasts = False
        self.open, self.heard = True, self._loop.time()
        self.proved = ""  # the secret of the server at the other end, once it has proved it

    # what its user does

    def ask(self, sent: bytes) -> asyncio.Future[Reply]:
        """Send a request; the future has the answer, or `Lost`."""
        self._reply = reply = self._loop.create_future()
        self._complete, self.heard = False, self._loop.time()
        if self.open:
            self._transport.write(sent)
        else:
            reply.set_exception(Lost("the connection is closed"))
        return reply

    async def chunk(self, seconds: float) -> bytes:
        """The next part of an answer of unknown length; empty at its end, or if it is lost."""
        while not self._parts and self.open and not self._complete:
            self._woken = self._loop.create_future()
            try:
                async with asyncio.timeout(seconds):
                    await self._woken
            except TimeoutError:
                self.fail(Lost("it says nothing"))
        got = self._take()
        if got and self.open:
            self._transport.resume_reading()
        return got

    def fail(self, why: Exception) -> None:
        """Close the connection; an exchange that is not complete fails for this reason."""
        if self.open:
            self._transport.abort()
            self._over(why)

    def leave(self) -> None:
        """Keep the connection for the next request, if this one is complete; or close it."""
        whole = self._complete and not self._streams
        if not whole or not self._lasts or not self.open or self._transport.get_write_buffer_size():
            self.fail(Lost("it was left"))
            return
        self._reply = None
        self._home.append(self)
        if len(self._home) > KEPT:
            self._home.popleft().fail(Lost("there are enough"))

    # what the transport and the parser do

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits for an answer learns that there is none."""
        self._over(Lost(str(exc) if exc else "it closed the connection"))

    def data_received(self, data: bytes) -> None:
        self.heard = self._loop.time()
        if self._reply is None or self._complete:
            self.fail(Lost("it said something unasked"))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.fail(Lost(f"its answer is not HTTP: {error}"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """An answer without a length is handed over now, to be read as it comes."""
        status = self._parser.get_status_code()
        known = status < 200 or status in (204, 304)
        if not known and all(name != b"content-length" for name, _ in self._headers):
            self._streams = True
            self._settle(Reply(status, self._headers, None))

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._size += len(body)
        if self._streams:
            self._wake()
            if self._size > AHEAD:
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        status, headers, self._headers = self._parser.get_status_code(), self._headers, []
        if status < 200:
            return  # the answer is still to come
        self._complete, self._lasts = True, self._parser.should_keep_alive()
        if self._streams:
            self._wake()
        else:
            self._settle(Reply(status, headers, self._take()))

    def _take(self) -> bytes:
        """What has arrived of the body, which is then forgotten here."""
        got = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        return got

    def _over(self, why: Exception) -> None:
        if self.open:
            self.open = False
            with contextlib.suppress(ValueError):
                self._home.remove(self)
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(why)
        self._wake()

    def _settle(self, reply: Reply) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(reply)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class Connections:
    """Connections to other servers by address, the latest used first."""

    def __init__(self) -> None:
        self._free: dict[str, deque[Connection]] = {}
        self._tls: ssl.SSLContext | None = None

    async def to(self, address: str) -> Connection:
        """A connection that is free, or a new one; `OSError` if there is none to be had."""
        free, now = self._free.setdefault(address, deque()), asyncio.get_running_loop().time()
        while free:
            found = free.pop()
            if found.open and now - found.heard < IDLE:
                return found
            found.fail(Lost("it was idle"))
        parts = urlsplit(address)
        tls = self._context() if parts.scheme == "https" else None
        port = parts.port or (443 if tls else 80)
        async with asyncio.timeout(CONNECT):  # a TimeoutError is an OSError
            _, made = await asyncio.get_running_loop().create_connection(
                lambda: Connection(free), parts.hostname or "", port, ssl=tls
            )
        return made

    def forget(self, address: str) -> None:
        """Close the free ones to an address where no server is any more."""
        for connection in tuple(self._free.pop(address, ())):
            connection.fail(Lost("it is gone"))

    def close(self) -> None:
        for address in tuple(self._free):
            self.forget(address)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx2.create_ssl_context(trust_env=False)
        return self._tls
