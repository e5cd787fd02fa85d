"""What a connection may send before anybody has looked at its key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from tests.unit.server.support import until
from venire.server.edge import limits
from venire.server.edge.limits import LONGEST_HEAD, READ, timed

pytestmark = pytest.mark.anyio

GET = b"GET / HTTP/1.1\r\n"
POST = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """The other side of a connection: what was said, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self.closed = b"", False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.said += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class Answers:
    """An application that answers with the length of the body, once it is there."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length, more = 0, True
        while more:
            message = await receive()
            length, more = length + len(message.get("body", b"")), message.get("more_body", False)
        self.lengths.append(length)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def connect(app: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Wire]:
    monkeypatch.setattr(limits, "is_closed", lambda transport: transport.is_closing())
    config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None)
    config.load()
    made, wire = timed(60.0, 60.0)(config, ServerState(), {}), Wire()
    made.connection_made(wire)
    return made, wire


async def sent(connection: Any, wire: Wire, data: bytes, piece: int = READ) -> int:
    """Send something piece by piece; how much was taken before the server hung up."""
    for start in range(0, len(data), piece):
        if wire.closed:
            return start
        connection.data_received(data[start : start + piece])
        await asyncio.sleep(0)
    return len(data)


@pytest.mark.parametrize("piece", [1500, READ])
@pytest.mark.parametrize(
    "data",
    [
        GET + b"a: b\r\n" * 500_000,
        GET + b"a: " + b"b" * 3_000_000,
        b"GET /" + b"a" * 3_000_000,
        POST + b"0\r\n" + b"a: b\r\n" * 500_000,
        POST + b"1\r\na\r\n0\r\na: " + b"b" * 3_000_000,
        POST + b"1;" + b"a" * 3_000_000,
    ],
    ids=["headers", "header", "path", "trailers", "trailer", "extension"],
)
async def test_what_is_not_the_body_is_refused_before_it_fills_the_memory(
    data: bytes, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, wire = connect(Answers(), monkeypatch)
    assert await sent(connection, wire, data, piece) <= LONGEST_HEAD + 2 * READ
    assert wire.said.startswith(b"HTTP/1.1 431 ")
    connection.connection_lost(None)


async def test_a_whole_head_that_is_too_long_is_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Answers()
    connection, wire = connect(app, monkeypatch)
    await sent(connection, wire, GET + b"a: b\r\n" * 30_000 + b"\r\n")
    assert (wire.closed, app.lengths) == (True, [])
    assert wire.said.startswith(b"HTTP/1.1 431 ")
    connection.connection_lost(None)


@pytest.mark.parametrize("piece", [7, 1500, READ])
async def test_bodies_of_any_length_in_chunks_of_any_length_are_taken(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Answers()
    connection, wire = connect(app, monkeypatch)
    size = 20_000 if piece == 7 else 1_000_000
    bodies = [b"1\r\na\r\n" * (size // 10), b"%x\r\n%s\r\n" % (size, b"a" * size), b""]
    for n, body in enumerate(bodies * 2, start=1):
        assert await sent(connection, wire, POST + body + b"0\r\n\r\n", piece) > 0
        await until(lambda n=n: len(app.lengths) == n)  # type: ignore[misc]
    assert await sent(connection, wire, GET + b"a: " + b"b" * 60_000 + b"\r\n\r\n", piece) > 60_000
    await until(lambda: len(app.lengths) == 7)
    assert app.lengths == [size // 10, size, 0] * 2 + [0]
    assert not wire.closed
    connection.connection_lost(None)


async def test_every_request_of_a_connection_learns_that_it_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one with others behind it, which Uvicorn would leave waiting for ever."""
    told = asyncio.Event()

    async def follows(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        told.set()

    connection, wire = connect(follows, monkeypatch)
    await sent(connection, wire, (GET + b"\r\n") * 3)
    await asyncio.sleep(0)
    wire.close()
    connection.connection_lost(None)
    async with asyncio.timeout(60):
        await told.wait()
