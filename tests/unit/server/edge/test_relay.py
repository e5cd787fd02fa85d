"""Connections to other servers: answers are read as http.client reads them, and never mixed up."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.server.edge.relay import AHEAD, Connection, Connections, Lost, Reply, request_bytes

GET = request_bytes("GET", b"/", [(b"host", b"a")], b"")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[tuple[Connections, str]]:
    """Connections to a server that does with each what it is told, and its address."""
    there: set[asyncio.Task[Any] | None] = set()

    async def until_gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server, connections = await asyncio.start_server(until_gone, "127.0.0.1", 0), Connections()
    try:
        yield connections, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        connections.close()
        await asyncio.wait_for(asyncio.gather(*(task for task in there if task)), 100)


async def none_free(connections: Connections) -> None:
    """Wait until whatever was kept is closed, and not kept any more."""
    async with asyncio.timeout(280):
        while any(connections._free.values()):
            await asyncio.sleep(0.001)


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


# parsing


class Transport:
    """Takes what is written and does nothing."""

    def write(self, data: bytes) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Socket(io.BytesIO):
    def makefile(self, mode: str) -> io.BytesIO:
        return self


def by_the_standard_library(sent: bytes) -> tuple[int, bytes, list[tuple[str, str]]]:
    answer = http.client.HTTPResponse(Socket(sent))  # type: ignore[arg-type]
    answer.begin()
    return answer.status, answer.read(), [(k.lower(), v) for k, v in answer.getheaders()]


async def in_pieces(sent: bytes, cuts: list[int]) -> tuple[int, bytes, list[tuple[str, str]]]:
    connection = Connection(deque())
    connection.connection_made(Transport())
    reply = connection.ask(GET)
    ends = sorted({0, len(sent), *(cut % (len(sent) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(ends):
        connection.data_received(sent[start:end])
    status, headers, body = await reply
    if body is None:
        body = b"".join([chunk async for chunk in chunks(connection)])
    return status, body, [(k.decode(), v.decode()) for k, v in headers]


async def chunks(connection: Connection) -> AsyncIterator[bytes]:
    while chunk := await connection.chunk(5.0):
        yield chunk


@given(
    status=st.sampled_from([200, 201, 204, 404, 503]),
    parts=st.lists(st.binary(min_size=1, max_size=40), max_size=4),
    chunked=st.booleans(),
    early=st.booleans(),
    cuts=st.lists(st.integers(0, 10_000), max_size=6),
)
def test_an_answer_is_what_the_standard_library_reads(
    status: int, parts: list[bytes], chunked: bool, early: bool, cuts: list[int]
) -> None:
    parts = [] if status == 204 else parts
    lines = [b"HTTP/1.1 %d Word" % status, b"Venire-Owner: http://b:1", b"x: 1", b"X: 2"]
    if status == 204:
        body = b""
    elif chunked:
        lines.append(b"transfer-encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    else:
        lines.append(b"Content-Length: %d" % sum(map(len, parts)))
        body = b"".join(parts)
    sent = b"\r\n".join(lines) + b"\r\n\r\n" + body
    before = b"HTTP/1.1 100 Continue\r\n\r\n" if early else b""
    assert asyncio.run(in_pieces(before + sent, cuts)) == by_the_standard_library(sent)


@pytest.mark.parametrize(
    "sent", [b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"]
)
def test_what_is_not_http_is_lost(sent: bytes) -> None:
    with pytest.raises(Lost, match="not HTTP"):
        asyncio.run(in_pieces(sent, []))


# connections


async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the number of the request on this connection."""
    n = 0
    while True:
        await head(reader)
        n += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % n)


async def ask(connections: Connections, address: str) -> Reply:
    connection = await connections.to(address)
    try:
        return await connection.ask(GET)
    finally:
        connection.leave()


def test_a_connection_is_kept_and_used_by_one_at_a_time() -> None:
    async def run() -> None:
        async with served(count) as (connections, address):
            assert [(await ask(connections, address)).body for _ in range(3)] == [b"1", b"2", b"3"]
            both = await asyncio.gather(*(ask(connections, address) for _ in range(2)))
            assert sorted(one.body or b"" for one in both) == [b"1", b"4"]
            connections.forget(address)
            assert (await ask(connections, address)).body == b"1"

    asyncio.run(run())


def test_one_that_was_closed_meanwhile_is_not_used() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def run() -> None:
        async with served(once) as (connections, address):
            for _ in range(3):
                assert (await ask(connections, address)).body == b"ok"
                await none_free(connections)

    asyncio.run(run())


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    ],
)
def test_an_answer_that_breaks_off_is_lost_and_nothing_is_sent_again(sent: bytes) -> None:
    asked: list[bytes] = []

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await head(reader))
        writer.write(sent)

    async def run() -> None:
        async with served(break_off) as (connections, address):
            with pytest.raises(Lost):
                await ask(connections, address)
            assert asked == [GET]

    asyncio.run(run())


def test_one_that_says_something_unasked_is_not_used_again() -> None:
    heard = asyncio.Semaphore(0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await heard.acquire()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
        await head(reader)

    async def run() -> None:
        async with served(talk) as (connections, address):
            for _ in range(3):
                assert (await ask(connections, address)).body == b"ok"
                heard.release()
                await none_free(connections)

    asyncio.run(run())


def test_an_answer_of_unknown_length_is_read_as_it_comes_and_not_ahead_of_its_reader() -> None:
    part, sent = b"x" * 65536, [0]

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(1000):
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            sent[0] += len(part)
        writer.write(b"0\r\n\r\n")

    async def run() -> None:
        async with served(pour) as (connections, address):
            connection = await connections.to(address)
            reply = await connection.ask(GET)
            assert reply.body is None
            before = -1
            while sent[0] < AHEAD or sent[0] > before:  # until it waits
                before = sent[0]
                await asyncio.sleep(0.05)
            assert sent[0] < 30_000_000, "it waits for its reader"
            size = 0
            async for chunk in chunks(connection):
                size += len(chunk)
            assert size == 65536 * 1000
            connection.leave()

    asyncio.run(run())


def test_who_leaves_in_the_middle_closes_the_connection() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        asked.set()
        assert await reader.read() == b""
        gone.set()

    async def run() -> None:
        async with served(wait) as (connections, address):
            asking = asyncio.ensure_future(ask(connections, address))
            await asked.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await asyncio.wait_for(gone.wait(), 100)

    asyncio.run(run())


def test_where_nobody_listens_nothing_is_sent() -> None:
    async def run() -> Any:
        async with served(count) as (connections, address):
            pass
        await connections.to(address)

    with pytest.raises(OSError, match=r"\d"):
        asyncio.run(run())
