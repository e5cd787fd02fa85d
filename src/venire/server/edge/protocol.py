"""HTTP with limits for the head and the body of a request, and only for callers who are there.

Uvicorn waits forever for a client that has connected and sends nothing, or sends its headers or its
body a byte at a time (Slowloris); enough of those and no connections are left for others. It also
keeps whatever comes as a head, which needs no key: a few connections fill the memory. So a head,
and what there is around the parts of a body, has a limit.

Whatever was sent to a process while it was suspended is there when it wakes: requests of callers
who have long gone to another server, up to some thousands. They are not begun, or those who call
now would have to wait for them.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from venire.server.edge.answers import json_answer
from venire.server.edge.errors import RequestError, error_response
from venire.server.edge.guard import Gate

_END: Final = b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout" + _END
_TOO_LONG: Final = b"HTTP/1.1 431 Request Header Fields Too Large" + _END

#: Bytes of a request that are not its body, and more for each byte of it that comes in chunks.
LONGEST_HEAD: Final = 64 * 1024
FRAMING: Final = 16

#: The most bytes that come at once.
READ: Final = 256 * 1024

#: What the kernel says of a connection that the other side has closed, where it can say so.
_CLOSED: Final[int] = getattr(select, "POLLRDHUP", 0)


def timed(head: float, body: float) -> type[HttpToolsProtocol]:
    """A protocol with timeouts for the head and the body of each request.

    >>> issubclass(timed(5.0, 30.0), HttpToolsProtocol)
    True
    """

    class Timed(HttpToolsProtocol):
        """A connection, with a timer that runs while a head is awaited or a request received."""

        _timer: asyncio.TimerHandle | None = None
        _in_body = False
        _beside = 0  # bytes of the request that are not its body, less what is allowed beside that

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.app = _if_there(self, self.app)
            self._begun: deque[RequestResponseCycle] = deque()

        def connection_made(self, transport: Any) -> None:
            """Start the timer for the first request."""
            super().connection_made(transport)
            self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop the timer, and tell every request: Uvicorn tells the latest alone."""
            self._stop()
            super().connection_lost(exc)
            for cycle in self._begun:
                cycle.disconnected = cycle.disconnected or not cycle.response_complete
                cycle.message_event.set()

        def data_received(self, data: bytes) -> None:
            """Take what has come; refuse a request of which too much is not its body."""
            if self.transport.is_closing():
                return
            self._beside += len(data)
            super().data_received(data)
            if self._beside > LONGEST_HEAD:
                self._refuse(_TOO_LONG)

        def on_message_begin(self) -> None:
            """Start the timer; requests after the first had the keep-alive timeout until now."""
            self._begin()
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """The head is complete: time the body."""
            self._stop()
            if len(self.url) + sum(len(x) + len(y) + 4 for x, y in self.headers) > LONGEST_HEAD:
                self._refuse(_TOO_LONG)
                raise ValueError("the head is too long")  # nothing more is parsed
            self._timer, self._in_body = self.loop.call_later(body, self._refuse, _TOO_SLOW), True
            super().on_headers_complete()
            while self._begun and self._begun[0].response_complete:
                self._begun.popleft()
            self._begun.append(self.cycle)

        def on_header(self, name: bytes, value: bytes) -> None:
            """Take a header; nobody needs one behind the body."""
            if self._in_body:
                self._refuse(_TOO_LONG)
                raise ValueError("trailers are not accepted")
            super().on_header(name, value)

        def on_body(self, part: bytes) -> None:
            self._beside = max(self._beside - (1 + FRAMING) * len(part), -READ)
            super().on_body(part)

        def on_message_complete(self) -> None:
            """Stop the timer."""
            self._stop()
            self._beside = -READ  # what came with the end of this one may be of the next
            super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            """Say that this is no HTTP, unless something was said already."""
            if not self.transport.is_closing():
                super().send_400_response(msg)

        def _begin(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head, self._refuse, _TOO_SLOW)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._in_body = False

        def _refuse(self, told: bytes) -> None:
            """Close the connection, and say why unless an answer is under way."""
            if self.transport.is_closing():
                return
            if self._in_body:
                untold = not self.cycle.response_started
            else:
                untold = self.cycle is None or self.cycle.response_complete
            if untold:
                self.transport.write(told)
            self.transport.close()

    return Timed


def _if_there(connection: HttpToolsProtocol, app: ASGIApp) -> ASGIApp:
    """The application, for callers who have not gone before their turn came."""

    async def begin(scope: Scope, receive: Receive, send: Send) -> None:
        if not is_closed(connection.transport):
            return await app(scope, receive, send)
        connection.transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass  # it is known in a moment

    return begin


def is_closed(transport: asyncio.BaseTransport) -> bool:
    """Whether the other side has closed a connection, also if that was not read yet."""
    if not _CLOSED or transport.is_closing():
        return transport.is_closing()
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), _CLOSED)
    return bool(poll.poll(0))


class Front:
    """An ASGI application that stands by until it is given the one that serves."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self.gate: Gate | None = None

    def open(self, app: ASGIApp, gate: Gate) -> None:
        """Serve this application from now on."""
        self._app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer that another server has the store."""
        if self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = _health() if Request(scope).url.path == "/health" else _elsewhere()
            await answer(scope, receive, send)


def _health() -> ASGIApp:
    return json_answer({"status": "ok", "role": "standby"})


def _elsewhere() -> ASGIApp:
    return error_response(
        RequestError(
            503,
            "standby",
            "this server is on standby: another one owns the store",
            hint="send it to the leader; load balancers ask /ready",
            retry_after=1.0,
        )
    )
