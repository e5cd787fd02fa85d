"""What goes wrong in the background: webhooks that fail, a store that is down, counted and logged.

The log has a line when a webhook begins to fail, with the cause, one when it recovers, and one for
every message that is dead-lettered. The address is left out: it may contain a secret.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from venire.model import DeliveryStatus
from venire.server.clock import Clock
from venire.server.store import DeliveryRow, WebhookRow, WriterStats


@dataclass(slots=True)
class Tally:
    """Messages to one webhook since the server started, and those in the store.

    `failing` counts the failures since the last success; `since` is the time of the first of them
    on the monotonic clock.
    """

    webhook: str
    stream: str
    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    failing: int = 0
    since: float = 0.0
    pending: int | None = None
    dead: int | None = None


class Tallies:
    """The tallies of all webhooks.

    >>> tallies = Tallies()
    >>> hook = WebhookRow.load(["wh_1", "posts", "https://example.org", "whsec_", 0.0])
    >>> tallies.delivered(hook, 0.0)
    >>> [tally.delivered for tally in tallies.all({"wh_1": {"pending": 2, "dead": 1}})]
    [1]
    """

    def __init__(self) -> None:
        self._of: dict[str, Tally] = {}

    def of(self, hook: WebhookRow) -> Tally:
        return self._of.setdefault(hook.id, Tally(hook.id, hook.stream))

    def keep(self, hooks: Collection[str]) -> None:
        self._of = {id: tally for id, tally in self._of.items() if id in hooks}

    def all(self, counts: dict[str, dict[str, int]]) -> list[Tally]:
        """All tallies, with the counts of the store where they are known."""
        return [
            replace(
                tally, pending=held.get(DeliveryStatus.PENDING), dead=held.get(DeliveryStatus.DEAD)
            )
            for tally, held in ((self._of[id], counts.get(id, {})) for id in sorted(self._of))
        ]

    def delivered(self, hook: WebhookRow, now: float) -> None:
        tally = self.of(hook)
        tally.delivered += 1
        if tally.failing:
            _log.info(
                "webhook %s of stream %r recovered after %d failures in %.0f s",
                hook.id, hook.stream, tally.failing, now - tally.since,
            )  # fmt: skip
            tally.failing = 0

    def failed(self, hook: WebhookRow, row: DeliveryRow, now: float) -> None:
        """Count a failed attempt; `row` says why, and whether it is dead-lettered."""
        tally = self.of(hook)
        tally.failed += 1
        tally.failing += 1
        if tally.failing == 1:
            tally.since = now
            _log.warning(
                "webhook %s of stream %r fails: %s (attempt %d for %s %d)",
                hook.id, hook.stream, row.last_error, row.attempt, row.kind, row.exit_n,
            )  # fmt: skip
        if row.status == DeliveryStatus.DEAD:
            tally.given_up += 1
            _log.error(
                "webhook %s of stream %r: %s %d is dead-lettered after %d attempts: %s; redeliver "
                "sends it again",

                hook.id, hook.stream, row.kind, row.exit_n, row.attempt, row.last_error,
            )  # fmt: skip


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
        now = self._clock.monotonic()
        with self._lock:
            return {part: now - outage.since for part, outage in self._outages.items()}

    def down(self, part: Part, cause: str) -> None:
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
