"""HTTP with a limit on how long the head of a request may take.

Uvicorn waits for ever for a client that has connected and says nothing, or sends its headers a
byte at a time; enough of those and there is no room for others.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["timed"]

_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def timed(seconds: float) -> type[HttpToolsProtocol]:
    """A protocol that gives each request so many seconds for its head.

    >>> issubclass(timed(5.0), HttpToolsProtocol)
    True
    """

    class Timed(HttpToolsProtocol):
        """A connection, with a timer that runs while a head is awaited or comes in."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Begin to wait for the first request."""
            super().connection_made(transport)
            self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            """Nobody is waited for any more."""
            self._stop()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            """A request begins; one after the first has waited under the keep-alive timer."""
            self._begin()
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """The head is there."""
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
            if self.cycle is None or self.cycle.response_complete:  # else another answer is due
                self.transport.write(_TOO_SLOW)
            self.transport.close()

    return Timed
