"""`Client` and `AsyncClient`: the HTTP API of a server, one method for each operation.

What an operation sends is said in `client.calls`, and which server is tried next, and when, is up
to `Attempts`. A client only sends and sleeps: one waits, the other awaits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Self, TypeVar

from venire.client.calls import Awaiting, Blocking, Calls
from venire.client.servers import Attempts, Settings, http_library
from venire.client.wire import Answer, Call, ItemExit, ItemRevision
from venire.tools.http import Closing

T = TypeVar("T")


class _Sender(Calls):
    """What both clients share."""

    def __init__(
        self,
        url: str | Iterable[str],
        key: str,
        *,
        timeout: float = 30.0,
        retry_seconds: float = 60.0,
    ) -> None:
        """`url` is an address, several with commas between them, or a list of addresses.

        `timeout` is for one attempt, in addition to the time of a long poll.
        """
        self._settings = Settings(url, key, timeout, retry_seconds)
        self._library = http_library()
        kind = getattr(self._library, type(self)._LIBRARY)
        self._http = kind(headers=self._settings.headers, trust_env=False)

    _LIBRARY: str

    def _failed(self, attempts: Attempts, fault: Exception) -> float:
        """Seconds to wait after a connection error."""
        unsent = self._library.ConnectError, self._library.ConnectTimeout
        return attempts.failed(fault, isinstance(fault, unsent))


class AsyncClient(Closing, _Sender, Awaiting):
    """A client of a server.

    Requests that fail because the server is busy, stopping or unreachable are retried for up to
    `retry_seconds`; they are idempotent, so a retry takes effect once. Of several servers on one
    store, a standby or those that share its streams, give all addresses: what one does not answer
    goes to the next, and requests about a stream go to its owner.

        async with venire.AsyncClient("http://127.0.0.1:8400", key) as client:
            await client.create_stream("posts", classes=["spam", "ok"])
            await client.add_items("posts", [{"id": "post-1", "payload": "Buy now!"}])
            work = await client.next("posts", "ann")
            if work:
                await client.label(work.token, "spam")
            async for exit in client.follow_exits("posts"):
                print(exit.item, exit.verdict)

    >>> AsyncClient("127.0.0.1:8400", "vk_...")
    Traceback (most recent call last):
    venire.errors.InputError: got the address '127.0.0.1:8400', expected http://... or https://...
    """

    _LIBRARY = "AsyncClient"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def follow_exits(self, stream: str, after: int = 0) -> AsyncIterator[ItemExit]:
        """Follow the exits after a cursor, without end."""
        while True:
            for exit in await self.exits(stream, after, wait=20.0):
                yield exit
                after = exit.n

    async def follow_revisions(self, stream: str, after: int = 0) -> AsyncIterator[ItemRevision]:
        """Follow the revisions after a cursor, without end."""
        while True:
            for revision in await self.revisions(stream, after, wait=20.0):
                yield revision
                after = revision.n

    async def _do(self, call: Call[T]) -> T:
        attempts = self._settings.attempts(call)
        while True:
            try:
                got = await self._http.request(**self._settings.request(call, attempts.url))
            except self._library.TransportError as fault:
                wait: float | None = self._failed(attempts, fault)
            else:
                answer = Answer(got.status_code, got.headers, got.content)
                wait = attempts.answered(answer)
                if wait is None:
                    return call.read(answer)
            await asyncio.sleep(wait or 0.0)


class Client(_Sender, Blocking):
    """A client of a server.

    Requests that fail because the server is busy, stopping or unreachable are retried for up to
    `retry_seconds`; they are idempotent, so a retry takes effect once. Of several servers on one
    store, a standby or those that share its streams, give all addresses: what one does not answer
    goes to the next, and requests about a stream go to its owner.

        with venire.Client("http://127.0.0.1:8400", key) as client:
            client.create_stream("posts", classes=["spam", "ok"])
            client.add_items("posts", [{"id": "post-1", "payload": "Buy now!"}])
            work = client.next("posts", "ann")
            if work:
                client.label(work.token, "spam")
            for exit in client.follow_exits("posts"):
                print(exit.item, exit.verdict)

    >>> Client("127.0.0.1:8400", "vk_...")
    Traceback (most recent call last):
    venire.errors.InputError: got the address '127.0.0.1:8400', expected http://... or https://...
    """

    _LIBRARY = "Client"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def follow_exits(self, stream: str, after: int = 0) -> Iterator[ItemExit]:
        """Follow the exits after a cursor, without end."""
        while True:
            for exit in self.exits(stream, after, wait=20.0):
                yield exit
                after = exit.n

    def follow_revisions(self, stream: str, after: int = 0) -> Iterator[ItemRevision]:
        """Follow the revisions after a cursor, without end."""
        while True:
            for revision in self.revisions(stream, after, wait=20.0):
                yield revision
                after = revision.n

    def _do(self, call: Call[T]) -> T:
        attempts = self._settings.attempts(call)
        while True:
            try:
                got = self._http.request(**self._settings.request(call, attempts.url))
            except self._library.TransportError as fault:
                wait: float | None = self._failed(attempts, fault)
            else:
                answer = Answer(got.status_code, got.headers, got.content)
                wait = attempts.answered(answer)
                if wait is None:
                    return call.read(answer)
            time.sleep(wait or 0.0)
