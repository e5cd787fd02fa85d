"""`Client` and `AsyncClient`: the HTTP API of one server, or of several on the same store.

What an operation sends is said in `client.calls`, and which server is tried next, and when, is up
to `Attempts`. A client only sends and sleeps: one waits, the other awaits.

A server that does not answer, or answers that it cannot, is followed by the next one at once; when
all have been tried, the client waits and begins again, no sooner than their Retry-After.

Nearly all requests are idempotent: by the id of an item, the token of an assignment, or the pair of
item and labeler the server recognises a repetition and returns the first answer. A request that
creates something with an id chosen by the server (a key, a webhook) is repeated only if it cannot
have been processed: after a 429, or if the connection failed. A 503 may hide a commit whose answer
was lost, unless the server says that it did nothing.

Answers of servers that share streams name the owner of the stream: requests about it go there, if
its address is one of those given. The key is sent to no other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

from venire.client.calls import Awaiting, Blocking, Calls
from venire.client.wire import Answer, Call, ItemExit, ItemRevision, ServerError, Unreachable
from venire.errors import InputError
from venire.tools.http import Backoff, Closing, retry_after
from venire.tools.lazy import library

#: Statuses after which the same request may succeed, ...
RETRYABLE: Final = frozenset({429, 502, 503, 504})

#: ... and those of them after which the request was certainly not processed.
NOT_PROCESSED: Final = frozenset({429})

#: The header that names the owner of a stream.
OWNER: Final = "venire-owner"

#: How many streams to remember the owner of.
REMEMBERED: Final = 10_000

#: Codes of a 503 that is answered before anything is done.
NOT_SERVING: Final = frozenset({"elsewhere", "loading", "standby", "starting"})

#: What a request is about: a kind of thing and which one.
Subject = tuple[str, str]


class Servers:
    """The addresses of one server, or of several on the same store.

    >>> servers = Servers("http://a:8400, http://b:8400/")
    >>> servers.order("/v1/streams/posts")
    ['http://a:8400', 'http://b:8400']
    >>> servers.heard("/v1/streams/posts", "http://a:8400", {"venire-owner": "http://b:8400"})
    >>> servers.order("/v1/streams/posts/next"), servers.order("/v1/streams/tweets")
    (['http://b:8400', 'http://a:8400'], ['http://a:8400', 'http://b:8400'])
    """

    def __init__(self, url: str | Iterable[str]) -> None:
        """Addresses in a list, or in one text with commas between them."""
        self.urls = _addresses(url)
        self._given = {_normal(url): url for url in self.urls}
        self._latest = self.urls[0]
        self._owners: dict[Subject, str] = {}

    def order(self, path: str) -> list[str]:
        """The servers in the order in which to try them: the owner, then who answered last."""
        subject = _subject(path)
        owner = None if subject is None else self._owners.get(subject)
        start = self.urls.index(self._latest)
        order = self.urls[start:] + self.urls[:start]
        return order if owner is None else [owner, *(url for url in order if url != owner)]

    def heard(self, path: str, url: str, headers: Mapping[str, str]) -> None:
        """A server answered: ask it first from now on, and the owner that it names before it."""
        self._latest, subject = url, _subject(path)
        if subject is None or len(self.urls) == 1:
            return
        owner = self._given.get(_normal(headers.get(OWNER, "")))
        self._owners.pop(subject, None)
        if owner is not None:
            if len(self._owners) >= REMEMBERED:
                self._owners.clear()  # they are learned again
            self._owners[subject] = owner

    def failed(self, path: str, url: str) -> None:
        """A server did not do what was asked: if it owned the stream, it may not any more."""
        subject = _subject(path)
        if subject is not None and self._owners.get(subject) == url:
            self._owners.pop(subject, None)


class Attempts:
    """The attempts of one request: `url` is the server to send it to."""

    def __init__(self, servers: Servers, call: Call[Any], backoff: Backoff) -> None:
        self._servers, self._call, self._backoff = servers, call, backoff
        self._begin()

    def _begin(self) -> None:
        """Begin a round through all servers."""
        self.url, *self._left = self._servers.order(self._call.path)
        self._tried: dict[str, str] = {}
        self._answer: Answer | None = None
        self._wait = 0.0

    def answered(self, answer: Answer) -> float | None:
        """None for success, else the seconds before the next attempt; raises if there is none."""
        call, path = self._call, self._call.path
        if answer.status not in RETRYABLE or not answer.retryable():
            self._servers.heard(path, self.url, answer.headers)
            if answer.status >= 400:
                raise answer.error()
            return None
        if not (call.idempotent or _not_processed(answer)):
            raise answer.error()
        self._answer, self._wait = answer, max(self._wait, retry_after(answer.headers) or 0.0)
        if answer.status in NOT_PROCESSED:  # it is for this server that we ask too often
            return self._again(answer.error())
        return self._next(f"{answer.status} {answer.error().code}")

    def failed(self, fault: Exception, unsent: bool) -> float:
        """Seconds before the attempt after a connection error; raises if there is none.

        `unsent`: nothing was sent.
        """
        why = str(fault) or type(fault).__name__
        if not (self._call.idempotent or unsent):
            raise Unreachable(
                f"{self.url} cannot be reached: {why}; what was asked may have been done, so it is "
                "not sent again"
            )
        return self._next(why)

    def _next(self, why: str) -> float:
        """Go on to the next server; after the last one wait, and begin again."""
        self._servers.failed(self._call.path, self.url)
        self._tried[self.url] = why
        if self._left:
            self.url = self._left.pop(0)
            return 0.0
        wait = self._again(self._error())
        self._begin()
        return wait

    def _again(self, error: Exception) -> float:
        wait = self._backoff.wait(self._wait)
        if wait is None:
            raise error
        return wait

    def _error(self) -> Exception:
        """Why the whole round failed: the last answer if there was one, and all that were tried."""
        tried = "; ".join(f"{url}: {why}" for url, why in self._tried.items())
        if self._answer is None and len(self._tried) == 1:
            return Unreachable(f"{self.url} cannot be reached: {self._tried[self.url]}")
        if self._answer is None:
            return Unreachable(f"none of {len(self._tried)} servers can be reached: {tried}")
        said = self._answer.error()
        if len(self._tried) == 1:
            return said
        return ServerError(said.status, said.code, f"{said.message} (tried {tried})", said.hint)


def _not_processed(answer: Answer) -> bool:
    """Whether a server certainly did not do what was asked."""
    standing_by = answer.status == 503 and answer.error().code in NOT_SERVING
    return answer.status in NOT_PROCESSED or standing_by


def _subject(path: str) -> Subject | None:
    """What a request is about, as far as the owner of a stream may be found by it.

    >>> _subject("/v1/streams/posts/next"), _subject("/v1/streams"), _subject("/v1/me")
    (('streams', 'posts'), None, None)
    >>> _subject("/v1/assignments/6f1ed002ab.dETW42vSlD8/label")
    ('assignments', 'dETW42vSlD8')
    """
    parts = path.split("/")
    if len(parts) < 4 or parts[2] not in ("streams", "assignments"):
        return None
    _, dot, end = parts[3].rpartition(".")
    if parts[2] == "assignments":
        return ("assignments", end) if dot else None
    return "streams", parts[3]


def _addresses(url: str | Iterable[str]) -> list[str]:
    """The addresses, each once."""
    parts = url.split(",") if isinstance(url, str) else url
    urls = [_checked(part, url) for part in parts]
    if not urls:
        raise InputError("got no address, expected http://... or https://..., or several")
    return list(dict.fromkeys(urls))


def _checked(part: Any, whole: Any) -> str:
    try:
        url: str = part.strip().rstrip("/")
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (AttributeError, ValueError):  # not a text, or an invalid port
        fits = False
    if not fits:
        of = "" if part == whole else f" in {whole!r}"
        raise InputError(f"got the address {part!r}{of}, expected http://... or https://...")
    return url


def _normal(url: str) -> str:
    """An address as it is compared.

    >>> _normal("HTTP://A:80/") == _normal("http://a"), _normal("http://a") == _normal("https://a")
    (True, False)
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname}:{port}{parts.path.rstrip('/')}"


#: Seconds to connect where there is another server to try.
CONNECT: Final = 5.0


def http_library() -> Any:
    """The HTTP library, or how to install it."""
    return library("httpx2", "client")


class Settings:
    """How a client reaches its servers."""

    def __init__(
        self, url: str | Iterable[str], key: str, timeout: float, retry_seconds: float
    ) -> None:
        """`retry_seconds` is how long one request is retried."""
        self.servers, self.timeout, self.retry_seconds = Servers(url), timeout, retry_seconds
        self.headers = {"authorization": f"Bearer {_clean(key)}", "user-agent": "venire-client"}

    def attempts(self, call: Call[Any]) -> Attempts:
        return Attempts(self.servers, call, Backoff(self.retry_seconds))

    def request(self, call: Call[Any], url: str) -> dict[str, Any]:
        """The arguments of the HTTP library for a call to one of the servers."""
        seconds = self.timeout + call.wait
        connect = seconds if len(self.servers.urls) == 1 else min(CONNECT, seconds)
        return {
            "method": call.method,
            "url": url + call.path,
            "params": dict(call.params),
            "content": call.body,
            "headers": call.headers(),
            "timeout": http_library().Timeout(seconds, connect=connect),
        }


def _clean(key: str | None) -> str:
    r"""The key without surrounding whitespace, as left by a file or a shell.

    The error does not contain the key: errors are logged.

    >>> _clean("vk_abc\n")
    'vk_abc'
    """
    cleaned = (key or "").strip()
    if not cleaned:
        raise InputError("the key is empty, expected vk_..., as printed when it was created")
    if not cleaned.isascii() or not cleaned.isprintable() or " " in cleaned:
        raise InputError("the key contains invalid characters, expected vk_...")
    return cleaned


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
    """A client of a server, as `Client`, whose methods are coroutines.

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
