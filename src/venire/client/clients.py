"""`Client` and `AsyncClient`: the HTTP API of a server, one method for each operation.

What an operation sends is a function of `client.calls`, and which server is tried next, and when,
is up to `Attempts`. A client only sends and sleeps: one waits, the other awaits.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from venire.client import calls
from venire.client.servers import Attempts, Settings, http_library
from venire.client.wire import Answer, Call, ItemExit, ItemRevision

P = ParamSpec("P")
T = TypeVar("T")


def _like(method: Any, call: Callable[..., Any]) -> None:
    """Give a method the name, the docstring and the parameters of its call."""
    functools.update_wrapper(method, call)
    del method.__wrapped__  # its signature has no self
    signature = inspect.signature(call)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    reply = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    given = [me, *signature.parameters.values()]
    method.__signature__ = signature.replace(parameters=given, return_annotation=reply)


def _sync(call: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """The method of `Client` for a call."""

    def method(self: Client, /, *args: P.args, **named: P.kwargs) -> T:
        return self._do(call(*args, **named))

    _like(method, call)
    return method


def _async(
    call: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The method of `AsyncClient` for a call."""

    async def method(self: AsyncClient, /, *args: P.args, **named: P.kwargs) -> T:
        return await self._do(call(*args, **named))

    _like(method, call)
    return method


class _Sender:
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


class AsyncClient(_Sender):
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # streams

    create_stream = _async(calls.create_stream)
    stream = _async(calls.stream)
    streams = _async(calls.streams)
    change_stream = _async(calls.change_stream)
    settings_history = _async(calls.settings_history)
    pause = _async(calls.pause)
    resume = _async(calls.resume)
    close_stream = _async(calls.close_stream)
    archive_stream = _async(calls.archive_stream)
    restore_stream = _async(calls.restore_stream)
    archived = _async(calls.archived)
    delete_stream = _async(calls.delete_stream)

    # items

    add_items = _async(calls.add_items)
    upload = _async(calls.upload)
    item = _async(calls.item)
    find_items = _async(calls.find_items)
    explain = _async(calls.explain)
    withdraw = _async(calls.withdraw)
    erase_payload = _async(calls.erase_payload)

    # work

    next = _async(calls.next)
    held = _async(calls.held)
    label = _async(calls.label)
    heartbeat = _async(calls.heartbeat)
    release = _async(calls.release)
    abstain = _async(calls.abstain)
    note = _async(calls.note)
    notes = _async(calls.notes)
    progress = _async(calls.progress)
    practice = _async(calls.practice)
    check_practice = _async(calls.check_practice)
    add_labels = _async(calls.add_labels)

    # gold and reviews

    add_gold = _async(calls.add_gold)
    gold = _async(calls.gold)
    audits = _async(calls.audits)
    reviews = _async(calls.reviews)
    review = _async(calls.review)
    send_back = _async(calls.send_back)

    # what came out

    exits = _async(calls.exits)
    revisions = _async(calls.revisions)
    export = _async(calls.export)
    insights = _async(calls.insights)
    trends = _async(calls.trends)
    alarms = _async(calls.alarms)
    rates = _async(calls.rates)
    lessons = _async(calls.lessons)
    what_if = _async(calls.what_if)

    # labelers

    labelers = _async(calls.labelers)
    add_labeler = _async(calls.add_labeler)
    retire_labeler = _async(calls.retire_labeler)
    restore_labeler = _async(calls.restore_labeler)
    agreement = _async(calls.agreement)
    panel = _async(calls.panel)
    confusion = _async(calls.confusion)
    invitations = _async(calls.invitations)
    invite = _async(calls.invite)
    revoke_invitation = _async(calls.revoke_invitation)

    # webhooks

    webhooks = _async(calls.webhooks)
    add_webhook = _async(calls.add_webhook)
    remove_webhook = _async(calls.remove_webhook)
    ping_webhook = _async(calls.ping_webhook)
    rotate_webhook = _async(calls.rotate_webhook)
    dead_letters = _async(calls.dead_letters)
    redeliver = _async(calls.redeliver)

    # keys and the audit trail

    me = _async(calls.me)
    keys = _async(calls.keys)
    create_key = _async(calls.create_key)
    rotate_key = _async(calls.rotate_key)
    revoke_key = _async(calls.revoke_key)
    audit = _async(calls.audit)

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


class Client(_Sender):
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # streams

    create_stream = _sync(calls.create_stream)
    stream = _sync(calls.stream)
    streams = _sync(calls.streams)
    change_stream = _sync(calls.change_stream)
    settings_history = _sync(calls.settings_history)
    pause = _sync(calls.pause)
    resume = _sync(calls.resume)
    close_stream = _sync(calls.close_stream)
    archive_stream = _sync(calls.archive_stream)
    restore_stream = _sync(calls.restore_stream)
    archived = _sync(calls.archived)
    delete_stream = _sync(calls.delete_stream)

    # items

    add_items = _sync(calls.add_items)
    upload = _sync(calls.upload)
    item = _sync(calls.item)
    find_items = _sync(calls.find_items)
    explain = _sync(calls.explain)
    withdraw = _sync(calls.withdraw)
    erase_payload = _sync(calls.erase_payload)

    # work

    next = _sync(calls.next)
    held = _sync(calls.held)
    label = _sync(calls.label)
    heartbeat = _sync(calls.heartbeat)
    release = _sync(calls.release)
    abstain = _sync(calls.abstain)
    note = _sync(calls.note)
    notes = _sync(calls.notes)
    progress = _sync(calls.progress)
    practice = _sync(calls.practice)
    check_practice = _sync(calls.check_practice)
    add_labels = _sync(calls.add_labels)

    # gold and reviews

    add_gold = _sync(calls.add_gold)
    gold = _sync(calls.gold)
    audits = _sync(calls.audits)
    reviews = _sync(calls.reviews)
    review = _sync(calls.review)
    send_back = _sync(calls.send_back)

    # what came out

    exits = _sync(calls.exits)
    revisions = _sync(calls.revisions)
    export = _sync(calls.export)
    insights = _sync(calls.insights)
    trends = _sync(calls.trends)
    alarms = _sync(calls.alarms)
    rates = _sync(calls.rates)
    lessons = _sync(calls.lessons)
    what_if = _sync(calls.what_if)

    # labelers

    labelers = _sync(calls.labelers)
    add_labeler = _sync(calls.add_labeler)
    retire_labeler = _sync(calls.retire_labeler)
    restore_labeler = _sync(calls.restore_labeler)
    agreement = _sync(calls.agreement)
    panel = _sync(calls.panel)
    confusion = _sync(calls.confusion)
    invitations = _sync(calls.invitations)
    invite = _sync(calls.invite)
    revoke_invitation = _sync(calls.revoke_invitation)

    # webhooks

    webhooks = _sync(calls.webhooks)
    add_webhook = _sync(calls.add_webhook)
    remove_webhook = _sync(calls.remove_webhook)
    ping_webhook = _sync(calls.ping_webhook)
    rotate_webhook = _sync(calls.rotate_webhook)
    dead_letters = _sync(calls.dead_letters)
    redeliver = _sync(calls.redeliver)

    # keys and the audit trail

    me = _sync(calls.me)
    keys = _sync(calls.keys)
    create_key = _sync(calls.create_key)
    rotate_key = _sync(calls.rotate_key)
    revoke_key = _sync(calls.revoke_key)
    audit = _sync(calls.audit)

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
