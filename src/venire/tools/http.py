"""What all that speaks HTTP shares: the client, webhooks, judges, models, connectors.

When a request is worth repeating: Retry-After, backoff, what a failed response means. Limits kept
on our side: requests and tokens a minute, requests at once, and patience. Requests with limits of
time and size, and JSON APIs. Nothing here follows a redirect, and no error shows a key.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import cycle
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

from venire.errors import InputError, VenireError
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json, scrubbed

#: The first and the longest backoff of a request, in seconds.
FIRST, LONGEST = 0.1, 10.0


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds that a server asks to wait: milliseconds, seconds or a date; None if it does not.

    `now` is in seconds since 1970, by default this moment.

    >>> retry_after({"retry-after": "1", "retry-after-ms": "150"}), retry_after({})
    (0.15, None)
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 01:00:00 GMT"}, now=600.0)
    3000.0
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0.0, at.timestamp() - (time.time() if now is None else now))
    except (ValueError, TypeError, OverflowError):
        return None


def doubled(first: float, attempt: int, longest: float) -> float:
    """The backoff after an attempt, before jitter: doubling from `first` up to `longest`.

    >>> [doubled(2.0, attempt, 10.0) for attempt in (1, 2, 3, 4, 5000)]
    [2.0, 4.0, 8.0, 10.0, 10.0]
    """
    return min(first * 2.0 ** min(attempt - 1, 60), longest)


@dataclass
class Backoff:
    """The waits between the attempts of one request, at most `limit` seconds in all.

    A wait doubles from a tenth of a second to ten seconds, with full jitter, and is no shorter than
    what the server asks for.

    >>> backoff = Backoff(limit=1.0, draw=lambda: 1.0)
    >>> [backoff.wait() for _ in range(4)]
    [0.1, 0.2, 0.4, None]
    """

    limit: float
    draw: Callable[[], float] = field(default=random.random)
    _attempt: int = 1
    _spent: float = 0.0

    def wait(self, at_least: float = 0.0) -> float | None:
        """Seconds until the next attempt; None when the time is up."""
        seconds = max(at_least, doubled(FIRST, self._attempt, LONGEST) * self.draw())
        if self._spent + seconds > self.limit:
            return None
        self._attempt += 1
        self._spent += seconds
        return seconds


@dataclass(frozen=True)
class Retry:
    """The same request may succeed later; `limited` says that it was one too many."""

    kind: str
    why: str
    after: float | None = None
    limited: bool = False


@dataclass(frozen=True)
class Reject:
    """The request will never succeed; `item` says that its item is why."""

    why: str
    item: bool = False


@dataclass(frozen=True)
class Halt:
    """No request will succeed any more."""

    why: str


#: Codes of a 429 or 403 after which no request will succeed any more.
_SPENT: Final = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
    }
)
#: What rejections say that are about one item: too long, or against the rules of the server.
_ABOUT_ITEM: Final = (
    *("context length", "context_length", "context window", "too long", "max_length"),
    *("content_filter", "content_policy", "content policy", "content management"),
    *("moderation", "flagged"),
)
_RETRIED: Final = frozenset({408, 409, 425, 429})
_FINAL: Final = {
    401: "the key was refused: check the variable of api_key_env",
    402: "the quota is spent",
    404: "there is no such model or address: check model and base_url",
}


def fault_of(
    status: int, headers: Mapping[str, str], body: bytes
) -> tuple[Retry | Reject | Halt | None, Any]:
    """What is wrong with the response of a model's API, if anything, and its JSON (else None).

    Servers say the same thing in many ways: a spent quota is a 402, or a 429 with a code; an error
    may come with status 200; a gateway answers with HTML.

    >>> fault_of(200, {}, b'{"label": "spam"}')
    (None, {'label': 'spam'})
    >>> fault_of(429, {"retry-after": "2"}, b"{}")[0]
    Retry(kind='limited', why='429', after=2.0, limited=True)
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    return _fault(status, headers, body, _error(said)), said


def _fault(
    status: int, headers: Mapping[str, str], body: bytes, error: Mapping[str, Any] | None
) -> Retry | Reject | Halt | None:
    if status == 200 and error is not None:  # some gateways send errors with status 200
        status = error["status"] or 502
    if status == 200:
        return None
    why = _why(status, error, body)
    if error is not None and error["code"] in _SPENT:
        return Halt(why)
    if status in _RETRIED or status >= 500:
        kind = "limited" if status == 429 else "server error"
        return Retry(kind, why, retry_after(headers), limited=status == 429)
    if status in _FINAL or 300 <= status < 400:
        return Halt(f"{why}: {_FINAL.get(status, 'a redirect: check base_url')}")
    return Reject(why, status == 413 or any(word in why.lower() for word in _ABOUT_ITEM))


def _error(said: Any) -> dict[str, Any] | None:
    """The error of a response: its code, its message, and the status it has inside."""
    error = said.get("error") if isinstance(said, Mapping) else None
    if not error:
        return None
    if not isinstance(error, Mapping):
        return {"code": None, "message": str(error), "status": None}
    code, kind = error.get("code"), error.get("type")
    status = code if isinstance(code, int) and 300 <= code < 600 else None
    words = [word for word in (code, kind) if isinstance(word, str)]
    spent = next((word for word in words if word in _SPENT), None)
    message = error.get("message")
    return {
        "code": spent or next(iter(words), None),
        "message": message if isinstance(message, str) else "",
        "status": status,
    }


def _why(status: int, error: Mapping[str, Any] | None, body: bytes) -> str:
    """One short line."""
    if error is None:
        text = "" if body.strip() in (b"", b"{}") else body[:80].decode(errors="replace")
    else:
        text = ": ".join(word for word in (error["code"], error["message"]) if word)
    return " ".join(f"{status} {text}".split())[:300]


#: Seconds that one question waits for the server's limits, in all; who asks for more is stopped.
PATIENCE = 600.0

#: Timers are not exact: what was missed within this number of seconds may be caught up.
SLACK = 0.05


class Pacer:
    """Says how long to wait so that no more than `per_minute` units pass in a minute.

    >>> pacer = Pacer(60)
    >>> pacer.take(1, now=0.0)
    >>> round(pacer.wait(now=0.2), 3), pacer.wait(now=10.0)
    (0.751, 0.0)
    """

    def __init__(self, per_minute: float) -> None:
        """`per_minute` units, evenly spaced."""
        self._seconds = (60.0 + SLACK) / per_minute
        self._free_at = float("-inf")

    def wait(self, now: float) -> float:
        """The seconds until something may be taken."""
        return max(0.0, self._free_at - now)

    def take(self, units: float, now: float) -> None:
        self._free_at = max(self._free_at, now - SLACK) + units * self._seconds

    def correct(self, units: float) -> None:
        """So many more were used than taken; fewer, if negative."""
        self._free_at += units * self._seconds


class Limits:
    """The limits of one judge, shared by all requests to it."""

    def __init__(
        self, max_parallel: int, rpm: float | None = None, tpm: float | None = None
    ) -> None:
        """None means no limit."""
        self._room, self._gate = asyncio.Semaphore(max_parallel), asyncio.Lock()
        self._requests = Pacer(rpm) if rpm else None
        self._tokens = Pacer(tpm) if tpm else None
        self._held_until = 0.0

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Wait until the limits allow one request of about that number of tokens."""
        async with self._room:
            async with self._gate:  # one after another, first come, first served
                while (wait := self._wait(time.monotonic())) > 0:
                    await asyncio.sleep(wait)
                now = time.monotonic()
                if self._requests:
                    self._requests.take(1, now)
                if self._tokens:
                    self._tokens.take(tokens, now)
            yield

    def used(self, guessed: int, tokens: int) -> None:
        if self._tokens:
            self._tokens.correct(tokens - guessed)

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the server is over its limit."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    def _wait(self, now: float) -> float:
        pacers = [pacer.wait(now) for pacer in (self._requests, self._tokens) if pacer]
        return max(self._held_until - now, *pacers, 0.0)


class TooLong(Exception):
    """The question is given up; `final` says that no other one is worth asking either."""

    def __init__(self, why: str, final: bool = False) -> None:
        self.final = final
        super().__init__(why)


class Patience:
    """The waits of one question: a 429 makes everyone wait, other faults count as tries."""

    def __init__(self, limits: Limits, retries: int) -> None:
        """`retries` is how often other faults are asked again."""
        self._limits, self._retries = limits, retries
        self._tries, self._waited = 0, 0.0

    async def after(self, got: Retry) -> None:
        """Wait as long as a fault asks for; raises `TooLong` if that is not worth it."""
        if got.limited:
            wait = _backoff(self._waited) if got.after is None else got.after
            self._waited += wait
            if wait > PATIENCE:
                raise TooLong(f"{got.why}: the server asks to wait {wait:,.0f} seconds", final=True)
            if self._waited > PATIENCE:
                raise TooLong(f"over its limit for {self._waited:,.0f} seconds: {got.why}")
            self._limits.hold(wait)
            return
        self._tries += 1
        if self._tries > self._retries or (got.after or 0.0) > PATIENCE:
            raise TooLong(f"no answer after {self._tries} tries: {got.why}")
        await asyncio.sleep(_backoff(self._tries / 4) if got.after is None else got.after)


def _backoff(so_far: float) -> float:
    """About as long again as was waited so far, from a quarter of a second to half a minute."""
    return min(30.0, max(0.25, so_far)) * (0.5 + random.random())


#: Connections to a pool.
POOL = 20

#: Bytes of an answer: those of a batch have some hundred for each item.
MOST = 16 * 1024 * 1024

#: Bytes of an answer of a JSON API: a page may hold a hundred documents.
MOST_OF_PAGE: Final = 128 * 1024 * 1024

#: The headers by which an answer comes as it is, not packed.
PLAIN = {"accept-encoding": "identity", "user-agent": "venire"}

#: Statuses of a JSON API after which the same request may succeed.
AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class Lost(Exception):
    """No response came; `sent` says that the request may have been answered all the same."""

    def __init__(self, why: str, sent: bool) -> None:
        self.sent = sent
        super().__init__(why)


class TooLarge(Exception):
    """A response is longer than any that is asked for."""


async def content_of(response: Any, most: int = MOST) -> bytes:
    """The content of a response that is being read, unpacked; `most` limits the bytes of both."""
    packed = bytearray()
    async for part in response.aiter_raw():
        packed += part
        if len(packed) > most:
            raise TooLarge(f"the answer is longer than {most:,} bytes")
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    return unpacked(bytes(packed), coding, most)


def unpacked(packed: bytes, coding: str, most: int = MOST) -> bytes:
    """What gzip or deflate packed: a few bytes may unpack to gigabytes.

    >>> import gzip
    >>> unpacked(gzip.compress(b"{}"), "gzip")
    b'{}'
    >>> unpacked(gzip.compress(b" " * 5_000), "gzip", most=1_000)
    Traceback (most recent call last):
    venire.tools.http.TooLarge: the answer unpacks to more than 1,000 bytes
    """
    if coding in ("", "identity"):
        return packed
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise TooLarge(f"the answer is encoded as {coding[:40]!r}, expected it as it is")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        found = unpacker.decompress(packed, most)
    except zlib.error as error:
        raise TooLarge(f"the answer cannot be unpacked: {error}") from None
    if unpacker.unconsumed_tail:
        raise TooLarge(f"the answer unpacks to more than {most:,} bytes")
    return found


class Closing:
    """What has connections, which are closed at the end of `async with`."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class Connections:
    """Posts to one address with one key, in a limited time, many at once.

    A pool of the HTTP library looks at all its connections for every request, so there are several
    pools of a few connections each.
    """

    def __init__(
        self, url: str, timeout: float, parallel: int, key: str = "", header: str = ""
    ) -> None:
        """`header` names the header that holds the key, by default as a bearer token."""
        self._httpx = library("httpx2", "judges")
        self._url, self._timeout, self._key = url, timeout, key
        limits = self._httpx.Limits(max_connections=None, max_keepalive_connections=None)
        headers = {"content-type": "application/json", **PLAIN}
        if key:
            headers[header or "authorization"] = key if header else f"Bearer {key}"
        self._pools = [
            self._httpx.AsyncClient(headers=headers, limits=limits, timeout=None, verify=_tls())
            for _ in range(-(-parallel // POOL))
        ]
        self._next = cycle(self._pools)

    async def post(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and content of the response; raises `Lost` if there is none."""
        try:
            async with asyncio.timeout(self._timeout):
                sent = json.dumps(body).encode()
                async with next(self._next).stream("POST", self._url, content=sent) as got:
                    content = await content_of(got)
        except TooLarge as fault:
            raise Lost(str(fault), sent=True) from None
        except TimeoutError:
            raise Lost(f"no answer within {self._timeout:g} seconds", sent=True) from None
        except self._httpx.RequestError as fault:
            unsent = isinstance(fault, self._httpx.ConnectError)
            raise Lost(str(fault) or type(fault).__name__, not unsent) from None
        return got.status_code, got.headers, content

    def scrub(self, text: str) -> str:
        """The text without the key, which some servers repeat in their errors, encoded or not."""
        return scrubbed(text, self._key)

    async def close(self) -> None:
        """Close all connections; those of an event loop that has ended are gone already."""
        for pool in self._pools:
            with suppress(RuntimeError):
                await pool.aclose()


@cache
def _tls() -> Any:
    """How certificates are checked; reading them takes a while, so once for all."""
    return library("httpx2", "judges").create_ssl_context()


class ApiError(VenireError):
    """An API refused a request; `status` is that of its response."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)


class ApiDown(VenireError):
    """An API cannot be reached, or cannot answer now; `wait` is how many seconds it asked for."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        self.wait = wait
        super().__init__(message)


class JsonApi(Closing):
    """The JSON API of another program.

    async with JsonApi("Phoenix", "http://127.0.0.1:6006", {}) as api:
        projects = await api.call("GET", "/v1/projects")

    `name` is what errors call it, `headers` hold the key, which `secret` keeps out of errors, and
    `hints` say what can be done about a status. Requests that change nothing are repeated for
    `retry_seconds`; what a lost one that changes something did is for the caller to find out.
    """

    #: The oldest version of the program that has this API.
    VERSION: ClassVar[str] = "1"

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        *,
        secret: str = "",
        hints: Mapping[int, str] | None = None,
        timeout: float = 60.0,
        retry_seconds: float = 0.0,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise InputError(f"got the address {url!r}, expected that of {name}: http://...")
        self.name, self.url, self._secret, self._hints = name, url.rstrip("/"), secret, hints or {}
        self._httpx, self._retry_seconds = library("httpx2", "client"), retry_seconds
        self._http = self._httpx.AsyncClient(
            timeout=timeout, headers={**PLAIN, **headers}, verify=_tls()
        )
        self._date = ""

    async def close(self) -> None:
        await self._http.aclose()

    @property
    def now(self) -> datetime:
        """What time the other program has, by its last answer, which may be a second old."""
        try:
            return parsedate_to_datetime(self._date).astimezone(UTC) - timedelta(seconds=1)
        except (ValueError, TypeError, OverflowError):
            return datetime.now(UTC)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        reads: bool = False,
        files: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None,
        raw: bool = False,
    ) -> Any:
        """The JSON of the answer, None if it is empty; raises `ApiError` or `ApiDown`.

        `reads` says that a request which is not a GET changes nothing; `files` and `data` are those
        of a form; `raw` asks for the bytes of the answer.
        """
        backoff = Backoff(self._retry_seconds if reads or method == "GET" else 0.0)
        while True:
            try:
                sent = {"json": body, "params": params, "headers": headers}
                form = {"files": files, "data": data} if files or data else {}
                return await self._once(method, path, sent | form, raw)
            except ApiDown as down:
                wait = backoff.wait(down.wait)
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def _once(
        self, method: str, path: str, sent: Mapping[str, Any], raw: bool = False
    ) -> Any:
        what = f"{method} {self.url}{path}"
        try:
            async with self._http.stream(method, f"{self.url}{path}", **sent) as got:
                content = await content_of(got, MOST_OF_PAGE)
        except TooLarge as fault:
            raise ApiError(f"{what}: {fault}") from None
        except self._httpx.RequestError as fault:
            why = scrubbed(str(fault) or type(fault).__name__, self._secret)
            raise ApiDown(f"{self.name} at {self.url} cannot be reached: {why}") from None
        if got.status_code in AGAIN:
            detail = self._detail(got.status_code, content)
            wait = retry_after(got.headers) or 0.0
            raise ApiDown(f"{self.name} cannot answer {method} {path}: {detail}", wait)
        self._date = got.headers.get("date", "")
        if got.status_code >= 300:
            raise self._error(what, got, content)
        if not content or raw:
            return content or None
        try:
            return parse_json(content)
        except ValueError:
            kind = got.headers.get("content-type", "no type")
            raise ApiError(
                f"{what}: got {kind}, expected JSON: is this the address of {self.name}?"
            ) from None

    def checked(self, path: str, rows: Any, fields: Mapping[str, Any]) -> Any:
        """What a path answers, if it is objects that have the fields, each of its type."""
        if not are(rows, fields):
            raise self.odd(path)
        return rows

    def odd(self, path: str) -> ApiError:
        return ApiError(
            f"{self.url}{path} answers with something else than {self.name} does: is this its "
            f"address, and is it of version {self.VERSION} or later?"
        )

    def _error(self, what: str, got: Any, content: bytes) -> ApiError:
        told = f"{what}: got {got.status_code}, {self._detail(got.status_code, content)}"
        if 300 <= got.status_code < 400:
            hint = f"it redirects to {got.headers.get('location')}: give the final address"
        else:
            hint = self._hints.get(got.status_code, "")
        return ApiError(f"{told}{': ' if hint else ''}{hint}", got.status_code)

    def _detail(self, status: int, content: bytes) -> str:
        """What the other program says is wrong, without the key."""
        try:
            said = parse_json(content)
            text = said.get("validation_errors") or said.get("detail") or said.get("message")
            return scrubbed(str(text or said), self._secret)[:300]
        except (ValueError, AttributeError):
            text = content[:100].decode(errors="replace")
            return scrubbed(f"{status} {text!r}", self._secret)


def are(rows: Any, fields: Mapping[str, Any]) -> bool:
    """Whether these are objects that have the fields, each of its type.

    >>> are([{"id": 7}], {"id": int}), are([{"id": "7"}], {"id": int}), are("x", {})
    (True, False, False)
    """
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(name in row and isinstance(row[name], kind) for name, kind in fields.items())
        for row in rows
    )


def key_of(owner: str, variable: str | None) -> str:
    """The key out of the environment; the error names the variable, not the key.

    >>> key_of("judge strict", None)
    ''
    """
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise InputError(
            f"{owner}: the environment has no {variable}: "
            "set it to the key of the API, or name another variable with api_key_env"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{owner}: {variable} holds no key: it has odd characters")
    return key
