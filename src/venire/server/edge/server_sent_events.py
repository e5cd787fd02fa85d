"""Server-sent events with heartbeats.

A proxy may close a silent connection, so a comment is sent every few seconds. When the server
stops, the streams end; browsers and clients reconnect and continue after the last event they saw.
A stream also ends when its key is revoked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from venire.errors import VenireError
from venire.server.edge.answers import event
from venire.server.edge.errors import error_of
from venire.server.edge.guard import Gate, caller

__all__ = ["follow"]

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def follow(gate: Gate, request: Request, events: AsyncIterator[bytes]) -> Response:
    """A response that streams events until they end, the server stops or the key is revoked."""
    gate.waiting.check(caller(request).key)
    return _Following(gate, request, events)


class _Following(StreamingResponse):
    """An event stream that counts as a waiting request while it is open."""

    def __init__(self, gate: Gate, request: Request, events: AsyncIterator[bytes]) -> None:
        kept_alive = _with_heartbeats(gate, request, events)
        super().__init__(kept_alive, media_type="text/event-stream", headers=HEADERS)
        self._gate, self._key = gate, caller(request).key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._gate.waiting.one(self._key):
            await super().__call__(scope, receive, send)


async def _with_heartbeats(
    gate: Gate, request: Request, events: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """The events, with a comment after a silence; ends when the server stops or the key ends."""
    yield b": venire\n\n"
    stop = asyncio.ensure_future(gate.stopping.wait())
    entry: asyncio.Future[bytes] = asyncio.ensure_future(_next(events))
    try:
        while not stop.done():
            both: set[asyncio.Future[Any]] = {entry, stop}
            done, _ = await asyncio.wait(
                both,
                timeout=gate.settings.heartbeat,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not gate.still_valid(request):
                break
            if entry in done:
                yield entry.result()
                entry = asyncio.ensure_future(_next(events))
            elif not done:
                yield b": heartbeat\n\n"
    except StopAsyncIteration:
        pass
    except VenireError as error:
        fault = error_of(error)
        yield event("error", {"code": fault.code, "message": fault.message})
    finally:
        stop.cancel()
        entry.cancel()


async def _next(events: AsyncIterator[bytes]) -> bytes:
    return await anext(events)
