"""When to retry a request, and how long to back off.

Nearly all requests are idempotent: by the id of an item, the token of an assignment, or the pair of
item and labeler the server recognises a repetition and returns the first answer. So a lost
connection, a 429 or a 503 is retried, after a backoff that doubles from a tenth of a second to ten
seconds, with full jitter, and is no shorter than the server's Retry-After. A request that creates
something with an id chosen by the server (a key, a webhook) is retried only if it cannot have been
processed: after a 429, or if the connection failed. A 503 may hide a commit whose answer was lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["NOT_PROCESSED", "RETRYABLE", "Backoff"]

#: Statuses after which the same request may succeed.
RETRYABLE = frozenset({429, 502, 503, 504})

#: Those of them after which the request was certainly not processed.
NOT_PROCESSED = frozenset({429})

#: The first and the longest backoff, in seconds.
FIRST, LONGEST = 0.1, 10.0


@dataclass
class Backoff:
    """The waits between the attempts of one request, at most `limit` seconds in all.

    >>> backoff = Backoff(limit=1.0, draw=lambda: 1.0)
    >>> [backoff.wait() for _ in range(4)]
    [0.1, 0.2, 0.4, None]
    """

    limit: float
    draw: Callable[[], float] = field(default=random.random)
    _next: float = FIRST
    _spent: float = 0.0

    def wait(self, at_least: float = 0.0) -> float | None:
        """Seconds until the next attempt; None when the time is up."""
        seconds = max(at_least, self._next * self.draw())
        if self._spent + seconds > self.limit:
            return None
        self._next = min(LONGEST, self._next * 2)
        self._spent += seconds
        return seconds
