"""When to retry a webhook: exponential backoff with jitter, and Retry-After.

The first delay, the least number of attempts and how long to keep trying are settings:
`webhook_...` in `server.settings`, of which `venire serve` has `webhook_retry_hours`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from venire.model import DeliveryStatus
from venire.server.store import DeliveryRow
from venire.tools.http import doubled

#: The longest backoff between two attempts, in seconds, ...
MAX_BACKOFF: Final = 3600.0

#: ... and the longest that a receiver may ask for.
MAX_RETRY_AFTER: Final = 86_400.0

#: Client errors that concern the receiver as a whole rather than the message.
_UNWELL: Final = frozenset({408, 425, 429})


class Failure(NamedTuple):
    """Why a message was not delivered.

    `unwell`: the receiver as a whole is failing; `wait` is how many seconds it asked for.
    """

    why: str
    unwell: bool
    wait: float = 0.0

    @classmethod
    def of(cls, status: int, wait: float) -> Failure | None:
        """The failure that a status means; None for success.

        >>> Failure.of(204, 0.0) is None, Failure.of(503, 30.0), Failure.of(404, 0.0).unwell
        (True, Failure(why='HTTP status 503', unwell=True, wait=30.0), False)
        """
        if 200 <= status < 300:
            return None
        return cls(f"HTTP status {status}", status >= 500 or status in _UNWELL, wait)


def backoff(first: float, attempt: int, jitter: float) -> float:
    """Seconds before the next attempt: doubling, half of it fixed and half scaled by `jitter`.

    >>> [backoff(2.0, attempt, 0.5) for attempt in (1, 2, 3, 4)]
    [1.5, 3.0, 6.0, 12.0]
    >>> backoff(2.0, 5000, 1.0)
    3600.0
    """
    return doubled(first, attempt, MAX_BACKOFF) * (0.5 + jitter / 2)


def after_failure(
    row: DeliveryRow, why: str, pause: float, now: float, *, attempts: int, seconds: float
) -> DeliveryRow:
    """A delivery after one more failure: pending for `pause` seconds, or dead-lettered.

    It is dead-lettered after `seconds` of failing, but not before `attempts` attempts: the server
    may have been off for days, or its clock may have been wrong.

    >>> row = DeliveryRow(webhook="wh_1", stream="posts", exit_n=7, attempt=0, next_at=0.0)
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
    """How long a pending delivery waits after a restart: until it is due, if it was tried before.

    The wall clock may have been set meanwhile, so the wait is capped.

    >>> row = DeliveryRow(webhook="wh_1", stream="posts", exit_n=7, attempt=3, next_at=60.0)
    >>> wait_of(row, 50.0)
    10.0
    """
    if row.attempt == 0 or not math.isfinite(row.next_at):
        return 0.0
    return min(max(row.next_at - now, 0.0), MAX_RETRY_AFTER)
