"""HTTP with a timeout for the head of a request.

Uvicorn waits forever for a client that has connected and sends nothing, or sends its headers a
byte at a time (Slowloris); enough of those and no connections are left for others.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["timed"]

_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def timed(seconds: float) -> type[HttpToolsProtocol]:
    """A protocol with a timeout for the head of each request.

    >>> issubclass(timed(5.0), HttpToolsProtocol)
    True
    """

    class Timed(HttpToolsProtocol):
        """A connection, with a timer that runs while a head is awaited or received."""

        _timer: asyncio.TimerHandle | None = None

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
            """Stop the timer: the head is complete."""
            self._stop()
            super().on_headers_complete()

        def _begin(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self._end)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _end(self) -> None:
            if self.transport.is_closing():
                return
            if self.cycle is None or self.cycle.response_complete:  # else a response is pending
                self.transport.write(_TOO_SLOW)
            self.transport.close()

    return Timed
