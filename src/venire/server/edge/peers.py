"""Requests for a stream of another server are passed on to it, with the caller's key.

Whether a stream is elsewhere is seen before anything is done: by its name in the path, or by the
end of an assignment's token. The request is sent to the owner, and the answer is sent back as it
comes, long polls and event streams too. While a stream moves it is waited for. Whatever was sent to
a server that is then lost is not sent again: the caller decides. A request that was passed on is
not passed on again. Answers about a stream say who owns it. Nothing is sent to a server, and no
answer is passed on, that has not proved to be the one in the store (`Proving`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hmac
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from venire.errors import StreamElsewhere
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate, Handler, disconnected, stopping_error
from venire.server.edge.relay import Connection, Connections, Lost, request_bytes
from venire.server.messages import Insights, StreamView
from venire.server.runtime.sharing import Sharing
from venire.server.store.ownership import lock_of
from venire.server.tokens import lock_in

#: The header of a request that another server passed on, with its challenge, and of the answer.
PASSED_ON_HEADER: Final = b"venire-passed-on"
PROOF: Final = b"venire-proof"

_LONGEST: Final = 64


def challenge() -> bytes:
    """Something that nobody has signed before."""
    return secrets.token_hex(16).encode()


def _signed(secret: str, asked: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"venire answers " + asked, "sha256").hex().encode()


def proves(headers: Iterable[tuple[bytes, bytes]], secret: str, asked: bytes) -> bool:
    """Whether an answer comes from the server that has the secret.

    >>> proves([(PROOF, _signed("s", b"1"))], "s", b"1"), proves([(PROOF, b"x")], "s", b"1")
    (True, False)
    """
    given = next((value for name, value in headers if name == PROOF), b"")
    return bool(secret) and hmac.compare_digest(given, _signed(secret, asked))


class Proving:
    """An ASGI application that answers challenges."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app, self._secret = app, secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, with a proof if it was passed on."""
        asked = next(
            (value for name, value in scope.get("headers", ()) if name == PASSED_ON_HEADER), b""
        )
        if not 0 < len(asked) <= _LONGEST:
            await self._app(scope, receive, send)
            return

        async def prove(message: Message) -> None:
            if message["type"] == "http.response.start":
                proof = (PROOF, _signed(self._secret, asked))
                message = {**message, "headers": [*message.get("headers", ()), proof]}
            await send(message)

        await self._app(scope, receive, prove)


#: The header of a request that another server passed on.
PASSED_ON: Final = PASSED_ON_HEADER.decode()

#: The header of an answer about a stream: the address of its owner.
OWNER: Final = "venire-owner"

#: Seconds to look for the owner of a stream.
PATIENCE: Final = 5.0

#: Seconds that an answer may take beyond the longest long poll.
SLOW: Final = 60.0

#: Seconds after which a request is a slow one: from then on its caller is watched.
SOON: Final = 0.05

#: Headers of one connection, not of the message; and those that the server adds itself.
_OWN: Final = frozenset(
    b"connection content-length date expect keep-alive proxy-authenticate proxy-authorization "
    b"server te trailer transfer-encoding upgrade".split()
) | {PASSED_ON_HEADER, PROOF}


_log = logging.getLogger("venire.web")


class Peers:
    """The other servers on the same store."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._sharing = gate, gate.service.runtime.sharing
        self._timeout = gate.settings.max_wait + SLOW
        self._connections = Connections()
        self._busy: dict[int, set[Connection]] = {}  # by the owner that is asked
        self._asking: set[Connection] = set()  # those that change nothing
        self._watchers: dict[int | None, asyncio.Task[None]] = {}

    async def close(self) -> None:
        for watcher in self._watchers.values():
            watcher.cancel()
        self._connections.close()

    async def run(self, request: Request, inner: Handler) -> Response:
        """Serve a request here, or by the owner of its stream."""
        if request.method != "GET":
            await request.body()  # and keep it, to be sent on
        lock = request.scope["venire.lock"] = _lock(request)
        if PASSED_ON in request.headers:
            return await inner(request)
        end = 0.0
        while True:
            if (response := await self._by_owner(request, lock)) is not None:
                return response
            try:
                return await inner(request)  # it is ours, or may be by now, or is nowhere
            except StreamElsewhere as error:
                known, lock = lock is not None, lock_of(error.stream)
                request.scope["venire.lock"] = lock
                end = end or time.monotonic() + PATIENCE
                if time.monotonic() >= end or self._gate.stopping.is_set():
                    raise  # who stops waits for nobody: the caller may ask another server
            if known:
                await self._sharing.look_again()

    async def _by_owner(self, request: Request, lock: int | None) -> Response | None:
        """The answer of the owner; None if it is not known, is us, or has not got the stream."""
        members = self._sharing.members
        owner = None if lock is None else members.holders.get(lock)
        address = None if owner is None else members.addresses.get(owner)
        name = request.path_params.get("stream")
        if owner is None or address is None or owner == members.me:
            return None
        if name is not None and self._sharing.holds(name):
            return None  # since the members were looked at
        return await self._pass_on(request, owner, address)

    async def _pass_on(self, request: Request, owner: int, address: str) -> Response | None:
        if request.method == "GET" and self._gate.stopping.is_set():
            raise stopping_error()
        asked, secret = challenge(), self._sharing.members.secrets.get(owner, "")
        sent = await _message(request, address, asked)
        try:
            connection = await self._to(address, secret)
        except OSError:
            return None  # nothing was sent
        try:
            with self._watched(connection, request, owner, address):
                reply = await connection.ask(sent)
            if not proves(reply.headers, secret, asked):
                raise Lost("its answer does not prove who it is")
        except Lost as why:
            connection.leave()
            if request.method == "GET" and self._gate.stopping.is_set():
                raise stopping_error() from None
            raise _lost(str(why)) from None
        except asyncio.CancelledError:
            connection.leave()
            raise
        headers = _kept(reply.headers)
        if reply.body is None:
            return self._following(connection, reply.status, headers, owner, address)
        connection.leave()
        if reply.status == 503 and _code(reply.body) == "elsewhere":
            return None
        return _Relayed(reply.status, headers, reply.body)

    async def _to(self, address: str, secret: str) -> Connection:
        """A connection to the server that has a secret; `OSError` if there is none to be had."""
        connection = await self._connections.to(address)
        if connection.proved == secret:
            return connection
        asked, host = challenge(), (b"host", _host(address))
        try:
            async with asyncio.timeout(PATIENCE):
                sent = request_bytes("GET", b"/health", [host, (PASSED_ON_HEADER, asked)], b"")
                reply = await connection.ask(sent)
            if proves(reply.headers, secret, asked):
                connection.proved = secret
                return connection
        except Lost as why:
            raise ConnectionError(str(why)) from None
        except BaseException:
            connection.fail(Lost("it was left"))
            raise
        connection.fail(Lost("it does not prove who it is"))
        _log.warning("what answers at %s is not the server of that address", address)
        raise ConnectionError("it does not prove who it is")

    # an exchange ends with its owner, and one that only asks with its caller and with this server

    @contextmanager
    def _watched(
        self, connection: Connection, request: Request, owner: int, address: str
    ) -> Iterator[None]:
        """Inside, the exchange ends when it cannot or need not be answered any more."""
        loop, asks = asyncio.get_running_loop(), request.method == "GET"
        later: list[asyncio.Task[None] | asyncio.TimerHandle] = []

        def slow() -> None:
            later[0] = loop.call_later(self._timeout, silent)
            if asks:
                later.append(loop.create_task(gone()))

        def silent() -> None:
            left = connection.heard + self._timeout - loop.time()
            if left <= 0:
                connection.fail(Lost("it did not answer in time"))
            else:
                later[0] = loop.call_later(left, silent)

        async def gone() -> None:
            await disconnected(request)
            connection.fail(Lost("the caller is gone"))

        later.append(loop.call_later(SOON, slow))
        try:
            with self._open(connection, owner, address, asks):
                yield
        finally:
            for one in later:
                one.cancel()

    @contextmanager
    def _open(self, connection: Connection, owner: int, address: str, asks: bool) -> Iterator[None]:
        """Inside, the exchange ends when its owner departs; if it only asks, when we stop."""
        if owner not in self._watchers:
            left = self._sharing.departure(owner)
            self._watchers[owner] = asyncio.create_task(self._depart(left, owner, address))
        if None not in self._watchers:
            self._watchers[None] = asyncio.create_task(self._stop())
        busy = self._busy.setdefault(owner, set())
        busy.add(connection)
        if asks:
            self._asking.add(connection)
        try:
            yield
        finally:
            busy.discard(connection)
            self._asking.discard(connection)

    async def _depart(self, left: asyncio.Event, owner: int, address: str) -> None:
        await left.wait()
        del self._watchers[owner]
        for connection in tuple(self._busy.pop(owner, ())):
            connection.fail(Lost("it is gone"))
        self._connections.forget(address)

    async def _stop(self) -> None:
        await self._gate.stopping.wait()
        for connection in tuple(self._asking):
            connection.fail(Lost("this server stops"))

    def _following(
        self,
        connection: Connection,
        status: int,
        headers: list[tuple[bytes, bytes]],
        owner: int,
        address: str,
    ) -> Response:
        """An answer of unknown length, chunk by chunk, as long as the owner is there."""

        async def chunks() -> AsyncIterator[bytes]:
            with self._open(connection, owner, address, asks=True):
                while chunk := await connection.chunk(self._timeout):
                    yield chunk  # event streams go on elsewhere, after the last that arrived

        response = _Following(connection, chunks(), status)
        response.raw_headers = headers
        return response

    # who owns what

    def about(self, request: Request, stream: str) -> None:
        """Say which stream a request is about that does not name it in its path."""
        request.path_params["stream"] = stream
        request.scope["venire.lock"] = lock_of(stream)

    def sign(self, request: Request, response: Response) -> None:
        """Say who owns the stream that an answer is about, unless the owner has said it."""
        lock = request.scope.get("venire.lock")
        if lock is None or any(name == OWNER.encode() for name, _ in response.raw_headers):
            return
        members, name = self._sharing.members, request.path_params.get("stream")
        mine = name is not None and self._sharing.holds(name)
        owner = members.me if mine else members.holders.get(lock)
        address = None if owner is None else members.addresses.get(owner)
        if address is not None:
            response.raw_headers.append((OWNER.encode(), address.encode()))

    # what a page shows of all streams

    async def ask(self, request: Request, path: str) -> list[Any]:
        """What each of the other servers answers to the caller; those that do not are left out."""
        members = self._sharing.members
        others = [server for server in members.addresses if server != members.me]
        found = await asyncio.gather(*(self.ask_one(request, one, path) for one in others))
        return [answer for answer in found if answer is not None]

    async def ask_one(self, request: Request, server: int, path: str) -> Any:
        """What one server answers, if it does."""
        asked, members = challenge(), self._sharing.members
        headers = [*_kept(request.scope["headers"]), (PASSED_ON_HEADER, asked)]
        headers = [(name, value) for name, value in headers if name != b"accept"]
        address, secret = members.addresses.get(server, ""), members.secrets.get(server, "")
        with contextlib.suppress(Lost, OSError, ValueError):
            async with asyncio.timeout(PATIENCE):
                connection = await self._to(address, secret)
                try:
                    sent = request_bytes("GET", path.encode(), headers, b"")
                    reply = await connection.ask(sent)
                finally:
                    connection.leave()
                if reply.status == 200 and proves(reply.headers, secret, asked):
                    return json.loads(reply.body or b"null")
        return None


class _Relayed(Response):
    """The answer of another server, as it came."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status_code, self.body, self.background = status, body, None
        if status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(body)))
        self.raw_headers = headers


class _Following(StreamingResponse):
    """The answer of another server, as it comes; the connection is left in the end."""

    def __init__(self, connection: Connection, chunks: AsyncIterator[bytes], status: int) -> None:
        super().__init__(chunks, status)
        self._connection = connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._connection.leave()


def _lock(request: Request) -> int | None:
    """The number of the lock of the stream that a request is about, as far as its path says."""
    if (stream := request.path_params.get("stream")) is not None:
        return lock_of(stream)
    return lock_in(request.path_params.get("token", ""))


async def _message(request: Request, address: str, asked: bytes) -> bytes:
    body = b"" if request.method == "GET" else await request.body()
    query = request.scope["query_string"]
    path = request.scope["raw_path"] + (b"?" + query if query else b"")
    headers = _kept(request.scope["headers"])
    if all(name != b"host" for name, _ in headers):
        headers.append((b"host", _host(address)))
    return request_bytes(request.method, path, [*headers, (PASSED_ON_HEADER, asked)], body)


def _host(address: str) -> bytes:
    return address.partition("://")[2].encode()


def _kept(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that are passed on; those of requests and of replies are in lower case."""
    return [pair for pair in headers if pair[0] not in _OWN]


def _code(content: bytes) -> str | None:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(content)["error"]["code"])
    return None


def _lost(why: str) -> RequestError:
    return RequestError(
        503,
        "owner_lost",
        f"the server that owns the stream did not answer: {why}",
        hint="retry: what was done already counts once",
        retry_after=1.0,
    )


T = TypeVar("T")

#: How often to ask again while a stream moves between servers.
TRIES: Final = 6


async def all_streams(gate: Gate, request: Request) -> list[StreamView]:
    """All streams by name; a server that asks for another gets those of this one."""
    own = await gate.service.streams()
    if gate.peers is None or PASSED_ON in request.headers:
        return own
    sharing, found = gate.service.runtime.sharing, dict[str, StreamView]()
    for _ in range(TRIES):
        answers = await gate.peers.ask(request, "/v1/streams")
        found = {row["name"]: _read(StreamView, row) for answer in answers for row in answer}
        found |= {view.name: view for view in own}
        if all(name in found or sharing.members.owner(name) is not None for name in sharing.names):
            break
        await sharing.look_again()
        own = await gate.service.streams()
    return [found[name] for name in sorted(found)]


async def all_insights(gate: Gate, request: Request) -> list[Insights]:
    """The statistics of all streams by name; one that moves at this moment is left out."""
    own = await gate.service.overview()
    if gate.peers is None:
        return own
    sharing, peers = gate.service.runtime.sharing, gate.peers
    others = sharing.names - {one.stream for one in own}
    found = await asyncio.gather(*(_asked(sharing, peers, request, name) for name in others))
    return sorted([*own, *(one for one in found if one is not None)], key=lambda one: one.stream)


async def _asked(sharing: Sharing, peers: Peers, request: Request, name: str) -> Insights | None:
    owner, path = sharing.members.owner(name), f"/v1/streams/{name}/insights"
    if owner is None or owner == sharing.members.me:
        return None
    row = await peers.ask_one(request, owner, path)
    return None if row is None else _read(Insights, row)


def _read(kind: type[T], row: dict[str, Any]) -> T:
    """A view from its JSON; what only a newer version knows is left out."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in row.items() if name in names})
