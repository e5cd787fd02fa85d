"""Requests for a stream of another server are passed on to it, with the caller's key.

An operation on a stream that is elsewhere has done nothing: it is sent to the owner, and the answer
is sent back as it comes, long polls and event streams too. While a stream moves it is waited for.
Whatever was sent to a server that is then lost is not sent again: the caller decides. A request
that was passed on is not passed on again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, TypeVar

import httpx2
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from venire.errors import StreamElsewhere
from venire.web.errors import RequestError
from venire.web.guard import Gate, Handler, disconnected, stopping_error

__all__ = ["PASSED_ON", "Peers"]

T = TypeVar("T")

#: The header of a request that another server passed on.
PASSED_ON: Final = "venire-passed-on"

#: Seconds to look for the owner of a stream, and to connect to it.
PATIENCE: Final = 5.0
CONNECT: Final = 2.0

#: Seconds that an answer may take beyond the longest long poll.
SLOW: Final = 60.0

#: Headers of one connection, not of the message; and those that the server adds itself.
_OWN: Final = frozenset(
    b"connection content-length date expect keep-alive proxy-authenticate proxy-authorization "
    b"server te trailer transfer-encoding upgrade".split()
)


class Peers:
    """The other servers on the same store."""

    def __init__(self, gate: Gate) -> None:
        """Behind the same gate."""
        self._gate, self._sharing = gate, gate.service.runtime.sharing
        timeout = httpx2.Timeout(gate.settings.max_wait + SLOW, connect=CONNECT, pool=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=200)
        self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def run(self, request: Request, inner: Handler) -> Response:
        """Serve a request here, or by the owner of its stream."""
        if request.method != "GET":
            await request.body()  # and keep it, to be sent on
        try:
            return await inner(request)
        except StreamElsewhere as error:
            if PASSED_ON in request.headers:
                raise
            return await self._find(request, inner, error)

    async def _find(self, request: Request, inner: Handler, error: StreamElsewhere) -> Response:
        """Look for the owner until somebody serves the request, or patience ends."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return await self._try(request, inner, error.stream)
            except StreamElsewhere:
                await self._sharing.look_again()
        raise error

    async def _try(self, request: Request, inner: Handler, stream: str) -> Response:
        members = self._sharing.members
        owner = members.owner(stream)
        address = None if owner is None else members.addresses.get(owner)
        if owner is None or address is None or owner == members.me:
            return await inner(request)  # it may be ours by now, or be gone
        return await self._pass_on(request, stream, owner, address)

    async def _pass_on(self, request: Request, stream: str, owner: int, address: str) -> Response:
        body = b"" if request.method == "GET" else await request.body()
        query = request.scope["query_string"]
        path = request.scope["raw_path"] + (b"?" + query if query else b"")
        sent = self._client.build_request(
            request.method,
            httpx2.URL(address).copy_with(raw_path=path),
            headers=[*_kept(request.scope["headers"]), (PASSED_ON.encode(), b"1")],
            content=body,
        )
        try:
            answer = await self._race(request, owner, self._client.send(sent, stream=True))
            headers = _kept(answer.headers.raw)
            if "content-length" not in answer.headers and answer.status_code != 204:
                return self._following(answer, headers, owner)
            content = await self._race(request, owner, _whole(answer))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise StreamElsewhere(stream) from None  # nothing was sent
        except (httpx2.HTTPError, OSError) as error:
            raise _lost(str(error)) from None
        if answer.status_code == 503 and _code(content) == "elsewhere":
            raise StreamElsewhere(stream)
        response = Response(content, answer.status_code)
        response.raw_headers = [*headers, (b"content-length", str(len(content)).encode())]
        return response

    async def _race(self, request: Request, owner: int, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the owner's answer, as long as it is a member.

        A request that only asks ends with its caller, and when this server stops.
        """
        task = asyncio.ensure_future(work)
        ends: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(self._sharing.departure(owner).wait())
        ]
        if request.method == "GET":
            ends.append(asyncio.ensure_future(disconnected(request)))
            ends.append(asyncio.ensure_future(self._gate.stopping.wait()))
        try:
            await asyncio.wait({task, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if task.cancelled():
            raise stopping_error() if self._gate.stopping.is_set() else _lost("it is gone")
        return task.result()

    def _following(
        self, answer: httpx2.Response, headers: list[tuple[bytes, bytes]], owner: int
    ) -> Response:
        """An answer of unknown length, chunk by chunk, as long as the owner is there."""
        ends = self._sharing.departure(owner), self._gate.stopping
        response = StreamingResponse(_chunks(answer, ends), answer.status_code)
        response.raw_headers = headers
        return response

    # what a page shows of all streams

    async def ask(self, request: Request, path: str) -> list[Any]:
        """What each of the other servers answers to the caller; those that do not are left out."""
        members = self._sharing.members
        others = [server for server in members.addresses if server != members.me]
        found = await asyncio.gather(*(self.ask_one(request, one, path) for one in others))
        return [answer for answer in found if answer is not None]

    async def ask_one(self, request: Request, server: int, path: str) -> Any:
        """What one server answers, if it does."""
        headers = [*_kept(request.scope["headers"]), (PASSED_ON.encode(), b"1")]
        headers = [(name, value) for name, value in headers if name != b"accept"]
        address = self._sharing.members.addresses.get(server, "")
        with contextlib.suppress(httpx2.HTTPError, OSError, ValueError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                answer = await self._client.get(f"{address}{path}", headers=headers)
                return answer.json() if answer.status_code == 200 else None
        return None


def _kept(headers: Any) -> list[tuple[bytes, bytes]]:
    """The headers that are passed on."""
    return [(name.lower(), value) for name, value in headers if name.lower() not in _OWN]


async def _whole(answer: httpx2.Response) -> bytes:
    """The body as it came, still compressed if it was."""
    try:
        return b"".join([chunk async for chunk in answer.aiter_raw()])
    finally:
        await answer.aclose()


async def _chunks(answer: httpx2.Response, ends: tuple[asyncio.Event, ...]) -> AsyncIterator[bytes]:
    """The chunks of a body until it ends, or one of the events happens."""
    chunks = aiter(answer.aiter_raw())
    over = [asyncio.ensure_future(end.wait()) for end in ends]
    try:
        while True:
            chunk = asyncio.ensure_future(_next(chunks))
            try:
                await asyncio.wait({chunk, *over}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not chunk.done():
                    chunk.cancel()
            if not chunk.done() or (got := chunk.result()) is None:
                return
            yield got
    except httpx2.HTTPError:
        return  # event streams go on elsewhere, after the last event that arrived
    finally:
        for end in over:
            end.cancel()
        await answer.aclose()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def _code(content: bytes) -> str | None:
    """The code of an error."""
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
