"""When to try a webhook again: back-off with jitter, and what a Retry-After header asks for."""

from __future__ import annotations

import math
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from venire.model import DeliveryStatus
from venire.storage import DeliveryRow

__all__ = ["LONGEST", "MOST", "Failure", "after_failure", "backoff", "retry_after", "wait_of"]

#: A message waits at most so long for its next attempt, ...
LONGEST: Final = 3600.0

#: ... or so long if the receiver asks for it.
MOST: Final = 86_400.0

#: Answers which say that the receiver is not well, rather than that it dislikes a message.
_UNWELL: Final = frozenset({408, 425, 429})


class Failure(NamedTuple):
    """Why a message was not delivered.

    `unwell`: others would not be either, for now; `wait` is how long the receiver asked for.
    """

    why: str
    unwell: bool
    wait: float = 0.0

    @classmethod
    def of(cls, status: int, wait: float) -> Failure | None:
        """What an answer means; None if the message was taken.

        >>> Failure.of(204, 0.0) is None, Failure.of(503, 30.0), Failure.of(404, 0.0).unwell
        (True, Failure(why='the answer was 503', unwell=True, wait=30.0), False)
        """
        if 200 <= status < 300:
            return None
        return cls(f"the answer was {status}", status >= 500 or status in _UNWELL, wait)


def backoff(first: float, attempt: int, jitter: float) -> float:
    """Seconds before the next attempt: doubling, with a jitter between 0 and 1 of half of it.

    >>> [backoff(2.0, attempt, 0.5) for attempt in (1, 2, 3, 4)]
    [1.5, 3.0, 6.0, 12.0]
    >>> backoff(2.0, 5000, 1.0)
    3600.0
    """
    return min(first * 2.0 ** min(attempt - 1, 60), LONGEST) * (0.5 + jitter / 2)


def retry_after(header: str | None, now: float) -> float:
    """Seconds that a Retry-After header asks for, at most a day; 0 where it asks for nothing.

    It is a number of seconds or a date; `now` is in seconds since 1970.

    >>> retry_after("120", 0.0), retry_after(None, 0.0), retry_after("soon", 0.0)
    (120.0, 0.0, 0.0)
    >>> retry_after("Thu, 01 Jan 1970 01:00:00 GMT", 600.0)
    3000.0
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MOST)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    at = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return min(max(at - now, 0.0), MOST)


def after_failure(
    row: DeliveryRow, why: str, pause: float, now: float, *, attempts: int, seconds: float
) -> DeliveryRow:
    """A delivery after one more failure: pending for `pause`, or dead.

    It is given up after so many `seconds` of failing, but not before it had so many `attempts`: a
    server may have been off for days, or its clock may have been wrong.

    >>> row = DeliveryRow("wh_1", "posts", 7, 0, 0.0)
    >>> for now in (0.0, 90.0, 100.0):
    ...     row = after_failure(row, "no answer", 5.0, now, attempts=2, seconds=100.0)
    ...     print(row.attempt, row.status, row.next_at)
    1 pending 5.0
    2 pending 95.0
    3 dead 95.0
    """
    since = now if row.failing_since is None else row.failing_since
    row = row._replace(attempt=row.attempt + 1, last_error=why, failing_since=since)
    if row.attempt >= attempts and now - since >= seconds:
        return row._replace(status=DeliveryStatus.DEAD)
    return row._replace(next_at=now + pause)


def wait_of(row: DeliveryRow, now: float) -> float:
    """How long a pending delivery waits after a restart: until its time, if it was tried before.

    The wall clock may have been set meanwhile, so no longer than anybody may ask for.

    >>> wait_of(DeliveryRow("wh_1", "posts", 7, 3, next_at=60.0), 50.0)
    10.0
    """
    if row.attempt == 0 or not math.isfinite(row.next_at):
        return 0.0
    return min(max(row.next_at - now, 0.0), MOST)
