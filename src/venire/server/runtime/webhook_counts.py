"""Deliveries and failures of each webhook, counted for the metrics and logged.

The log has a line when a webhook begins to fail, with the cause, one when it recovers, and one for
every message that is dead-lettered. The address is left out: it may contain a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

from venire.model import DeliveryStatus
from venire.server.store import DeliveryRow, WebhookRow

_log = logging.getLogger("venire.service")


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
        """The tally of one webhook."""
        return self._of.setdefault(hook.id, Tally(hook.id, hook.stream))

    def keep(self, hooks: Collection[str]) -> None:
        """Drop all but these webhooks."""
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
        """Count a delivered message."""
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
