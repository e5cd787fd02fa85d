"""When to try again, and how long to wait before.

Nearly everything may be sent twice: the id of an item, the token of an assignment, the pair of
item and labeler tell the server that it has seen it, and the second of two equal requests gets
the answer of the first. So a lost connection, a 429 or a 503 is tried again, after a wait that
doubles from a tenth of a second to ten seconds, drawn at random below that, and no shorter than
the server's Retry-After. What makes something new under a name of the server's choice (a key, a
webhook) is sent again only if it cannot have been done: after a 429, or where nobody answered the
connection. A 503 may be that of a commit whose answer was lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["AGAIN", "UNDONE", "Backoff"]

#: Statuses after which the same request may succeed.
AGAIN = frozenset({429, 502, 503, 504})

#: Those of them that say that nothing was done.
UNDONE = frozenset({429})

FIRST, LONGEST = 0.1, 10.0


@dataclass
class Backoff:
    """The waits between the attempts of one request, of `limit` seconds in all.

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
