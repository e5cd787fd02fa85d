"""When a request is worth repeating: Retry-After, backoff, and what a failed response means.

**Limits kept on our side: requests and tokens a minute, requests at once, and patience.**

Requests are spaced evenly, about 60 / rpm seconds apart, and tokens likewise, by when they are
really sent: so no window of a minute holds more than allowed, and a shorter one hardly more than
its share, however a server counts. What a request will use in tokens is guessed beforehand and
corrected by what its answer reports.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

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
