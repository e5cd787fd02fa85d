"""HTTP with a timeout for the head and the body of a request, and only for callers who are there.

Uvicorn waits forever for a client that has connected and sends nothing, or sends its headers or its
body a byte at a time (Slowloris); enough of those and no connections are left for others.

Whatever was sent to a process while it was suspended is there when it wakes: requests of callers
who have long gone to another server, up to some thousands. They are not begun, or those who call
now would have to wait for them.
"""

from __future__ import annotations

import asyncio
import select
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["is_closed", "timed"]

_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

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

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.app = _if_there(self, self.app)

        def connection_made(self, transport: Any) -> None:
            """Start the timer for the first request."""
            super().connection_made(transport)
            self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop the timer."""
            self._stop()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            """Start the timer; requests after the first had the keep-alive timeout until now."""
            self._begin()
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """The head is complete: time the body."""
            self._stop()
            self._timer, self._in_body = self.loop.call_later(body, self._end), True
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            """Stop the timer."""
            self._stop()
            super().on_message_complete()

        def _begin(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head, self._end)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._in_body = False

        def _end(self) -> None:
            if self.transport.is_closing():
                return
            if self._in_body:
                untold = not self.cycle.response_started
            else:  # else a response is pending
                untold = self.cycle is None or self.cycle.response_complete
            if untold:
                self.transport.write(_TOO_SLOW)
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
