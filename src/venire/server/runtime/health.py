"""Outages of what the server depends on, logged with their cause when they begin and end.

    writes  the store accepts writes
    reads   the store answers reads
    files   the process can open files and accept connections

The log has a line when one of them fails, one a minute while it does, and one when it recovers. If
some calls fail and others succeed, the outage ends once none has failed for a while. There are no
probes of the store: the keys are read every other second anyway.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from venire.server.clock import Clock
from venire.server.runtime.webhook_counts import Tally
from venire.server.store import WriterStats

Part: TypeAlias = Literal["writes", "reads", "files"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)

_WHAT: Final[dict[Part, str]] = {
    "writes": "the store does not accept writes",
    "reads": "the store does not answer reads",
    "files": "no file can be opened and no connection accepted",
}

#: Seconds between two log lines about the same outage.
REMIND: Final = 60.0

#: Seconds without a failure after which an outage is over. One successful write is enough: the
#: writer is down as a whole, or not.
CALM: Final[dict[Part, float]] = {"writes": 0.0, "reads": 5.0, "files": 5.0}

_log = logging.getLogger("venire.service")


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of the server, for the metrics: outages and their length, store, webhooks.

    `queued` is how many requests wait to be committed; `sizes` are bytes by name, as far as the
    store reports them.
    """

    down: dict[Part, float]
    stats: WriterStats
    queued: int
    sizes: dict[str, int]
    webhooks: list[Tally]


@dataclass(slots=True)
class _Outage:
    since: float
    logged: float
    last: float


class HealthMonitor:
    """What is down, since when and why; thread-safe.

    >>> from venire.server import ManualClock
    >>> watch, clock = HealthMonitor(clock := ManualClock()), clock
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
        """Record a failure."""
        now, cause = self._clock.monotonic(), " ".join(cause.split())
        with self._lock:
            outage = self._outages.get(part)
            if outage is None:
                self._outages[part] = _Outage(now, now, now)
                _log.error("%s: %s", _WHAT[part], cause)
                return
            outage.last = now
            if now - outage.logged >= REMIND:
                outage.logged = now
                _log.error("%s, for %.0f s now: %s", _WHAT[part], now - outage.since, cause)

    def up(self, part: Part) -> None:
        """Record a success."""
        if part not in self._outages:  # without the lock: this is called very often
            return
        now = self._clock.monotonic()
        with self._lock:
            outage = self._outages.get(part)
            if outage is not None and now - outage.last >= CALM[part]:
                del self._outages[part]
                _log.warning("recovered after %.1f s: %s", now - outage.since, _WHAT[part])

    def writes(self, fault: str | None) -> None:
        """The writer's callback: its failure, or None after it has recovered."""
        if fault is None:
            self.up("writes")
        else:
            self.down("writes", fault)

    def try_files(self) -> None:
        """Check that a file can be opened: out of file descriptors, no connection is accepted.

        Nothing else would report it: the loop drops such connections silently.
        """
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            self.down("files", f"{error.strerror} (see ulimit -n)")
        else:
            self.up("files")
