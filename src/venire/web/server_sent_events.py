"""Following what happens: server-sent events with signs of life.

A connection that says nothing for a while may be taken for dead by what lies in between, so a
comment is sent every few seconds. When the server stops, those who follow are let go; browsers
and clients come back by themselves and go on after the last event they saw. Who follows by a key
that is revoked meanwhile is let go too, and sees nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from venire.errors import VenireError
from venire.web.answers import event
from venire.web.errors import error_of
from venire.web.guard import Gate, caller

__all__ = ["follow"]

HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def follow(gate: Gate, request: Request, news: AsyncIterator[bytes]) -> Response:
    """An answer that goes on for as long as there are news and somebody may read them."""
    gate.waiting.check(caller(request).key)
    return _Following(gate, request, news)


class _Following(StreamingResponse):
    """A stream of events that has a place among those who wait while it is being read."""

    def __init__(self, gate: Gate, request: Request, news: AsyncIterator[bytes]) -> None:
        living = _living(gate, request, news)
        super().__init__(living, media_type="text/event-stream", headers=HEADERS)
        self._gate, self._key = gate, caller(request).key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._gate.waiting.one(self._key):
            await super().__call__(scope, receive, send)


async def _living(gate: Gate, request: Request, news: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The news, with a comment where there are none for a while; ends when server or key do."""
    yield b": venire\n\n"
    stop = asyncio.ensure_future(gate.stopping.wait())
    entry: asyncio.Future[bytes] = asyncio.ensure_future(_next(news))
    try:
        while not stop.done():
            both: set[asyncio.Future[Any]] = {entry, stop}
            done, _ = await asyncio.wait(
                both,
                timeout=gate.settings.heartbeat,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not gate.still(request):
                break
            if entry in done:
                yield entry.result()
                entry = asyncio.ensure_future(_next(news))
            elif not done:
                yield b": still here\n\n"
    except StopAsyncIteration:
        pass
    except VenireError as error:
        fault = error_of(error)
        yield event("error", {"code": fault.code, "message": fault.message})
    finally:
        stop.cancel()
        entry.cancel()


async def _next(news: AsyncIterator[bytes]) -> bytes:
    return await anext(news)
