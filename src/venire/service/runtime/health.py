"""Whether what the server stands on works: told in the log whenever that changes, with the cause.

    writes  the store takes changes
    reads   the store answers questions
    files   the process can open files and take connections

The log has a line when one of them fails, one a minute while it does, and one when it works again.
Where some calls fail and others do not, it works again once none has failed for a while: an outage
is one outage. Nothing is asked of the store for this: the keys are read every other second.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from venire.service.clock import Clock
from venire.service.runtime.webhook_counts import Tally
from venire.storage import WriterStats

__all__ = ["PARTS", "Condition", "Part", "Watch"]

Part: TypeAlias = Literal["writes", "reads", "files"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)

_WHAT: Final[dict[Part, str]] = {
    "writes": "the store takes nothing",
    "reads": "the store does not answer",
    "files": "no file can be opened and no connection taken",
}

#: While something is down the log says so every so many seconds.
REMIND: Final = 60.0

#: Nothing may have failed for so many seconds before it is told to work again. One successful
#: write says that all is well: the writer is down as a whole, or not.
CALM: Final[dict[Part, float]] = {"writes": 0.0, "reads": 5.0, "files": 5.0}

_log = logging.getLogger("venire.service")


@dataclass(frozen=True, slots=True)
class Condition:
    """How the server is, for the metrics: what is down and for how long, the store, webhooks.

    `queued` is how many requests wait to be committed; `sizes` are bytes, by name, as far as the
    store knows them.
    """

    down: dict[Part, float]
    stats: WriterStats
    queued: int
    sizes: dict[str, int]
    webhooks: list[Tally]


@dataclass(slots=True)
class _Outage:
    since: float
    told: float
    last: float


class Watch:
    """What is down, since when and why; may be called from any thread.

    >>> from venire.service import ManualClock
    >>> watch, clock = Watch(clock := ManualClock()), clock
    >>> watch.down("writes", "the disk is full")
    >>> clock.advance(3.0)
    >>> watch.seconds()
    {'writes': 3.0}
    >>> watch.up("writes")
    >>> watch.seconds()
    {}
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._outages: dict[Part, _Outage] = {}

    def seconds(self) -> dict[Part, float]:
        """What is down, and for how many seconds."""
        now = self._clock.monotonic()
        with self._lock:
            return {part: now - outage.since for part, outage in self._outages.items()}

    def down(self, part: Part, cause: str) -> None:
        """Something failed."""
        now, cause = self._clock.monotonic(), " ".join(cause.split())
        with self._lock:
            outage = self._outages.get(part)
            if outage is None:
                self._outages[part] = _Outage(now, now, now)
                _log.error("%s: %s", _WHAT[part], cause)
                return
            outage.last = now
            if now - outage.told >= REMIND:
                outage.told = now
                _log.error("%s, for %.0f s now: %s", _WHAT[part], now - outage.since, cause)

    def up(self, part: Part) -> None:
        """Something worked."""
        if part not in self._outages:  # without the lock: it is asked very often
            return
        now = self._clock.monotonic()
        with self._lock:
            outage = self._outages.get(part)
            if outage is not None and now - outage.last >= CALM[part]:
                del self._outages[part]
                _log.warning("%s: that is over, after %.1f s", _WHAT[part], now - outage.since)

    def writes(self, fault: str | None) -> None:
        """What the writer tells when it fails, and when it has come up again (None)."""
        if fault is None:
            self.up("writes")
        else:
            self.down("writes", fault)

    def try_files(self) -> None:
        """See whether a file can be opened: a process that has too many open takes no connection.

        Nobody else would tell: the loop closes what it cannot take, without a word.
        """
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            self.down("files", f"{error.strerror} (see ulimit -n)")
        else:
            self.up("files")
